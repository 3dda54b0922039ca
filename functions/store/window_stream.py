"""Streams: of pieces, and of a file that is read in ranges."""

import io
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, BinaryIO

PART = 8 << 20
"""Bytes of the largest range; two are in memory."""
LEAST = 1 << 18
"""Bytes of the first range."""
_GROWTH = 4


class PieceStream(io.RawIOBase):
    """Pieces as a stream; closing it closes a generator of them, and their `source`."""

    def __init__(self, pieces: Iterator[bytes], source: BinaryIO | None = None) -> None:
        self._pieces = pieces
        self._source = source
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
        if self._source is not None:
            self._source.close()
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


class RangeFile(SeekableStream):
    """A file of `size` bytes; `read(start, length)` returns a range of it and may raise.

    Ranges have `least` bytes at first and after a jump, and grow up to `most` while the reader goes
    on. The next one is then fetched ahead, but not behind `end` (None: the file's end): only the
    last record that begins before `end` is read further. `data` are the bytes from `at` on.
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        size: int,
        end: int | None = None,
        *,
        at: int = 0,
        data: bytes = b"",
        least: int | None = None,
        most: int = PART,
    ) -> None:
        super().__init__(size, at)
        self._read = read
        self._end = size if end is None else end
        self._least = self._step = least or LEAST
        self._most = most
        self._from, self._data = at, memoryview(data)
        self._ahead: tuple[int, Future[bytes]] | None = None
        self._pool = ThreadPoolExecutor(1, "sheaf-stream")  # its thread starts when it is used

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the window; 0 at the file's end. Raises what `read` raises."""
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

    def _fetch(self) -> None:
        goes_on = self._at == self._from + len(self._data) and len(self._data) > 0
        self._step = min(self._step * _GROWTH, self._most) if goes_on else self._least
        # After a jump to the file's last bytes, those before them are likely wanted, too.
        self._from = self._at if goes_on else max(0, min(self._at, self.size - self._least))
        ahead, self._ahead = self._ahead, None
        if ahead and ahead[0] == self._from:
            data = ahead[1].result()
        else:
            data = self._read(self._from, self._length(self._from))
        self._data = memoryview(data)
        behind = self._from + len(data)
        if goes_on and data and behind < min(self._end, self.size):
            # Requests of the other thread count for the work of this one.
            read = partial(self._read, behind, self._length(behind))
            self._ahead = behind, self._pool.submit(copy_context().run, read)

    def _length(self, start: int) -> int:
        """Return the bytes to fetch from `start`."""
        wanted = min(self._step, self._end - start) if start < self._end else self._least
        return min(wanted, self.size - start)
