"""Read access to a store in an S3 bucket, or on a server with the same API."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from functions.snapshot import address
from functions.snapshot.address import StoreAddress
from functions.snapshot.errors import Conflict, StoreError
from functions.store.mirror import KEPT, Mirror
from functions.store.object import ObjectClient


class ObjectCache(Protocol):
    """Local files of a bucket's objects, by their keys in the bucket. Thread-safe."""

    def local(self, key: str, spans: Sequence[tuple[int, int]] | None) -> Path:
        """Return a file in which `spans` are correct (Mirror.local)."""
        ...

    def parts(self, key: str, size: int, spans: Sequence[tuple[int, int]]) -> list[Path]:
        """Return files of the spans (Mirror.parts)."""
        ...

    def close(self) -> object:
        """Remove the files, or end their use."""
        ...


class BucketReader:
    """Reads the objects of a bucket below a prefix; implements functions.snapshot.store.Reader.

    It keeps sparse local files of large objects. They take at most `limit` bytes (None: no limit).
    Files used within the last `kept` seconds do not count. If `cache` is given, it keeps the files
    instead. Thread-safe.
    """

    def __init__(
        self,
        address: StoreAddress,
        client: ObjectClient,
        limit: int | None,
        kept: float = KEPT,
        cache: ObjectCache | None = None,
    ) -> None:
        self._address = address
        self._objects = client
        self.cache: ObjectCache
        if cache is None:
            self.cache = self._mirror = Mirror(client, limit, kept=kept)
        else:
            self.cache = cache

    @property
    def address(self) -> str:
        """The bucket and the prefix: s3://bucket/prefix."""
        return str(self._address)

    def read(self, key: str) -> bytes:
        """Return the whole object. Raises MissingObject or StoreError."""
        return self._objects.get(self._address.key(key))[0]

    def open(self, key: str) -> BinaryIO:
        """Return the object as a stream that holds one part in memory at a time."""
        raw = _BucketStream(self._objects, self._address.key(key))
        return cast(BinaryIO, io.BufferedReader(raw, self._objects.connection.part))

    def local(self, key: str, spans: Sequence[tuple[int, int]] | None = None) -> Path:
        """Return a file in which `spans` are correct; missing spans are fetched."""
        return self.cache.local(self._address.key(key), spans)

    def parts(self, key: str, size: int, spans: Sequence[tuple[int, int]]) -> Sequence[Path]:
        """Return files of the spans, or of the whole object; adjacent spans are fetched at once."""
        return self.cache.parts(self._address.key(key), size, spans)

    def close(self) -> None:
        """Remove the local files."""
        self.cache.close()


def bucket_of(uri: str) -> StoreAddress | None:
    """Return the bucket in `uri`, or None for a folder.

    Raises StoreError for an invalid address.
    """
    if not uri:
        raise StoreError("the store's address is empty, expected a folder or s3://bucket/prefix")
    if "://" not in uri:
        return None
    try:
        return address.parse(uri)
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
