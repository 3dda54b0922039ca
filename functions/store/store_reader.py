"""Read access to a store: in a folder, in an S3 bucket or the like, or on a web server."""

import errno
import io
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, BinaryIO, cast

from functions.snapshot import layout
from functions.snapshot.errors import Conflict, DamagedStore, MissingObject, StoreError
from functions.snapshot.layout import StoreAddress, WebAddress
from functions.store import s3_request
from functions.store.connection import ObjectClient, ObjectPart
from functions.store.mirror import KEPT, Mirror
from functions.store.window_stream import WindowStream

_OWN_FAULTS = frozenset(
    {errno.EIO, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ELOOP}
)
"""Errors of the operating system that concern one object."""


class BucketReader:
    """Reads the objects of a bucket below a prefix, or below a URL; implements Reader.

    It keeps sparse local files of large objects. They take at most `limit` bytes (None: no limit).
    Files used within the last `kept` seconds do not count. `small` is as in Mirror. Thread-safe.
    """

    def __init__(
        self,
        address: StoreAddress | WebAddress,
        client: ObjectClient,
        limit: int | None,
        kept: float = KEPT,
        small: int | None = None,
    ) -> None:
        self._address = address
        self._objects = client
        self.cache = Mirror(client, limit, kept=kept, small=small)

    @property
    def address(self) -> str:
        """The bucket and the prefix, s3://bucket/prefix, or the URL."""
        return str(self._address)

    def read(self, key: str) -> bytes:
        """Return the whole object. Raises MissingObject or StoreError."""
        return self._objects.get(self._address.key(key))[0]

    def tag(self, key: str) -> str | None:
        """Return the ETag of the object, or the time of its last change; None if it is missing."""
        found = self._find(key)
        return None if found is None else found.tag

    def size(self, key: str) -> int | None:
        """Return the object's size in bytes, or None if it does not exist."""
        found = self._find(key)
        return None if found is None else found.size

    def _find(self, key: str) -> ObjectPart | None:
        try:
            return self._objects.piece(self._address.key(key), 0, 1)
        except MissingObject:
            return None

    def open(self, key: str) -> BinaryIO:
        """Return the object as a stream that holds one part in memory at a time."""
        raw = _BucketStream(self._objects, self._address.key(key))
        return cast(BinaryIO, io.BufferedReader(raw, self._objects.connection.part))

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


class _BucketStream(io.RawIOBase):
    def __init__(self, client: ObjectClient, key: str) -> None:
        self._client = client
        self._key = key
        self._offset = 0
        # A missing object raises here. The tag ties the later ranges to this version of the object.
        first = client.piece(key, 0, client.connection.part)
        self._ready, self._size, self._tag = first.data, first.size, first.tag

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        if not self._ready and self._offset < self._size:
            self._ready = self._next()
        count = min(len(view), len(self._ready))
        view[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        self._offset += count
        return count

    def _next(self) -> bytes:
        try:
            piece = self._client.piece(
                self._key, self._offset, self._client.connection.part, self._tag
            )
        except Conflict as error:
            raise StoreError(
                f"{self._client.where(self._key)} was replaced while it was being read"
            ) from error
        return piece.data


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
        try:
            return self.path(key).read_bytes()
        except FileNotFoundError as error:
            raise MissingObject(f"{self.root} has no {key}") from error
        except OSError as error:
            raise _explain(self.path(key), error) from error

    def open(self, key: str) -> BinaryIO:
        """Return the object's own file, open for reading."""
        try:
            return self.path(key).open("rb")
        except FileNotFoundError as error:
            raise MissingObject(f"{self.root} has no {key}") from error
        except OSError as error:
            raise _explain(self.path(key), error) from error

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


def _explain(path: Path, error: OSError) -> StoreError:
    """Return DamagedStore if the object alone cannot be read, StoreError if the store cannot."""
    kind = DamagedStore if error.errno in _OWN_FAULTS else StoreError
    return kind(f"{path} cannot be read: {error.strerror}")


class ObjectStream(WindowStream):
    """The bytes of an object from `start` to `end` (None: its end); two parts are in memory.

    Raises MissingObject, Conflict if the object was replaced meanwhile, or StoreError.
    """

    def __init__(
        self, client: ObjectClient, key: str, start: int = 0, end: int | None = None
    ) -> None:
        self._client = client
        self._key = key
        self._part = client.connection.part
        self._ahead: tuple[int, Future[ObjectPart]] | None = None
        wanted = self._part if end is None else min(self._part, max(end - start, 1))
        first = client.piece(key, start, wanted)
        self.tag = first.tag
        super().__init__(first.size if end is None else min(first.size, end), start)
        self._take(start, first)

    def _fetch(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead and ahead[0] == self._at:
            self._take(self._at, ahead[1].result())
        else:
            self._take(self._at, self._piece(self._at))

    def _take(self, place: int, piece: ObjectPart) -> None:
        behind = self._show(place, piece.data)
        if piece.data and behind < self.size:
            self._ahead = behind, self._pool.submit(s3_request.carry_tally(self._piece), behind)

    def _piece(self, place: int) -> ObjectPart:
        length = min(self._part, self.size - place)
        return self._client.piece(self._key, place, length, self.tag)
