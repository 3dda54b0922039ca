"""A tape: an archive file's bytes, uncompressed, read forward and cut into sections.

A section is where records are looked for: the whole file, or as many gzip members as belong
together. No read crosses a section's end, so a record whose length lies swallows nothing behind it.
"""

import re
from typing import BinaryIO

from builder.sources.recognise import HEAD, START, begins_record

PIECE = 1 << 16
"""Bytes of one read."""

_NEWLINES = re.compile(rb"[\r\n]*")


class Tape:
    """An uncompressed file: one section, in which every record has an offset."""

    def __init__(self, head: bytes, stream: BinaryIO, start: int = 0) -> None:
        """Start with `head`, bytes that were already read from `stream`.

        With a `start` there are none: the stream is sought to there, for `find_record`.
        """
        self._stream = stream
        self._head = head
        self._buffer = b""
        self._at = 0
        # Raw offset behind the buffer. Whether a line begins at `start`, the byte before it tells.
        self._read = max(start - 1, 0)
        if start:
            stream.seek(self._read)
        self._opened = False
        self.faults: list[tuple[int, str, str, str]] = []
        """Place, code, detail and what was done, of what is wrong with the file itself."""

    def find_record(self) -> None:
        """Go from the tape's start to the first record that begins there or behind it."""
        if not self.ended():
            self._seek_start()

    def next_section(self) -> bool:
        """Go to the next section; False at the file's end."""
        opened, self._opened = self._opened, True
        return not opened

    def ahead(self) -> int | None:
        """Return the raw offset of the next section, if it is open already."""
        return None

    def offset(self, first: bool) -> int | None:
        """Return the raw offset of the record that begins here; `first`: it opens the section."""
        return self.place()

    def place(self) -> int:
        """Return the raw offset nearest before here."""
        return self._read - len(self._buffer) + self._at

    def single(self) -> bytes | None:
        """Return all of the section that was just opened, where that is cheap."""
        return None

    def close_single(self) -> int:
        """Go to the section's end, of which `single` gave all; return its length in the file."""
        raise NotImplementedError

    def close_record(self, offset: int | None) -> tuple[int | None, int]:
        """Go from a record's end to the next one's start, or to the section's end.

        Return the length of the record that began at `offset`, without the newlines behind it as
        the Internet Archive's CDX has it, and how many bytes had to be skipped as garbage.
        """
        length = None if offset is None else self.place() - offset
        return length, self.settle()

    def settle(self) -> int:
        """Go to the next record's start, or the section's end; return the garbage skipped."""
        self.skip_newlines()
        if self.ended() or begins_record(self.peek(HEAD)):
            return 0
        return self._seek_start()

    def ended(self) -> bool:
        """Tell whether the section has no more bytes."""
        return self._at >= len(self._buffer) and not self._more()

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the section's end, without going on."""
        while len(self._buffer) - self._at < size and self._more():
            pass
        return self._buffer[self._at : self._at + size]

    def take(self, size: int) -> bytes:
        """Return between 1 and `size` bytes and go on; none at the section's end."""
        if self._at >= len(self._buffer) and not self._more():
            return b""
        piece = self._buffer[self._at : self._at + size]
        self._at += len(piece)
        return piece

    def skip(self, size: int) -> int:
        """Go on by up to `size` bytes; return by how many."""
        left = size
        while left > 0 and not self.ended():
            step = min(left, len(self._buffer) - self._at)
            self._at += step
            left -= step
        return size - left

    def skip_newlines(self) -> None:
        """Go on to the next byte that is neither CR nor LF."""
        while not self.ended():
            match = _NEWLINES.match(self._buffer, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._buffer):
                return

    def take_through(self, pattern: re.Pattern[bytes], limit: int) -> tuple[bytes, bool]:
        """Return the bytes through the first match of `pattern`, and whether it was found.

        Without a match in `limit` bytes, those that were looked through are returned.
        """
        sought = self._at
        while True:
            match = pattern.search(self._buffer, sought)
            if match and match.end() - self._at <= limit:
                piece = self._buffer[self._at : match.end()]
                self._at = match.end()
                return piece, True
            size = len(self._buffer) - self._at
            if size >= limit or not self._more():
                return self.take(limit), False
            sought = max(0, size - 4)

    def _seek_start(self) -> int:
        skipped = 0
        while True:
            # Not at this very place, which is known to begin no record.
            match = START.search(self._buffer, self._at + 1)
            if match:
                skipped += match.start() - self._at
                self._at = match.start()
                return skipped
            # A line that may go on in the next piece is kept, were it not longer than any header.
            keep = min(len(self._buffer) - self._at, HEAD)
            cut = self._buffer.rfind(b"\n", len(self._buffer) - keep)
            end = cut if cut >= self._at else len(self._buffer)
            skipped += end - self._at
            self._at = end
            if not self._more():
                skipped += len(self._buffer) - self._at
                self._at = len(self._buffer)
                return skipped

    def _more(self) -> bool:
        piece = self._piece()
        if not piece:
            return False
        if self._at < len(self._buffer):
            piece = self._buffer[self._at :] + piece
        self._buffer, self._at = piece, 0
        return True

    def _piece(self) -> bytes:
        """Return the section's next bytes; none at its end."""
        piece, self._head = self._head, b""
        piece = piece or self._stream.read(PIECE) or b""
        self._read += len(piece)
        return piece
