"""An object of a bucket that is written as its bytes come, in parts, and nothing of it on a disk.

It is there once it is ended, if nothing was there before. Whatever goes wrong until then leaves
nothing to be seen, nor parts that would be paid for.
"""

import contextlib
import hashlib
import re
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from html import unescape
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlencode

from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.store import signed, tally
from functions.store.client import Client

T = TypeVar("T")

_UNDER_WAY = 2
"""Parts that are sent at a time; one more is in memory."""
_GROWS = 1500
"""Parts behind which they become twice as large: S3 allows 10,000 to an object."""
_UPLOAD = re.compile(rb"<UploadId>([^<]+)</UploadId>")
_MD5 = re.compile(r'"?([0-9a-f]{32})"?')


class Multipart:
    """Takes the bytes of the object `key`; one that is no larger than a part is one request."""

    def __init__(self, client: Client, key: str) -> None:
        self._client = client
        self._key = key
        self._data = bytearray()
        self._tags: list[str] = []
        self._sending: deque[Future[str]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._id = ""
        self._timeout = client.connection.timeout * 10

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._data.clear()
        if kind is not None and self._id:
            with contextlib.suppress(StoreError):  # what went wrong before says more
                query = f"{urlencode({'uploadId': self._id})}&x-id=AbortMultipartUpload"
                self._asked("DELETE", query, lambda a: signed.abandon(a, self._timeout))

    def write(self, data: bytes) -> int:
        """Take some more. Raises StoreError, where an earlier part could not be written as well."""
        view = memoryview(data)
        while view:
            part = self._size()
            if len(self._data) == part:  # so the last part is never an empty one
                self._send()
                continue
            room = part - len(self._data)
            self._data += view[:room]
            view = view[room:]
        return len(data)

    def flush(self) -> None:
        """Do nothing: a part is sent when it is full."""

    def end(self) -> None:
        """Have the object there. Raises Conflict, where another one is, and StoreError."""
        if not self._id:
            self._client.put_if(self._key, bytes(self._data), None)
            return
        self._send()
        while self._sending:
            self._sent()
        self._complete()
        self._id = ""

    def _size(self) -> int:
        number = len(self._tags) + len(self._sending)
        return self._client.connection.part << number // _GROWS

    def _send(self) -> None:
        if self._pool is None:
            self._begin()
            self._pool = ThreadPoolExecutor(_UNDER_WAY, "sheaf-parts")
        while len(self._sending) >= _UNDER_WAY:
            self._sent()
        number = len(self._tags) + len(self._sending) + 1
        data, self._data = bytes(self._data), bytearray()
        self._sending.append(self._pool.submit(tally.carried(self._part), number, data))

    def _sent(self) -> None:
        self._tags.append(self._sending.popleft().result())

    def _begin(self) -> None:
        if self._client.has(self._key):
            raise Conflict(f"{self._client.where(self._key)} is there already")
        query = "uploads&x-id=CreateMultipartUpload"
        said = self._asked("POST", query, lambda a: signed.begin(a, self._timeout))
        found = _UPLOAD.search(said)
        if found is None:
            where = self._client.where(self._key)
            raise StoreError(f"{where}: the server began no upload in parts: {said[:200]!r}")
        self._id = unescape(found[1].decode())

    def _part(self, number: int, data: bytes) -> str:
        where = urlencode({"partNumber": number, "uploadId": self._id})
        query = f"{where}&x-id=UploadPart"
        return self._asked("PUT", query, lambda a: signed.part(a, data, self._timeout))

    def _complete(self) -> None:
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
            for number, tag in enumerate(self._tags, 1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        tries = 0

        def send(address: str) -> None:
            nonlocal tries
            tries += 1
            signed.complete(address, body, self._timeout)

        query = f"{urlencode({'uploadId': self._id})}&x-id=CompleteMultipartUpload"
        try:
            self._asked("POST", query, send)
        except (Conflict, MissingObject) as error:
            # An answer can be lost although the write took place, as of any write on condition.
            if tries > 1 and self._is_ours():
                return
            raise Conflict(f"{self._client.where(self._key)} is there already") from error

    def _asked(self, method: str, query: str, send: Callable[[str], T]) -> T:
        """Return what `send` makes of the address, which each try is signed for anew."""
        action = "s3:AbortMultipartUpload" if method == "DELETE" else "s3:PutObject"
        client, key = self._client, self._key
        return client.tried(key, action, lambda: send(client.address(method, key, query)))

    def _is_ours(self) -> bool:
        """Tell whether what is there is made of these very parts."""
        found = [_MD5.fullmatch(tag) for tag in self._tags]
        if not all(found):
            return False
        joined = b"".join(bytes.fromhex(one[1]) for one in found if one)
        tag = f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(found)}"
        try:
            return self._client.piece(self._key, 0, 1).tag.strip('"') == tag
        except MissingObject:
            return False
