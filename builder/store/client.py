"""S3 client for one bucket: reads, writes and lists through boto3.

A response can be lost although the write succeeded; a condition then fails when the request is
retried. So the object is compared with what was written.
"""

import base64
import hashlib
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from builder.store import aws
from functions.snapshot.errors import Conflict, MissingObject, StoreError, StoreUnavailable
from functions.snapshot.layout import S3_SCHEME, StoreAddress
from functions.snapshot.store import ListedObject
from functions.store import s3_request
from functions.store.connection import BucketConnection, ObjectClient, ObjectPart, tag_of
from functions.store.s3_request import Refusal

T = TypeVar("T")

BYTES = "application/octet-stream"

_CHUNK = 1 << 16  # bytes
_WRITE = "s3:PutObject"
_PROBE = b"Sheaf uses this object to check that the server honours conditions.\n"
_TOGETHER = 1000  # keys removed by one request
_LARGE = 10
"""Factor on `timeout` for requests that send a large object or a part."""

_SPAN = re.compile(r"bytes (\d+)-\d+/(\d+)")


class DeadUploadError(StoreUnavailable):
    """Another request came between: the upload in parts is dead, and has to begin again."""


class S3Client(ObjectClient):
    """Client for one bucket. boto3 is imported at the first request."""

    def __init__(
        self, address: StoreAddress, connection: BucketConnection, environment: Mapping[str, str]
    ) -> None:
        super().__init__(f"{S3_SCHEME}{address.bucket}", connection)
        self._bucket = address.bucket
        self._environment = environment
        self._clients: Sequence[Any] = ()
        self._lock = threading.Lock()
        self._running = 0
        self._ended = time.monotonic()
        self._bare = False
        self._probing = threading.Lock()
        self._refuses: bool | None = None

    def get(self, key: str) -> tuple[bytes, str]:
        """Return the whole object and its tag."""

        def request() -> tuple[bytes, str]:
            answer = self.small.get_object(**self.names(key))
            return self._body(answer), tag_of(answer.get("ETag"))

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
        condition = {} if tag is None else {"IfMatch": tag}
        wanted = f"bytes={offset}-{offset + length - 1}"

        def request() -> ObjectPart:
            try:
                answer = self.small.get_object(**self.names(key), Range=wanted, **condition)
            except aws.errors() as error:
                refusal = aws.refusal(error)
                if refusal is None or refusal.status != 416:
                    raise
                s3_request.add_to_tally(requests=1)
                answer = self.small.head_object(**self.names(key))  # an empty object has no range
                return ObjectPart(b"", answer["ContentLength"], tag_of(answer.get("ETag")))
            span = _SPAN.fullmatch(answer.get("ContentRange", ""))
            if (int(span[1]) if span else 0) != offset:
                raise StoreError(f"{self.where(key)}: the server ignores Range")
            size = int(span[2] if span else answer["ContentLength"])
            data = self._body(answer, stopped)[:length]
            return ObjectPart(data, size, tag_of(answer.get("ETag")))

        return self.attempt(key, "s3:GetObject", request)

    def put(self, key: str, data: bytes) -> None:
        """Write an object in one request."""
        what = {**self.names(key), "Body": data, "ContentMD5": md5_of(data)}
        self.attempt(key, "s3:PutObject", lambda: self.large.put_object(**what))

    def list(self, prefix: str, delimiter: str = "") -> tuple[list[ListedObject], list[str]]:
        """Return the objects whose keys in the bucket begin with `prefix`, in the server's order.

        The second value has the common prefixes of keys with the delimiter after `prefix`. Keys
        below them are not among the objects.
        """
        objects: list[ListedObject] = []
        folders: list[str] = []
        what = {"Bucket": self._bucket, "Prefix": prefix, "Delimiter": delimiter}
        while True:
            page = self.attempt(prefix, "s3:ListBucket", lambda: self.small.list_objects_v2(**what))
            objects += [
                ListedObject(row["Key"], row["Size"], row["LastModified"], tag_of(row.get("ETag")))
                for row in page.get("Contents", ())
            ]
            folders += [listed["Prefix"] for listed in page.get("CommonPrefixes", ())]
            if not page.get("IsTruncated") or not page.get("NextContinuationToken"):
                return objects, folders
            what["ContinuationToken"] = page["NextContinuationToken"]

    def abort_uploads(self, prefix: str, before: datetime) -> int:
        """Abort the uploads in parts below `prefix` that began before then; return their number.

        Raises StoreError.
        """
        what: dict[str, Any] = {"Bucket": self._bucket, "Prefix": prefix}
        many = 0
        while True:
            page = self.attempt(
                prefix,
                "s3:ListBucketMultipartUploads",
                lambda: self.small.list_multipart_uploads(**what),
            )
            for begun in page.get("Uploads") or ():
                if begun["Initiated"] < before:
                    self.abort(begun["Key"], begun["UploadId"])
                    many += 1
            if not page.get("IsTruncated"):
                return many
            what["KeyMarker"] = page["NextKeyMarker"]
            what["UploadIdMarker"] = page["NextUploadIdMarker"]

    def abort(self, key: str, upload: str) -> None:
        """Abort an upload in parts, unless it ended. Raises StoreError."""
        what = {"Bucket": self._bucket, "Key": key, "UploadId": upload}
        with suppress(MissingObject):  # it ended meanwhile
            self.attempt(
                key, "s3:AbortMultipartUpload", lambda: self.small.abort_multipart_upload(**what)
            )

    def remove(self, keys: Sequence[str]) -> None:
        """Remove the objects, a thousand with each request; a missing object is not an error."""
        for start in range(0, len(keys), _TOGETHER):
            batch = keys[start : start + _TOGETHER]
            where = batch[0] if len(batch) == 1 else f"{batch[0]} and {len(batch) - 1} more"
            what = {"Objects": [{"Key": key} for key in batch], "Quiet": False}

            def request(what: Any = what, batch: Sequence[str] = batch) -> None:
                answer = self.small.delete_objects(Bucket=self._bucket, Delete=what)
                for error in answer.get("Errors", ()):
                    raise aws.error_of_key(error.get("Code", ""), "DeleteObjects")
                # A list that was damaged on the way may be answered as if it were empty.
                if len(answer.get("Deleted", ())) < len(batch):
                    raise aws.error_of_key("InternalError", "DeleteObjects")

            self.attempt(where, "s3:DeleteObject", request, self.connection.removal_seconds)

    def refusal(self, error: Exception) -> Refusal | None:
        """Return the meaning of an error of boto3; None for any other error."""
        return aws.refusal(error)

    def attempt(self, key: str, action: str, request: Callable[[], T], most: float = math.inf) -> T:
        """Send a request until there is a response (see ObjectClient.attempt)."""
        with self._in_use():
            return super().attempt(key, action, request, most)

    @property
    def large(self) -> Any:
        """The boto3 client for requests that send much data."""
        return self._both()[1]

    @property
    def small(self) -> Any:
        """The boto3 client for requests that send little."""
        return self._both()[0]

    def _both(self) -> Sequence[Any]:
        with self._lock:
            if not self._clients:
                timeout = self.connection.timeout
                self._clients = aws.s3(
                    self._bucket, self.connection, self._environment, (timeout, timeout * _LARGE)
                )
            return self._clients

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Mark a request as running; first close connections that were idle for too long."""
        with self._lock:
            if not self._running and time.monotonic() - self._ended > self.connection.idle:
                for client in self._clients:
                    client.close()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                self._ended = time.monotonic()

    def names(self, key: str) -> dict[str, Any]:
        """Return the arguments that name the object in a boto3 call."""
        return {"Bucket": self._bucket, "Key": key}

    def _body(self, answer: Any, stopped: Callable[[], bool] = lambda: False) -> bytes:
        end = time.monotonic() + self.connection.longest
        data = bytearray()
        with closing(answer["Body"]) as body:
            while chunk := body.read(_CHUNK):
                if stopped():
                    raise StoreError("the read was cancelled")
                if time.monotonic() > end:
                    raise TimeoutError("the response took too long")
                s3_request.add_to_tally(size=len(chunk))
                data += chunk
        return bytes(data)

    def put_if(
        self, key: str, data: bytes, tag: str | None, headers: Mapping[str, str] | None = None
    ) -> str:
        """Write an object if its tag is `tag` (None: if there is none), and return its new tag.

        `headers` are further arguments of boto3, such as ContentType.

        Ceph 16 knows a tag without its quotes only, so a server that refuses the tag that it gives
        is asked that way. Raises Conflict.
        """
        if tag is None or not self._bare:
            try:
                return self.put_once(key, data, tag, headers)
            except Conflict:
                if tag is None or self._tag(key) != tag:
                    raise
        written = self.put_once(key, data, tag.strip('"'), headers)
        self._bare = True
        return written

    def put_once(
        self, key: str, data: bytes, tag: str | None, headers: Mapping[str, str] | None = None
    ) -> str:
        """Write as `put_if` does, but only with the tag as it is given. Raises Conflict."""
        condition = {"IfNoneMatch": "*"} if tag is None else {"IfMatch": tag}
        content = {"Body": data, "ContentMD5": md5_of(data), **(headers or {})}
        what = {**self.names(key), **content, **condition}
        tries = 0

        def request() -> str:
            nonlocal tries
            tries += 1
            return tag_of(self.small.put_object(**what).get("ETag"))

        removed = f"{self.where(key)} was removed by another process"
        try:
            return self.attempt(key, _WRITE, request)
        except MissingObject:
            raise Conflict(removed) from None
        except Conflict:
            if tries > 1:
                try:
                    present, now = self.get(key)
                except MissingObject:
                    raise Conflict(removed) from None
                if present == data:
                    return now
            raise

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """Write an object from a file, read in blocks, if there is no such object.

        Raises Conflict, and OSError if the file cannot be read.
        """
        tries = 0
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
            what = {**self.names(key), "ContentType": BYTES, "IfNoneMatch": "*"}
            what["ContentMD5"] = base64.b64encode(digest.digest()).decode()

            def request() -> None:
                nonlocal tries
                tries += 1
                file.seek(0)
                self.large.put_object(**what, Body=file)

            try:
                self.attempt(key, _WRITE, request)
            except Conflict:
                if tries == 1 or (self._tag(key) or "").strip('"') != digest.hexdigest():
                    raise

    def _tag(self, key: str) -> str | None:
        with suppress(MissingObject):
            return self.piece(key, 0, 1).tag
        return None

    def complete(
        self, key: str, what: dict[str, Any], is_ours: Callable[[], bool] = lambda: False
    ) -> None:
        """Complete an upload in parts, unless a request whose response was lost has done so.

        `is_ours` tells that of the object. After a 409 S3 knows the upload no more, so that asking
        again would be in vain. Raises DeadUploadError then, and StoreError.
        """
        tries = 0

        def request() -> None:
            nonlocal tries
            tries += 1
            try:
                self.large.complete_multipart_upload(**what)
            except Exception as error:
                refusal = self.refusal(error)
                if refusal is not None and refusal.status == 409:
                    raise DeadUploadError(
                        f"{self.where(key)}: another request came between; run again later"
                    ) from error
                raise

        try:
            self.attempt(key, _WRITE, request)
        except (Conflict, MissingObject, DeadUploadError):
            if tries == 1 or not is_ours():
                raise

    def refuses_completion(self, key: str) -> bool:
        """Return whether an upload in parts cannot replace the object `key`, which exists.

        Older servers, as Ceph 16, do not look at If-None-Match then. They are asked once. Raises
        StoreError.
        """
        with self._probing:
            if self._refuses is None:
                self._refuses = self._probe(key)
            return self._refuses

    def _probe(self, key: str) -> bool:
        def ask(operation: str, **more: Any) -> Any:
            return self.attempt(key, _WRITE, lambda: getattr(self.large, operation)(**more))

        upload = ask("create_multipart_upload", **self.names(key))["UploadId"]
        what = {**self.names(key), "UploadId": upload}
        try:
            part = {"PartNumber": 1, "Body": _PROBE, "ContentMD5": md5_of(_PROBE)}
            parts = [{"PartNumber": 1, "ETag": ask("upload_part", **what, **part)["ETag"]}]
            what["MultipartUpload"] = {"Parts": parts}
            self.complete(key, {**what, "IfNoneMatch": "*"})
        except MissingObject:
            return False  # it was completed before, by a request whose response was lost
        except DeadUploadError:
            return True  # by the condition, which another test of this object came between
        except StoreError as error:
            with suppress(StoreError):  # the first error says more
                self.abort(key, upload)
            if isinstance(error, Conflict):
                return True
            raise
        return False


def md5_of(data: bytes | bytearray) -> str:
    """Return the MD5 of `data` in the form of the header Content-MD5."""
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
