"""Read client for S3 buckets, and presigned URLs. The only file that imports obstore.

Importing obstore takes 20 ms, importing boto3 150 ms, which a cold start would pay. So obstore
also signs URLs. Writing uses boto3 (builder.store.client). An error of obstore has only a class
and a text.
"""

import re
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

import obstore
import obstore.store
from obstore.exceptions import BaseError

from functions.snapshot.errors import StoreError
from functions.snapshot.layout import StoreAddress
from functions.store import s3_request
from functions.store.connection import (
    BucketConnection,
    ObjectClient,
    ObjectPart,
    forget_empty,
    options_of,
    tag_of,
)
from functions.store.s3_request import Refusal

_CHUNK = 1 << 16  # bytes
_ERRORS = (BaseError, FileNotFoundError, ValueError, OSError)  # exceptions of obstore

_STATUS = re.compile(r"status(?: code)?: (\d{3})")
_CODE = re.compile(r'<Code>(\w+)</Code>|code: "(\w+)"')
_URL = re.compile(r"Error performing [A-Z]+ (\S+)")
_TRANSPORT = re.compile(r"kind: (Timeout|Connect|Request|Interrupted|Decode)\b")
_OWN = re.compile(r"credential provider: StoreError: (.*)")
_CREDENTIALS = (
    "//169.254.", "//[fd00:ec2", "/latest/api/token", "/latest/meta-data/", "//sts.", "AssumeRole",
)  # fmt: skip
_KINDS = {"FileNotFoundError": 404, "NotFoundError": 404, "PreconditionError": 412}
_UNKNOWN = "application/octet-stream"


class Client(ObjectClient):
    """Reads objects through obstore."""

    def __init__(
        self, address: StoreAddress, connection: BucketConnection, environment: Mapping[str, str]
    ) -> None:
        super().__init__(address.bucket, connection)
        self._options = options_of(address, connection, environment)
        forget_empty()

    def get(self, key: str) -> tuple[bytes, str]:
        """Return the whole object and its tag."""

        def request() -> tuple[bytes, str]:
            result = obstore.get(self._store, key)
            return _body(result), tag_of(result.meta["e_tag"])

        return self.attempt(key, "s3:GetObject", request)

    def piece(
        self,
        key: str,
        offset: int,
        length: int,
        tag: str | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> ObjectPart:
        """Return a range of the object (see ObjectClient.piece)."""

        def request() -> ObjectPart:
            options: dict[str, Any] = {"range": (offset, offset + length)}
            if tag is not None:
                options["if_match"] = tag
            try:
                result = obstore.get(self._store, key, options=options)  # type: ignore[arg-type]
                data = _body(result, stopped)
                return ObjectPart(data, result.meta["size"], tag_of(result.meta["e_tag"]))
            except _ERRORS as error:
                if _refusal(error).status != 416:
                    raise
                s3_request.add_to_tally(requests=1)
                meta = obstore.head(self._store, key)  # an empty object has no range
                return ObjectPart(b"", meta["size"], tag_of(meta["e_tag"]))

        return self.attempt(key, "s3:GetObject", request)

    def signed_url(self, method: Any, key: str, query: str, lasting: timedelta) -> str:
        """Return the signed URL of a request with a query, valid for `lasting`.

        obstore cannot sign queries. It does sign an endpoint that contains a query, and appends
        `/`.
        """
        plain = obstore.sign(self._store, "GET", key, lasting).partition("?")[0].rstrip("/")
        options = {**self._options, "endpoint": f"{plain}?{query}"}
        options["virtual_hosted_style_request"] = True
        return str(obstore.sign(obstore.store.S3Store(**options), method, "", lasting))

    def refusal(self, error: Exception) -> Refusal | None:
        """Return the Refusal that describes an error of obstore; None for any other error."""
        return _refusal(error) if isinstance(error, _ERRORS) else None

    @cached_property
    def _store(self) -> obstore.store.S3Store:
        """The bucket. obstore's retries are off: `attempt` retries, and Ctrl-C can interrupt it."""
        connection = self.connection
        client: Any = {
            "allow_http": str(self._options.get("endpoint", "")).startswith("http://"),
            "connect_timeout": timedelta(seconds=min(5.0, connection.timeout)),
            "timeout": timedelta(seconds=connection.longest),
            "read_timeout": timedelta(seconds=connection.timeout),
            "pool_idle_timeout": timedelta(seconds=connection.idle),
        }
        retry: Any = {"max_retries": 0}
        return obstore.store.S3Store(**self._options, client_options=client, retry_config=retry)


def _body(result: Any, stopped: Callable[[], bool] = lambda: False) -> bytes:
    """Return the body, read in chunks so that Ctrl-C works on a slow connection."""
    found = bytearray()
    for chunk in result.stream(min_chunk_size=_CHUNK):
        if stopped():
            raise StoreError("the read was cancelled")
        s3_request.add_to_tally(size=len(chunk))
        found += chunk
    return bytes(found)


def _refusal(error: Exception) -> Refusal:
    text, kind = str(error), type(error).__name__
    status, code, url = _STATUS.search(text), _CODE.search(text), _URL.search(text)
    transport = None if status else _TRANSPORT.search(text)
    own = _OWN.search(text)
    name = (code[1] or code[2]) if code else ""
    if "Received redirect" in text:
        name = "PermanentRedirect"
    return Refusal(
        status=int(status[1]) if status else _KINDS.get(kind, 0),
        code=name,
        transport=transport[1].replace("Request", "Connect") if transport else "",
        credentials=bool(own) or any(mark in (url[1] if url else "") for mark in _CREDENTIALS),
        reason=own[1] if own else "",
        text=text,
    )


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
        with s3_request.count_requests():  # no request goes to the bucket itself
            return client.attempt(
                key, "s3:GetObject", lambda: client.signed_url(method, key, query, self._lasting)
            )
