"""Stream of a remote file that is read in ranges: seekable, and ahead of its reader."""

from collections.abc import Callable
from concurrent.futures import Future

from functions.store.window_stream import WindowStream

PART = 8 << 20
"""Bytes of the largest range; two are in memory."""
_FIRST = 1 << 18
_GROWTH = 4


class RangeStream(WindowStream):
    """A file of `size` bytes; `read(start, length)` returns a range of it and may raise OSError.

    Ranges are small at first and after a jump, and grow while the reader goes on. The next one is
    then fetched ahead, but not behind `end` (None: the file's end): only the last record that
    begins before `end` is read further.
    """

    def __init__(
        self, read: Callable[[int, int], bytes], size: int, end: int | None = None
    ) -> None:
        super().__init__(size)
        self._read = read
        self._end = size if end is None else end
        self._step = _FIRST
        self._ahead: tuple[int, Future[bytes]] | None = None

    def _fetch(self) -> None:
        goes_on = self._at == self._from + len(self._data) and len(self._data) > 0
        self._step = min(self._step * _GROWTH, PART) if goes_on else _FIRST
        ahead, self._ahead = self._ahead, None
        if ahead and ahead[0] == self._at:
            data = ahead[1].result()
        else:
            data = self._read(self._at, self._length(self._at))
        behind = self._show(self._at, data)
        if goes_on and behind < min(self._end, self.size):
            self._ahead = behind, self._pool.submit(self._read, behind, self._length(behind))

    def _length(self, start: int) -> int:
        """Return the bytes to fetch from `start`."""
        wanted = min(self._step, self._end - start) if start < self._end else _FIRST
        return min(wanted, self.size - start)
