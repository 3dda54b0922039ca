"""Read clients for S3 buckets and web servers, and presigned URLs; the only importer of obstore.

Importing obstore takes 20 ms, importing boto3 150 ms, which a cold start would pay. So obstore
also signs URLs. Writing uses boto3 (builder.store.client). An error of obstore has only a class
and a text.
"""

import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

import obstore
import obstore.store
from obstore.exceptions import BaseError

from functions.snapshot.errors import Conflict, StoreError
from functions.snapshot.layout import S3_SCHEME, StoreAddress
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
_PROVIDER_ERROR = re.compile(r"credential provider: StoreError: (.*)")
# A failed request whose URL contains one of these was for keys, not for an object.
_CREDENTIAL_URLS = (
    "//169.254.",
    "//[fd00:ec2",
    "/latest/api/token",
    "/latest/meta-data/",
    "//sts.",
    "AssumeRole",
)
_CLASS_STATUS = {"FileNotFoundError": 404, "NotFoundError": 404, "PreconditionError": 412}
_IGNORES_RANGE = (
    "the server ignores Range and sends whole files: Sheaf needs one that sends parts of them"
)


class _ObstoreClient(ObjectClient):
    """Reads objects through a store of obstore."""

    @property
    @abstractmethod
    def _store(self) -> Any: ...

    @abstractmethod
    def _tag(self, meta: Any) -> str: ...

    def _condition(self, tag: str) -> str | None:
        """Return the value of If-Match; None to send none."""
        return tag

    def get(self, key: str) -> tuple[bytes, str]:
        """Return the whole object and its tag."""

        def request() -> tuple[bytes, str]:
            result = obstore.get(self._store, key)
            return _body(result), self._tag(result.meta)

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
            if tag is not None and (condition := self._condition(tag)):
                options["if_match"] = condition
            try:
                result = obstore.get(self._store, key, options=options)  # type: ignore[arg-type]
                data = _body(result, stopped)
                part = ObjectPart(data, result.meta["size"], self._tag(result.meta))
            except _ERRORS as error:
                if _refusal(error).status != 416:
                    raise
                s3_request.add_to_tally(requests=1)
                meta = obstore.head(self._store, key)  # an empty object has no range
                part = ObjectPart(b"", meta["size"], self._tag(meta))
            if tag not in (None, part.tag):  # some servers ignore If-Match
                raise Conflict(f"{self.where(key)} was replaced")
            return part

        return self.attempt(key, "s3:GetObject", request)

    def refusal(self, error: Exception) -> Refusal | None:
        """Return the Refusal that describes an error of obstore; None for any other error."""
        return _refusal(error) if isinstance(error, _ERRORS) else None


class Client(_ObstoreClient):
    """Reads the objects of a bucket."""

    def __init__(
        self, address: StoreAddress, connection: BucketConnection, environment: Mapping[str, str]
    ) -> None:
        super().__init__(f"{S3_SCHEME}{address.bucket}", connection)
        self._options = options_of(address, connection, environment)
        forget_empty()

    def signed_url(self, method: Any, key: str, query: str, lasting: timedelta) -> str:
        """Return the signed URL of a request with a query, valid for `lasting`.

        obstore cannot sign queries. It does sign an endpoint that contains a query, and appends
        `/`.
        """
        plain = obstore.sign(self._store, "GET", key, lasting).partition("?")[0].rstrip("/")
        options = {**self._options, "endpoint": f"{plain}?{query}"}
        options["virtual_hosted_style_request"] = True
        return str(obstore.sign(obstore.store.S3Store(**options), method, "", lasting))

    @cached_property
    def _store(self) -> obstore.store.S3Store:
        options = _client_options(self.connection, str(self._options.get("endpoint", "")))
        return obstore.store.S3Store(**self._options, **options)

    def _tag(self, meta: Any) -> str:
        return tag_of(meta["e_tag"])


