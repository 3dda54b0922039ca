"""Multipart upload of an object to a bucket as its bytes arrive, without a local file.

The object appears when the upload is completed. A failed upload leaves neither an object nor parts
that would be charged for. If the server would complete an upload although the object exists, the
bytes wait in a local file after all, and are sent with one request.
"""

import contextlib
import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar

from builder.store.client import BYTES, DeadUploadError, S3Client, md5_of
from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.store import s3_request
from functions.store.scratch import Scratch

T = TypeVar("T")

_PARTS = 10_000  # of an object at most, all but the last of one size, as R2 demands
_LARGEST = 512 << 20
"""Bytes of a part at most. 10,000 of them are the largest object of S3."""
_STEP = 1 << 20  # bytes, of which a planned size is a multiple
_MD5 = re.compile(r'"?([0-9a-f]{32})"?')


class Multipart:
    """Writes the object `key`; an object no larger than a part takes one request.

    `width` parts are sent in parallel, and one more is in memory. Their size is planned for `most`
    bytes (None: for as many as 10,000 of the connection's parts hold). With `probe`, the key of
    another object, which exists, to test the server with, the object must not exist yet. Otherwise
    it is named by its content, and a second copy does no harm.
    """

    def __init__(
        self,
        client: S3Client,
        key: str,
        width: int = 2,
        *,
        probe: str | None = None,
        most: int | None = None,
    ) -> None:
        self._client = client
        self._key = key
        self._name = client.names(key)
        self._width = width
        self._probe = probe
        planned = -(-(most or 0) // _PARTS // _STEP) * _STEP
        self._part_size = max(client.connection.part, min(planned, _LARGEST))
        self._data = bytearray()
        self._size = 0
        self._tags: list[str] = []
        self._sending: deque[Future[str]] = deque()
        self._pool: ThreadPoolExecutor | None = None
        self._upload: dict[str, Any] = {}
        self._scratch: Scratch | None = None
        self._spool: BinaryIO | None = None
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *failure: object) -> None:
        self._over = True
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._data.clear()
        if self._spool is not None:
            with contextlib.suppress(OSError):  # what could not be written
                self._spool.close()
        if self._scratch is not None:
            self._scratch.close()
        if kind is not None and self._upload:
            with contextlib.suppress(StoreError):  # the first error says more
                abort = "s3:AbortMultipartUpload"
                self._ask(lambda s3: s3.abort_multipart_upload(**self._upload), abort)

    def write(self, data: bytes) -> int:
        """Write more bytes. Raises StoreError, also for an earlier part."""
        view = memoryview(data)
        while view and self._spool is None:
            if len(self._data) == self._part_size:  # more follows: the last part is never empty
                self._send()
                continue
            room = self._part_size - len(self._data)
            self._data += view[:room]
            view = view[room:]
        if self._spool is not None:
            with self._spooling():
                self._spool.write(view)
        self._size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: a part is sent when it is full."""

    def end(self) -> None:
        """Complete the upload. Raises Conflict if another object exists, and StoreError."""
        if self._spool is not None:
            with self._spooling():
                self._spool.close()
                self._client.put_file_if_absent(self._key, Path(self._spool.name))
            return
        if not self._upload:
            if self._probe is not None:
                self._client.put_if(self._key, bytes(self._data), None)
            else:
                self._client.put(self._key, bytes(self._data))
            return
        self._send()
        while self._sending:
            self._tags.append(self._sending.popleft().result())
        self._complete()
        self._upload = {}

    def _send(self) -> None:
        if self._pool is None:
            self._begin()
            if self._spool is not None:
                return
            self._pool = ThreadPoolExecutor(self._width, "sheaf-parts")
        while len(self._sending) >= self._width:
            self._tags.append(self._sending.popleft().result())
        number = len(self._tags) + len(self._sending) + 1
        if number > _PARTS:
            raise StoreError(
                f"{self._client.where(self._key)} is larger than {_PARTS * self._part_size:,} bytes"
            )
        data, self._data = self._data, bytearray()
        self._sending.append(self._pool.submit(s3_request.carry_tally(self._part), number, data))

    def _begin(self) -> None:
        if self._probe is not None:
            if self._client.has(self._key):
                raise Conflict(f"{self._client.where(self._key)} already exists")
            if not self._client.refuses_completion(self._probe):
                self._scratch = Scratch()
                with self._spooling():
                    self._spool = (self._scratch.path / "object").open("wb")
                    self._spool.write(self._data)
                return
        answer = self._ask(lambda s3: s3.create_multipart_upload(**self._name, ContentType=BYTES))
        self._upload = {**self._name, "UploadId": answer["UploadId"]}

    @contextlib.contextmanager
    def _spooling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self._client.where(self._key)}: cannot keep it on the disk, which this server "
                f"requires: {error.strerror}; free some space, or set TMPDIR to another folder"
            ) from error

    def _part(self, number: int, data: bytearray) -> str:
        what = {**self._upload, "PartNumber": number, "Body": data, "ContentMD5": md5_of(data)}

        def send(s3: Any) -> Any:
            if self._over:
                raise StoreError(f"{self._client.where(self._key)}: the upload was cancelled")
            return s3.upload_part(**what)

        return str(self._ask(send)["ETag"])

    def _complete(self) -> None:
        parts = [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(self._tags, 1)]
        what = {**self._upload, "MultipartUpload": {"Parts": parts}}
        if self._probe is not None:
            what["IfNoneMatch"] = "*"
        try:
            self._client.complete(self._key, what, self._is_ours)
        except (Conflict, MissingObject, DeadUploadError) as error:
            if isinstance(error, DeadUploadError) and not self._client.has(self._key):
                raise
            raise Conflict(f"{self._client.where(self._key)} already exists") from error

    def _ask(self, request: Callable[[Any], T], action: str = "s3:PutObject") -> T:
        return self._client.attempt(self._key, action, lambda: request(self._client.large))

    def _is_ours(self) -> bool:
        """Return whether the existing object consists of exactly these parts.

        For an object named by its content, only the size is compared.
        """
        try:
            present = self._client.piece(self._key, 0, 1)
        except MissingObject:
            return False
        if self._probe is None:
            return present.size == self._size
        digests = [_MD5.fullmatch(tag) for tag in self._tags]
        joined = b"".join(bytes.fromhex(digest[1]) for digest in digests if digest)
        tag = f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(digests)}"
        return all(digests) and present.tag.strip('"') == tag
