"""Read access to a store: in a folder, in an S3 bucket or the like, or on a web server."""

import errno
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from functions.snapshot import layout
from functions.snapshot.errors import Conflict, DamagedStore, MissingObject, StoreError
from functions.snapshot.layout import StoreAddress, WebAddress
from functions.store.connection import ObjectClient, ObjectPart
from functions.store.mirror import GRACE, Mirror
from functions.store.window_stream import RangeFile

_OBJECT_FAULTS = frozenset(
    {errno.EIO, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ELOOP}
)
"""Errors of the operating system that concern one object, not the whole store."""


class BucketReader:
    """Reads the objects of a bucket below a prefix, or below a URL; implements Reader.

    It keeps sparse local files of large objects. They take at most `limit` bytes (None: no limit).
    Files used within the last `grace` seconds do not count. `small` is as in Mirror. Thread-safe.
    """

    def __init__(
        self,
        address: StoreAddress | WebAddress,
        client: ObjectClient,
        limit: int | None,
        grace: float = GRACE,
        small: int | None = None,
    ) -> None:
        self._address = address
        self._objects = client
        self.cache = Mirror(client, limit, grace=grace, small=small)

    @property
    def address(self) -> str:
        """The bucket and the prefix, s3://bucket/prefix, or the URL."""
        return str(self._address)

    def read(self, key: str) -> bytes:
        """Return the whole object. Raises MissingObject or StoreError."""
        return self._objects.get(self._address.key(key))[0]

    def tag(self, key: str) -> str | None:
        """Return the ETag of the object, or the time of its last change; None if it is missing."""
        part = self._read_first_byte(key)
        return None if part is None else part.tag

    def size(self, key: str) -> int | None:
        """Return the object's size in bytes, or None if it does not exist."""
        part = self._read_first_byte(key)
        return None if part is None else part.size

    def _read_first_byte(self, key: str) -> ObjectPart | None:
        try:
            return self._objects.piece(self._address.key(key), 0, 1)
        except MissingObject:
            return None

    def open(self, key: str) -> BinaryIO:
        """Return the object as a stream that holds two parts in memory at a time."""
        raw = open_object(self._objects, self._address.key(key))
        return cast(BinaryIO, io.BufferedReader(raw, 1 << 16))

    def local(
        self, key: str, spans: Sequence[tuple[int, int]] | None = None, size: int | None = None
    ) -> Path:
        """Return a file in which `spans` are correct; missing spans are fetched."""
        return self.cache.local(self._address.key(key), spans, size)

    def forget(self, key: str) -> None:
        """Remove the local files of an object, so that it is fetched again."""
        self.cache.forget(self._address.key(key))

    def close(self) -> None:
        """Remove the local files."""
        self.cache.close()


def remote_of(uri: str) -> StoreAddress | WebAddress | None:
    """Return the bucket or the web address in `uri`, or None for a folder.

    Raises StoreError for an invalid address.
    """
    if not uri:
        raise StoreError("the store's address is empty, expected a folder or s3://bucket/prefix")
    if "://" not in uri:
        return None
    try:
        web = uri.startswith(layout.WEB_SCHEMES)
        return layout.parse_web(uri) if web else layout.parse_address(uri)
    except ValueError as error:
        raise StoreError(f"the store's address cannot be used: {error}") from None


class FolderReader:
    """Reads the objects of a store in a folder; implements functions.snapshot.store.Reader."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def address(self) -> str:
        """The folder's path."""
        return str(self.root)

    def read(self, key: str) -> bytes:
        """Return the whole object. Raises MissingObject or StoreError."""
        with self._explaining(key) as path:
            return path.read_bytes()

    def open(self, key: str) -> BinaryIO:
        """Return the object's own file, open for reading."""
        with self._explaining(key) as path:
            return path.open("rb")

    @contextmanager
    def _explaining(self, key: str) -> Iterator[Path]:
        """Raise DamagedStore if the object alone cannot be read, StoreError if the store cannot."""
        path = self.path(key)
        try:
            yield path
        except FileNotFoundError as error:
            raise MissingObject(f"{self.root} has no {key}") from error
        except OSError as error:
            kind = DamagedStore if error.errno in _OBJECT_FAULTS else StoreError
            raise kind(f"{path} cannot be read: {error.strerror}") from error

    def forget(self, key: str) -> None:
        """Do nothing: there are no local copies."""

    def local(
        self, key: str, spans: Sequence[tuple[int, int]] | None = None, size: int | None = None
    ) -> Path:
        """Return the object's own file, which is complete."""
        path = self.path(key)
        try:
            there = path.is_file()
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error
        if not there:
            raise MissingObject(f"{self.root} has no {key}")
        return path

    def size(self, key: str) -> int | None:
        """Return the size of the object in bytes, or None if it does not exist."""
        path = self.path(key)
        try:
            return path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error

    def close(self) -> None:
        """Do nothing: no local copies are kept."""

    def path(self, key: str) -> Path:
        """Return the path of the object.

        Raises ValueError for a key that leads out of the store.
        """
        parts = key.split("/")
        if not all(parts) or {".", ".."} & set(parts) or "\0" in key:
            raise ValueError(f"{key!r} is not a key of a store")
        return self.root.joinpath(*parts)


def open_object(
    client: ObjectClient, key: str, start: int = 0, end: int | None = None
) -> RangeFile:
    """Return a stream of an object's bytes from `start` to `end` (None: to the object's end).

    The first part is read at once; two parts are in memory at most. Raises MissingObject and
    StoreError. The stream raises StoreError, for example if the object was replaced meanwhile.
    """
    part = client.connection.part
    first = client.piece(key, start, part if end is None else min(part, max(end - start, 1)))

    def read(place: int, length: int) -> bytes:
        try:
            return client.piece(key, place, length, first.tag).data
        except Conflict as error:  # of a writer, who would try again
            where = client.where(key)
            raise StoreError(f"{where} was replaced while it was being read") from error

    size = first.size if end is None else min(first.size, end)
    return RangeFile(read, size, at=start, data=first.data, least=part, most=part)
