"""Archive files in buckets: finds them by s3:// addresses, and opens them as streams.

An object is known by its size and ETag. Streams read nothing of another object in its place.
"""

import io
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from builder.errors import UsageError
from builder.sources.webarchives.ingest import splits
from builder.sources.webarchives.ingest.splits import REPLACED, ArchiveFile
from builder.store.client import S3Client
from builder.threads import map_requests
from functions.config.configuration import Configuration
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, MissingObject
from functions.snapshot.layout import StoreAddress
from functions.store.connection import BucketConnection
from functions.store.s3_request import ForbiddenObjectError
from functions.store.window_stream import RangeFile

_BUFFER = 1 << 18  # bytes


def find(source: str, settings: Configuration, environment: Mapping[str, str]) -> list[ArchiveFile]:
    """Return the object at the address, else all objects below it without a hidden part in the key.

    The heads of large ones are read side by side, to tell whether the objects can be split. Raises
    UsageError if there is none or the address is invalid, and StoreError.
    """
    try:
        at = layout.parse_address(source)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from None
    if at.prefix and not source.endswith("/"):
        with suppress(MissingObject):
            return [*find_object(at.bucket, at.prefix, settings, environment)]
    client = _client(at.bucket, BucketConnection.of(settings), tuple(sorted(environment.items())))
    below = f"{at.prefix}/" if at.prefix else ""
    files = [
        _file(client, listed.key, listed.bytes, _number(listed.tag))
        for listed in sorted(client.list(below)[0], key=lambda listed: listed.key.encode())
        if not any(part.startswith(".") for part in listed.key.removeprefix(below).split("/"))
        and (listed.bytes or not listed.key.endswith("/"))
    ]
    if not files:
        raise UsageError(f"{source}: there is no such object or prefix")
    return _find_ranged(client, files)


def find_object(
    bucket: str, key: str, settings: Configuration, environment: Mapping[str, str]
) -> tuple[ArchiveFile, ...]:
    """Return the object of any key, also of one that no address can have.

    Raises MissingObject and StoreError.
    """
    client = _client(bucket, BucketConnection.of(settings), tuple(sorted(environment.items())))
    piece = client.piece(key, 0, 1)
    file = replace(_file(client, key, piece.size, _number(piece.tag)), named=True)
    return tuple(_find_ranged(client, [file]))


def open_range(
    file: ArchiveFile,
    end: int | None,
    connection: BucketConnection,
    environment: Mapping[str, str],
    *,
    whole: bool = False,
) -> io.BufferedReader:
    """Open an object as a seekable stream that fetches ranges up to `end` (None: its end).

    It reads behind `end` when asked to, in small ranges. With `whole`, ranges are never small, and
    the first bytes are read at once. The stream raises OSError if the object is missing, replaced
    or unavailable, and StoreError if the bucket is unavailable.
    """
    bucket, key = _parse(file)
    client = _client(bucket, connection, tuple(sorted(environment.items())))
    stream = _open_ranges(client, key, file, end, connection.part if whole else None)
    if whole:
        stream.peek(1)
    return stream


def _open_ranges(
    client: S3Client, key: str, file: ArchiveFile, end: int | None, least: int | None = None
) -> io.BufferedReader:
    tag: str | None = None

    def read(start: int, length: int) -> bytes:
        nonlocal tag
        try:
            piece = client.piece(key, start, length, tag)
        except (MissingObject, Conflict) as error:
            raise OSError(REPLACED) from error
        except ForbiddenObjectError as error:
            raise OSError(str(error)) from error
        if (piece.size, _number(piece.tag)) != (file.bytes, file.modified):
            raise OSError(REPLACED)
        tag = piece.tag  # another object is then refused before it is sent
        return piece.data

    return io.BufferedReader(RangeFile(read, file.bytes, end, least=least), _BUFFER)


def _find_ranged(client: S3Client, files: list[ArchiveFile]) -> list[ArchiveFile]:
    """Return the files, with those marked that may be split."""

    def look(file: ArchiveFile) -> ArchiveFile:
        try:
            with _open_ranges(client, _parse(file)[1], file, None) as stream:
                return replace(file, ranged=splits.is_ranged(stream, file.is_likely))
        except OSError:  # reading it reports the error
            return file

    large = [file for file in files if file.bytes >= splits.RANGED_FROM]
    looked = iter(map_requests(look, large))
    return [next(looked) if file.bytes >= splits.RANGED_FROM else file for file in files]


def _file(client: S3Client, key: str, size: int, modified: int) -> ArchiveFile:
    where = client.where(key)
    return ArchiveFile(Path(key), where, size, modified, where)


def _number(tag: str) -> int:
    """Return a number for an ETag; some servers give it without quotes in listings."""
    return splits.number_validator('"' + tag.strip('"') + '"')


def _parse(file: ArchiveFile) -> tuple[str, str]:
    """Return the bucket and the key; a listed key may be invalid as a user's prefix."""
    bucket, _, key = file.address.removeprefix(layout.S3_SCHEME).partition("/")
    return bucket, key


@lru_cache(maxsize=8)
def _client(
    bucket: str, connection: BucketConnection, environment: tuple[tuple[str, str], ...]
) -> S3Client:
    return S3Client(StoreAddress(bucket), connection, dict(environment))
