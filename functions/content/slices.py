"""Cache for slices of a bucket: a described record is usually read next."""

import io
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from functions.database.cache import LruCache
from functions.store.slice import Slices

SMALL = 1 << 20
"""Bytes of the first request for a slice: most records are smaller."""

_KEPT = 16 << 20


class KeptSlices:
    """Implements functions.store.slice.Slices over a bucket's slices. Thread-safe.

    One request fetches the first SMALL bytes of a slice, which are cached. The rest is requested
    only when it is read.
    """

    def __init__(self, slices: Slices, kept: int = _KEPT) -> None:
        """`kept` is the size of the cache in bytes."""
        self._slices = slices
        self._kept: LruCache[bytes] = LruCache(kept)
        self.size = slices.size
        self.bucket = slices.bucket

    @property
    def address(self) -> str:
        """The address for messages."""
        return self._slices.address

    def open(self, key: str, offset: int, length: int | None) -> BinaryIO:
        """Return bytes of an object (see Slices.open)."""
        first = SMALL if length is None else min(length, SMALL)
        at = (key, offset, first)
        data = self._kept.find(at)
        if data is None:
            with self._slices.open(key, offset, first) as stream:
                data = io.BufferedReader(cast(io.RawIOBase, stream), first or 1).read()
            self._kept.add(at, data, len(data) + 256)
        if len(data) < first or length == first:
            return io.BytesIO(data)
        left = None if length is None else length - first
        return cast(BinaryIO, _Chain(data, lambda: self._slices.open(key, offset + first, left)))


class _Chain(io.RawIOBase):
    """Bytes in memory, followed by a stream that is opened when they are used up."""

    def __init__(self, data: bytes, opened: Callable[[], BinaryIO]) -> None:
        self._data = memoryview(data)
        self._opened = opened
        self._stream: BinaryIO | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._data:
            piece = self._data[: len(buffer)]
            self._data = self._data[len(piece) :]
        else:
            self._stream = self._stream or self._opened()
            piece = memoryview(self._stream.read(len(buffer)))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        super().close()
