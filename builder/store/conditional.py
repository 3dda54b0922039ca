"""Writes to a bucket on condition that an object is as expected, or is not there.

A response can be lost although the write succeeded; the condition then fails when the request is
retried. So the object is compared with what was written.
"""

import base64
import hashlib
import threading
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from functions.snapshot.errors import Conflict, MissingObject, StoreError, StoreUnavailable
from functions.store.connection import BucketConnection, ObjectClient, tag_of

BYTES = "application/octet-stream"

_WRITE = "s3:PutObject"
_PROBE = b"Sheaf uses this object to check that the server honours conditions.\n"


class DeadUploadError(StoreUnavailable):
    """Another request came between: the upload in parts is dead, and has to begin again."""


class ConditionalClient(ObjectClient):
    """The part of a bucket's client that writes on condition."""

    def __init__(self, root: str, connection: BucketConnection) -> None:
        super().__init__(root, connection)
        self._bare = False
        self._probing = threading.Lock()
        self._refuses: bool | None = None

    @abstractmethod
    def names(self, key: str) -> dict[str, Any]:
        """Return the arguments that name the object in a boto3 call."""

    @abstractmethod
    def abort(self, key: str, upload: str) -> None:
        """Abort an upload in parts, unless it ended. Raises StoreError."""

    @property
    @abstractmethod
    def small(self) -> Any:
        """The boto3 client for requests that send little."""

    @property
    @abstractmethod
    def large(self) -> Any:
        """The boto3 client for requests that send much data."""

    def put_if(self, key: str, data: bytes, tag: str | None) -> str:
        """Write an object if its tag is `tag` (None: if there is none), and return its new tag.

        Ceph 16 knows a tag without its quotes only, so a server that refuses the tag that it gives
        is asked that way. Raises Conflict.
        """
        if tag is None or not self._bare:
            try:
                return self.put_once(key, data, tag)
            except Conflict:
                if tag is None or self._tag(key) != tag:
                    raise
        written = self.put_once(key, data, tag.strip('"'))
        self._bare = True
        return written

    def put_once(self, key: str, data: bytes, tag: str | None) -> str:
        """Write as `put_if` does, but only with the tag as it is given. Raises Conflict."""
        condition = {"IfNoneMatch": "*"} if tag is None else {"IfMatch": tag}
        what = {**self.names(key), "Body": data, "ContentMD5": md5_of(data), **condition}
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
                    found, now = self.get(key)
                except MissingObject:
                    raise Conflict(removed) from None
                if found == data:
                    return now
            raise

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """Write an object from a file, read in blocks, if there is no such object.

        Raises Conflict, and OSError if the file cannot be read.
        """
        tries = 0
        with path.open("rb") as file:
            found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
            what = {**self.names(key), "ContentType": BYTES, "IfNoneMatch": "*"}
            what["ContentMD5"] = base64.b64encode(found.digest()).decode()

            def request() -> None:
                nonlocal tries
                tries += 1
                file.seek(0)
                self.large.put_object(**what, Body=file)

            try:
                self.attempt(key, _WRITE, request)
            except Conflict:
                if tries == 1 or (self._tag(key) or "").strip('"') != found.hexdigest():
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
