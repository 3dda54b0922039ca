"""Writes an object of a bucket in parts, as its bytes come; nothing of it is on a disk.

The object appears when it is ended. Whatever goes wrong before leaves nothing to be seen, nor
parts that would be paid for.
"""

import contextlib
import hashlib
import re
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

from builder.store.client import BYTES, S3Client, md5_of
from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.store import tally

T = TypeVar("T")

_GROWS = 1500
"""Parts behind which they become twice as large: S3 allows 10,000 to an object."""
_MD5 = re.compile(r'"?([0-9a-f]{32})"?')


class Multipart:
    """Takes the bytes of the object `key`; one no larger than a part is one request.

    `width` parts are sent at a time, and one more is in memory. Where `absent`, the object must not
    be there yet; otherwise it is named by its content, and a second copy does no harm.
    """

    def __init__(self, client: S3Client, key: str, width: int = 2, *, absent: bool = True) -> None:
        self._client = client
        self._key = key
        self._name = client.names(key)
        self._width = width
        self._absent = absent
        self._data = bytearray()
        self._size = 0
        self._tags: list[str] = []
        self._sending: deque[Future[str]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._upload: dict[str, Any] = {}
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over = True
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._data.clear()
        if kind is not None and self._upload:
            with contextlib.suppress(StoreError):  # what went wrong before says more
                abort = "s3:AbortMultipartUpload"
                self._ask(lambda s3: s3.abort_multipart_upload(**self._upload), abort)

    def write(self, data: bytes) -> int:
        """Take some more. Raises StoreError, also for an earlier part."""
        view = memoryview(data)
        while view:
            part = self._part_size()
            if len(self._data) == part:  # so the last part is never an empty one
                self._send()
                continue
            room = part - len(self._data)
            self._data += view[:room]
            view = view[room:]
        self._size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: a part is sent when it is full."""

    def end(self) -> None:
        """Make the object appear. Raises Conflict where another one is there, and StoreError."""
        if not self._upload:
            if self._absent:
                self._client.put_if(self._key, bytes(self._data), None)
            else:
                self._client.put(self._key, bytes(self._data))
            return
        self._send()
        while self._sending:
            self._tags.append(self._sending.popleft().result())
        self._complete()
        self._upload = {}

    def _part_size(self) -> int:
        number = len(self._tags) + len(self._sending)
        return self._client.connection.part << number // _GROWS

    def _send(self) -> None:
        if self._pool is None:
            self._begin()
            self._pool = ThreadPoolExecutor(self._width, "sheaf-parts")
        while len(self._sending) >= self._width:
            self._tags.append(self._sending.popleft().result())
        number = len(self._tags) + len(self._sending) + 1
        data, self._data = self._data, bytearray()
        self._sending.append(self._pool.submit(tally.carry(self._part), number, data))

    def _begin(self) -> None:
        if self._absent and self._client.has(self._key):
            raise Conflict(f"{self._client.where(self._key)} is there already")
        answer = self._ask(lambda s3: s3.create_multipart_upload(**self._name, ContentType=BYTES))
        self._upload = {**self._name, "UploadId": answer["UploadId"]}

    def _part(self, number: int, data: bytearray) -> str:
        what = {**self._upload, "PartNumber": number, "Body": data, "ContentMD5": md5_of(data)}

        def send(s3: Any) -> Any:
            if self._over:
                raise StoreError(f"{self._client.where(self._key)}: the upload was given up")
            return s3.upload_part(**what)

        return str(self._ask(send)["ETag"])

    def _complete(self) -> None:
        parts = [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(self._tags, 1)]
        what = {**self._upload, "MultipartUpload": {"Parts": parts}}
        if self._absent:
            what["IfNoneMatch"] = "*"
        tries = 0

        def complete(s3: Any) -> None:
            nonlocal tries
            tries += 1
            s3.complete_multipart_upload(**what)

        try:
            self._ask(complete)
        except (Conflict, MissingObject) as error:
            # An answer can be lost although the write took place, as of any conditional write.
            if tries > 1 and self._is_ours():
                return
            raise Conflict(f"{self._client.where(self._key)} is there already") from error

    def _ask(self, request: Callable[[Any], T], action: str = "s3:PutObject") -> T:
        return self._client.attempt(self._key, action, lambda: request(self._client.large))

    def _is_ours(self) -> bool:
        """Tell whether the object there is made of these very parts.

        One that is named by its content is, if it has the size.
        """
        try:
            found = self._client.piece(self._key, 0, 1)
        except MissingObject:
            return False
        if not self._absent:
            return found.size == self._size
        digests = [_MD5.fullmatch(tag) for tag in self._tags]
        joined = b"".join(bytes.fromhex(one[1]) for one in digests if one)
        tag = f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(digests)}"
        return all(digests) and found.tag.strip('"') == tag
