"""Byte ranges of objects below an address: in a folder, in a bucket or on a web server."""

import errno
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from functions.config.configuration import Configuration
from functions.snapshot.errors import MissingObject, StoreError, describe_failure
from functions.snapshot.layout import S3_SCHEME, StoreAddress, WebAddress, is_key
from functions.snapshot.store import Reader
from functions.store.client import Client, WebClient
from functions.store.connection import BucketConnection, ObjectClient
from functions.store.mirror import GRACE
from functions.store.store_reader import BucketReader, FolderReader, open_object, remote_of
from functions.store.window_stream import PieceStream

_AT_ONCE = 1 << 16  # bytes
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


class Slices(Protocol):
    """Reads objects below one address; keys have `/` between their parts. Thread-safe."""

    @property
    def address(self) -> str:
        """The address for messages: a folder's path, or s3://bucket/prefix."""
        ...

    def open(self, key: str, offset: int, length: int | None) -> BinaryIO:
        """Return `length` bytes of an object (None: all) from `offset`, or fewer at its end.

        Raises MissingObject, StoreError, or ValueError for a key that leads out of the address.
        """
        ...

    def size(self, key: str) -> int:
        """Return the size of the object in bytes. Raises as `open` does."""
        ...

    def bucket(self, key: str) -> tuple[str, str]:
        """Return the object's bucket and its key there; empty strings for a folder."""
        ...


class FolderSlices:
    """Implements Slices over a folder."""

    def __init__(self, root: Path) -> None:
        self._folder = FolderReader(root)

    @property
    def address(self) -> str:
        """The folder's path."""
        return self._folder.address

    def open(self, key: str, offset: int, length: int | None) -> BinaryIO:
        """Return bytes of a file (see Slices.open)."""
        path = self._path(key)
        try:
            status = path.stat()
        except OSError as error:
            if error.errno in _ABSENT:
                raise MissingObject(f"{self._folder.root} has no {key}") from error
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would block until a writer appears
            raise MissingObject(f"{path} is not a file")
        file = self._folder.open(key)
        file.seek(min(offset, status.st_size))
        pieces = _read_part(file, sys.maxsize if length is None else length)
        return cast(BinaryIO, PieceStream(pieces, file))

    def size(self, key: str) -> int:
        """Return the size of the file in bytes."""
        self._path(key)
        size = self._folder.size(key)
        if size is None:
            raise MissingObject(f"{self._folder.root} has no {key}")
        return size

    def below(self, name: str) -> list[str]:
        """Return the keys of files called `name` in subfolders, unless the folder has one."""
        root = Path(self.address)
        folders = [Path(folder) for folder, _, names in os.walk(root) if name in names]
        if root in folders:
            return []
        return sorted((folder.relative_to(root) / name).as_posix() for folder in folders)

    def bucket(self, key: str) -> tuple[str, str]:
        """Return empty strings: a folder has no bucket."""
        return "", ""

    def _path(self, key: str) -> Path:
        if not is_key(key):
            raise ValueError(f"{key!r} is not a key of a folder")
        return self._folder.path(key)


class BucketSlices:
    """Implements Slices over a bucket or a URL; one part of an object is in memory at a time."""

    def __init__(self, address: StoreAddress | WebAddress, client: ObjectClient) -> None:
        self._address = address
        self._client = client

    @property
    def address(self) -> str:
        """The bucket and the prefix."""
        return str(self._address)

    def open(self, key: str, offset: int, length: int | None) -> BinaryIO:
        """Return bytes of an object (see Slices.open); a small range takes one request."""
        end = None if length is None else offset + length
        return cast(BinaryIO, open_object(self._client, self._address.key(key), offset, end))

    def size(self, key: str) -> int:
        """Return the size of the object in bytes."""
        return self._client.piece(self._address.key(key), 0, 1).size

    def bucket(self, key: str) -> tuple[str, str]:
        """Return the object's bucket and key; empty strings on a web server."""
        if isinstance(self._address, WebAddress):
            return "", ""
        return self._address.bucket, self._address.key(key)


def _read_part(file: BinaryIO, length: int) -> Iterator[bytes]:
    """Yield the next `length` bytes of a file. Raises StoreError."""
    while length > 0:
        try:
            data = file.read(min(length, _AT_ONCE))
        except OSError as error:
            raise StoreError(f"it cannot be read: {describe_failure(error)}") from error
        if not data:
            return
        length -= len(data)
        yield data


def open_slices(
    uri: str, base: Path, settings: Configuration, environment: Mapping[str, str]
) -> Slices:
    """Return the slices below `uri`: a bucket, a web address, or a folder relative to `base`.

    Raises StoreError if the address is invalid.
    """
    at = remote_of(uri)
    if at is None:
        return FolderSlices((base / uri).resolve())
    return BucketSlices(at, open_client(at, BucketConnection.serving(settings), environment))


def open_client(
    at: StoreAddress | WebAddress, connection: BucketConnection, environment: Mapping[str, str]
) -> ObjectClient:
    """Return a client that reads the objects at an address. Raises StoreError."""
    if isinstance(at, WebAddress):
        return WebClient(at.url, connection)
    return Client(at, connection, environment)


def split_address(address: str) -> tuple[str, str]:
    """Return the address of a file's folder, for `open_slices`, and its key there."""
    if address.startswith(S3_SCHEME):
        place, _, name = address.rpartition("/")
        return (place, name) if len(place) > len(S3_SCHEME) else (address, "")
    path = Path(address)
    return str(path.parent), path.name


def open_reader(
    uri: str,
    base: Path,
    settings: Configuration,
    environment: Mapping[str, str],
    grace: float = GRACE,
) -> Reader:
    """Return a reader of the store at `uri`: a bucket, a web address, or a path below `base`.

    A bucket's local files take up to `store.cache` MiB; a returned file stays for `grace` seconds.
    Raises StoreError if the address is invalid.
    """
    at = remote_of(uri)
    if at is not None:
        client = open_client(at, BucketConnection.serving(settings), environment)
        return BucketReader(at, client, settings["store.cache"] << 20, grace)
    return FolderReader((base / uri).resolve())
