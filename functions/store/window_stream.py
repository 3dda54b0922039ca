"""Streams: of pieces; seekable ones of bytes that a subclass reads, or over a window in memory."""

import io
from abc import abstractmethod
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class PieceStream(io.RawIOBase):
    """Pieces as a stream; closing it closes a generator of them."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from one piece; 0 at the end. Raises what the pieces raise."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self) -> None:
        """Close the generator, which closes what it reads."""
        if isinstance(self._pieces, Generator):
            self._pieces.close()
        super().close()


class SeekableStream(io.RawIOBase):
    """A stream of `size` bytes, which begins at `at`; a subclass reads the bytes."""

    def __init__(self, size: int, at: int = 0) -> None:
        self.size = size
        self._at = at

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to another offset. Raises OSError for a negative one."""
        at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence] + offset
        if at < 0:
            raise OSError("it begins later")  # zipfile then finds no end of a zip
        self._at = at
        return at


class WindowStream(SeekableStream):
    """A file that is read in windows of bytes; `_pool` fetches the next one ahead."""

    def __init__(self, size: int, at: int = 0) -> None:
        super().__init__(size, at)
        self._pool = ThreadPoolExecutor(1, "sheaf-stream")  # its thread starts when it is used
        self._data = memoryview(b"")
        self._from = 0  # the offset in the file of the first byte of _data

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the window; 0 at the file's end. Raises what `_fetch` raises."""
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
        """Drop the fetched bytes."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._data = memoryview(b"")
        super().close()

    @abstractmethod
    def _fetch(self) -> None:
        """Move the window to `_at`, by `_show`."""

    def _show(self, place: int, data: bytes) -> int:
        """Make `data` the window from `place` on; return the offset behind it."""
        self._from, self._data = place, memoryview(data)
        return place + len(data)
