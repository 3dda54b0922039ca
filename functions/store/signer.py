"""Presigned URLs of objects in a private bucket, valid for a limited time.

obstore signs them: importing boto3 would add 150 ms to the first redirect of a cold function.
"""

import threading
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import quote, urlencode

from functions.snapshot.address import StoreAddress
from functions.store import tally
from functions.store.client import Client
from functions.store.connection import BucketConnection

_UNKNOWN = "application/octet-stream"


class Signer:
    """Signs URLs with the keys that read the buckets. Thread-safe.

    With such a URL, a client may read the object for `seconds`, and do nothing else.
    """

    def __init__(
        self, connection: BucketConnection, environment: Mapping[str, str], seconds: int
    ) -> None:
        self._connection = connection
        self._environment = environment
        self._lasting = timedelta(seconds=seconds)
        self._clients: dict[str, Client] = {}
        self._lock = threading.Lock()

    def address(self, bucket: str, key: str, method: str, disposition: str) -> str:
        """Return a URL for GET or HEAD whose response has that Content-Disposition.

        The response's type is application/octet-stream, because the bucket's host has no sandbox.
        Raises StoreError if there are no keys.
        """
        with self._lock:
            client = self._clients.get(bucket)
            if client is None:
                client = Client(StoreAddress(bucket), self._connection, self._environment)
                self._clients[bucket] = client
        query = urlencode(
            {
                "response-content-disposition": disposition,
                "response-content-type": _UNKNOWN,
                "x-id": "GetObject",  # the last value gets a / (Client.signed_url)
            },
            quote_via=quote,
        )
        with tally.count():  # no request goes to the bucket itself
            return client.attempt(
                key, "s3:GetObject", lambda: client.signed_url(method, key, query, self._lasting)
            )
