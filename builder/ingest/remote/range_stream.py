"""Stream of a remote file that is read in ranges: seekable, and ahead of its reader."""

import io
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

PART = 8 << 20
"""Bytes of the largest range; two are in memory."""
_FIRST = 1 << 18
_GROWTH = 4


class RangeStream(io.RawIOBase):
    """A file of `size` bytes; `read(start, length)` returns a range of it and may raise OSError.

    Ranges are small at first and after a jump, and grow while the reader goes on. The next one is
    then fetched ahead, but not behind `end` (None: the file's end): only the last record that
    begins before `end` is read further.
    """

    def __init__(
        self, read: Callable[[int, int], bytes], size: int, end: int | None = None
    ) -> None:
        self.size = size
        self._read = read
        self._end = size if end is None else end
        self._step = _FIRST
        self._pool: ThreadPoolExecutor | None = None
        self._ahead: tuple[int, Future[bytes]] | None = None
        self._data = memoryview(b"")
        self._from = 0  # the offset in the file of the first byte of _data
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to another offset; the next read fetches from there."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the current range; 0 at the file's end. Raises OSError."""
        if self._at >= self.size:
            return 0
        if not self._from <= self._at < self._from + len(self._data):
            self._fetch()
        start = self._at - self._from
        piece = self._data[start : start + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def close(self) -> None:
        """Drop the fetched ranges."""
        if self._pool:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._data = memoryview(b"")
        super().close()

    def _fetch(self) -> None:
        goes_on = self._at == self._from + len(self._data) and len(self._data) > 0
        self._step = min(self._step * _GROWTH, PART) if goes_on else _FIRST
        ahead, self._ahead = self._ahead, None
        if ahead and ahead[0] == self._at:
            data = ahead[1].result()
        else:
            data = self._read(self._at, self._length(self._at))
        self._from, self._data = self._at, memoryview(data)
        behind = self._at + len(data)
        if goes_on and behind < min(self._end, self.size):
            self._pool = self._pool or ThreadPoolExecutor(1, "sheaf-ranges")
            self._ahead = behind, self._pool.submit(self._read, behind, self._length(behind))

    def _length(self, start: int) -> int:
        """Return the bytes to fetch from `start`."""
        wanted = min(self._step, self._end - start) if start < self._end else _FIRST
        return min(wanted, self.size - start)
