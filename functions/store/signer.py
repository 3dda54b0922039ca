"""Signed addresses: an object of a bucket that is private may be had there, for a while."""

import threading
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import quote, urlencode

from functions.snapshot.address import Address
from functions.store import tally
from functions.store.client import Client
from functions.store.connection import Connection

_UNKNOWN = "application/octet-stream"


class Signer:
    """Signs addresses of objects with the keys by which the buckets are read. Safe for threads.

    Whoever has an address may read that object for `seconds`, and do nothing else with it.
    """

    def __init__(
        self, connection: Connection, environment: Mapping[str, str], seconds: int
    ) -> None:
        self._connection = connection
        self._environment = environment
        self._lasting = timedelta(seconds=seconds)
        self._clients: dict[str, Client] = {}
        self._lock = threading.Lock()

    def address(self, bucket: str, key: str, method: str, disposition: str) -> str:
        """Return an address for GET or HEAD, answered with that Content-Disposition.

        It is answered as bytes of no known type: what is on the bucket's host has no sandbox.
        Raises StoreError where there are no keys to sign with.
        """
        with self._lock:
            client = self._clients.get(bucket)
            if client is None:
                client = Client(Address(bucket), self._connection, self._environment)
                self._clients[bucket] = client
        query = urlencode(
            {
                "response-content-disposition": disposition,
                "response-content-type": _UNKNOWN,
                "x-id": "GetObject",  # the last value gets a / (Client.address)
            },
            quote_via=quote,
        )
        with tally.counted():  # nothing is asked of the bucket itself
            return client.tried(
                key, "s3:GetObject", lambda: client.address(method, key, query, self._lasting)
            )
