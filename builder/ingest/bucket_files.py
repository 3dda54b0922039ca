"""Archive files in buckets: finds them by s3:// addresses, and opens them as streams."""

import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from builder.errors import UsageError
from builder.ingest.splits import REPLACED, ArchiveFile
from builder.store.client import Listed, S3Client
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, MissingObject
from functions.snapshot.layout import StoreAddress
from functions.store.connection import BucketConnection
from functions.store.s3_request import ForbiddenObjectError
from functions.store.store_reader import ObjectStream

_BUFFER = 1 << 20  # bytes


def find(
    source: str, connection: BucketConnection, environment: Mapping[str, str]
) -> list[ArchiveFile]:
    """Return the object at the address, else all objects below it without a hidden part in the key.

    Raises UsageError if there is none or the address is invalid, and StoreError.
    """
    try:
        at = layout.parse_address(source)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from None
    client = _client(at.bucket, connection, tuple(sorted(environment.items())))
    if at.prefix and not source.endswith("/"):
        try:
            piece = client.piece(at.prefix, 0, 1)
        except MissingObject:
            pass
        else:
            named = _file(client, at.prefix, piece.size, _number(piece.tag))
            return [replace(named, named=True)]
    below = f"{at.prefix}/" if at.prefix else ""
    found = [
        _file(client, one.key, one.bytes, _number(one.tag))
        for one in sorted(client.list(below)[0], key=lambda one: one.key.encode())
        if not _is_hidden(one.key.removeprefix(below)) and not _marks_a_folder(one)
    ]
    if not found:
        raise UsageError(f"{source}: there is no such object or prefix")
    return found


def open_object(
    file: ArchiveFile, connection: BucketConnection, environment: Mapping[str, str]
) -> io.BufferedReader:
    """Open an object as a seekable stream.

    Raises OSError if it is missing or unavailable, and StoreError if the bucket is unavailable. The
    stream raises the same if the object is replaced or removed while it is read.
    """
    # A listed key may not be valid as a user's prefix, so it is not checked again.
    bucket, _, key = file.address.removeprefix(layout.S3_SCHEME).partition("/")
    client = _client(bucket, connection, tuple(sorted(environment.items())))
    with _wrap_changes():
        stream = _RemoteFile(client, key)
    if stream.size != file.bytes:
        stream.close()
        raise OSError(REPLACED)
    return io.BufferedReader(stream, _BUFFER)


class _RemoteFile(ObjectStream):
    """Stream of an object that raises OSError for its loss, as for one unreadable file."""

    def readinto(self, buffer: Any) -> int:
        with _wrap_changes():
            return super().readinto(buffer)


@contextmanager
def _wrap_changes() -> Iterator[None]:
    try:
        yield
    except (MissingObject, Conflict) as error:
        raise OSError(REPLACED) from error
    except ForbiddenObjectError as error:
        raise OSError(str(error)) from error


def _file(client: S3Client, key: str, size: int, modified: int) -> ArchiveFile:
    where = client.where(key)
    return ArchiveFile(Path(key), where, size, modified, where)


def _number(tag: str) -> int:
    """Return a number for an ETag that changes with the object, in place of a modification time."""
    return int.from_bytes(hashlib.sha256(tag.encode()).digest()[:6], "big")


def _is_hidden(key: str) -> bool:
    return any(part.startswith(".") for part in key.split("/"))


def _marks_a_folder(one: Listed) -> bool:
    return one.bytes == 0 and one.key.endswith("/")


@lru_cache(maxsize=8)
def _client(
    bucket: str, connection: BucketConnection, environment: tuple[tuple[str, str], ...]
) -> S3Client:
    return S3Client(StoreAddress(bucket), connection, dict(environment))