class WebClient(_ObstoreClient):
    """Reads files below a URL, from any server that answers GET with Range.

    A server that refuses a file (401, 403) may just not say that it is missing. A file without ETag
    has the time of its last change instead.
    """

    def refusal(self, error: Exception) -> Refusal | None:
        """Return the Refusal that describes an error of obstore; None for any other error."""
        refusal = super().refusal(error)
        if refusal is None:
            return None
        if type(error).__name__ == "NotSupportedError":
            return replace(refusal, text=_IGNORES_RANGE)
        if refusal.status in (401, 403, 410):
            return replace(refusal, status=404, code="", reason=f" (it answers {refusal.status})")
        return replace(refusal, code="", check="the store's address")

    @cached_property
    def _store(self) -> obstore.store.HTTPStore:
        options = _client_options(self.connection, self._root)
        return obstore.store.HTTPStore.from_url(self._root, **options)

    def _condition(self, tag: str) -> str | None:
        return tag if tag.startswith('"') else None  # a weak tag never matches (RFC 9110, 13.1.1)

    def _tag(self, meta: Any) -> str:
        return str(meta["e_tag"] or meta["last_modified"])


def _client_options(connection: BucketConnection, endpoint: str) -> dict[str, Any]:
    """Return obstore's settings of connections to an endpoint.

    obstore's retries are off: `attempt` retries, and Ctrl-C can interrupt it.
    """
    client = {
        "allow_http": endpoint.startswith("http://"),
        "connect_timeout": timedelta(seconds=min(5.0, connection.timeout)),
        "timeout": timedelta(seconds=connection.longest),
        "read_timeout": timedelta(seconds=connection.timeout),
        "pool_idle_timeout": timedelta(seconds=connection.idle),
    }
    return {"client_options": client, "retry_config": {"max_retries": 0}}


def _body(result: Any, stopped: Callable[[], bool] = lambda: False) -> bytes:
    """Return the body, read in chunks so that Ctrl-C works on a slow connection."""
    body = bytearray()
    for chunk in result.stream(min_chunk_size=_CHUNK):
        if stopped():
            raise StoreError("the read was cancelled")
        s3_request.add_to_tally(size=len(chunk))
        body += chunk
    return bytes(body)


def _refusal(error: Exception) -> Refusal:
    """Return the Refusal that the class and the text of an error of obstore describe."""
    text = str(error)
    status, code, url = _STATUS.search(text), _CODE.search(text), _URL.search(text)
    transport = None if status else _TRANSPORT.search(text)
    provider = _PROVIDER_ERROR.search(text)
    name = (code[1] or code[2]) if code else ""
    if "Received redirect" in text:  # to the bucket's region
        name = "PermanentRedirect"
    return Refusal(
        status=int(status[1]) if status else _CLASS_STATUS.get(type(error).__name__, 0),
        code=name,
        transport=transport[1].replace("Request", "Connect") if transport else "",
        credentials=bool(provider or (url and any(part in url[1] for part in _CREDENTIAL_URLS))),
        reason=provider[1] if provider else "",
        text=text,
    )


class Signer:
    """Signs URLs with the keys that read the buckets. Thread-safe.

    Such a URL lets a client read one object for `seconds`, and do nothing else.
    """

    def __init__(
        self, connection: BucketConnection, environment: Mapping[str, str], seconds: int
    ) -> None:
        self._connection = connection
        self._environment = environment
        self._lasting = timedelta(seconds=seconds)
        self._clients: dict[str, Client] = {}
        self._lock = threading.Lock()

    def sign(self, bucket: str, key: str, method: str, disposition: str) -> str:
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
                "response-content-type": "application/octet-stream",
                "x-id": "GetObject",  # the last value gets a / (Client.signed_url)
            },
            quote_via=quote,
        )
        with s3_request.count_requests():  # no request goes to the bucket itself
            return client.attempt(
                key, "s3:GetObject", lambda: client.signed_url(method, key, query, self._lasting)
            )
