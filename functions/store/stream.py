"""Seekable stream over an object of a bucket, with read-ahead."""

import io
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from functions.store import tally
from functions.store.object import ObjectClient, ObjectPart


class ObjectStream(io.RawIOBase):
    """The bytes of an object from `start` to `end` (None: its end); two parts are in memory.

    Raises MissingObject, Conflict if the object was replaced meanwhile, or StoreError.
    """

    def __init__(
        self, client: ObjectClient, key: str, start: int = 0, end: int | None = None
    ) -> None:
        self._client = client
        self._key = key
        self._part = client.connection.part
        self._pool = ThreadPoolExecutor(1, "sheaf-stream")
        self._ahead: tuple[int, Future[ObjectPart]] | None = None
        self._data = memoryview(b"")
        self._from = 0  # the offset in the object of the first byte of _data
        self._at = start
        wanted = self._part if end is None else min(self._part, max(end - start, 1))
        first = client.piece(key, start, wanted)
        self.size, self.tag = first.size if end is None else min(first.size, end), first.tag
        self._take(start, first)

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
        """Fill the buffer from the current part; 0 at the object's end."""
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
        """Drop the fetched parts."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._data = memoryview(b"")
        super().close()

    def _fetch(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead and ahead[0] == self._at:
            self._take(self._at, ahead[1].result())
        else:
            self._take(self._at, self._piece(self._at))

    def _take(self, place: int, piece: ObjectPart) -> None:
        self._from, self._data = place, memoryview(piece.data)
        behind = place + len(piece.data)
        if piece.data and behind < self.size:
            self._ahead = behind, self._pool.submit(tally.carry(self._piece), behind)

    def _piece(self, place: int) -> ObjectPart:
        length = min(self._part, self.size - place)
        return self._client.piece(self._key, place, length, self.tag)
