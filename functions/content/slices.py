"""Slices of a bucket that are asked for twice: what is described is mostly read next."""

import io
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from functions.database.cache import LruCache
from functions.store.slice import Slices

SMALL = 1 << 20
"""Bytes of the first request for a slice: most records are smaller."""

_KEPT = 16 << 20


class KeptSlices:
    """Implements functions.store.slice.Slices over a bucket's. Safe to use from threads.

    The first SMALL bytes of a slice are had by one request, and kept; more are asked for only once
    they are read.
    """

    def __init__(self, slices: Slices, kept: int = _KEPT) -> None:
        """`kept` is how many bytes of slices are kept."""
        self._slices = slices
        self._kept: LruCache[bytes] = LruCache(kept)
        self.size = slices.size
        self.bucket = slices.bucket

    @property
    def address(self) -> str:
        """The place, as people write it."""
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
    """Bytes that are there, and behind them a stream that is opened once they were read."""

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
