"""Record stream: an archive file's uncompressed bytes, read forward in sections.

A section is the whole file, or the gzip members that belong together. No read crosses its end, so a
record with a wrong length takes no bytes behind its section.

Both formats mark a record's start by the first line of its header.
"""

import re
from collections import deque
from math import inf
from typing import BinaryIO

HEAD = 1 << 14
"""Bytes that decide a file's format; a record's first line ends within as many."""

PIECE = 1 << 16
"""Bytes of one read."""

_BEHIND_LIMIT = 1 << 22  # bytes before the buffer that stay in memory, to go back to
_MOST_AGAIN = 8  # how often all bytes may be read again: false lengths may ask for more
_NEWLINES = re.compile(rb"[\r\n]*")

WARC_LINE = re.compile(rb"[\r\n]*WARC/\d+\.\d", re.IGNORECASE)
"""The first line of a WARC record, after optional newlines."""

ARC_LINE = re.compile(
    rb"([a-z][a-z0-9+.\-]*:[^\n]*?) "  # URL, which may hold spaces
    rb"(\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:.]+|None|-) "
    rb"(\d{4}[^ \n]*) ([^\n]*[^ \r\n])[ \r]*(?:\n|\Z)",
    re.IGNORECASE,
)
"""An ARC URL-record: URL, IP address, date and the rest, whose last word is the length."""

ARC_LINE_LOOSE = re.compile(
    rb"([a-z][a-z0-9+.\-]*://[^\n]*) ([^ \n]*) ([^ \n]+) ([^ \n]*) (-?\d+)\r?(?:\n|\Z)",
    re.IGNORECASE,
)
"""The same by its five fields alone, for a date or an address of unknown form."""

RECORD_START = re.compile(
    rb"WARC/\d+\.\d+\r?\n(?=(?:WARC|Content)-[A-Za-z-]+:)|(?<![^\n])(?:WARC/\d+\.\d+[ \t]*\r?\n"
    rb"|[a-z][a-z0-9+.\-]{1,30}:[^\n]{1,8000}? \d{1,3}(?:\.\d{1,3}){3} \d{14}\d* "
    rb"[^\n]{0,200} -?\d+\r?\n)",
    re.IGNORECASE,
)
"""A record's start, for finding the next record behind garbage. It begins a line; a WARC record's
first line may also follow other bytes if a WARC field comes next."""


def begins_record(head: bytes) -> bool:
    """Tell whether a WARC or ARC record begins `head`, after optional newlines."""
    if head[:5] == b"WARC/" or WARC_LINE.match(head):
        return True
    line = head.lstrip(b"\r\n")[:HEAD].partition(b"\n")[0]
    return bool(ARC_LINE.match(line) or ARC_LINE_LOOSE.match(line))


class RecordStream:
    """An uncompressed file, which is one section. The base of the streams of compressed files."""

    shared_code = "gzip-not-per-record"
    """The code of the fault that a record does not begin its section."""
    has_members = False
    """Whether the bytes are in gzip members or zstd frames, whose damage shows at their end."""

    def __init__(self, head: bytes, stream: BinaryIO, start: int = 0, at: int = 0) -> None:
        """Start with `head`, the file's bytes from `at` on, which were already read from `stream`.

        With a `start`, the stream seeks there, for `find_record`.
        """
        self._stream = stream
        self._head = b"" if start else head
        self._buffer = b""
        self._at = 0
        # Raw offset of the buffer's end. The byte before `start` shows whether a line begins there.
        self._buffer_end = start - 1 if start else at
        if start:
            stream.seek(self._buffer_end)
        self._opened = False
        self._behind: deque[bytes] = deque()  # pieces before the buffer, which were not copied
        self._behind_size = 0
        self._gone_back = 0  # bytes read again, in total
        self._searched = 0  # bytes of garbage that were searched for a record, in total
        self.swallowed = 0
        """Bytes of other records in the record that was closed last; the stream went back to them.
        """
        self.faults: list[tuple[int, str, str, str]] = []
        """Faults of the file itself: offset, code, detail, action taken."""

    def find_record(self) -> None:
        """Go to the first record from the stream's start on."""
        if not self.at_end():
            self._seek_record()

    def next_section(self) -> bool:
        """Go to the next section; False at the file's end."""
        opened, self._opened = self._opened, True
        return not opened

    def next_offset(self) -> int | None:
        """Return the raw offset of the next section, if it is already open."""
        return None

    def record_offset(self, first: bool) -> int | None:
        """Return the raw offset of the record that begins here; the `first` opens the section."""
        return self.place()

    def place(self) -> int:
        """Return the nearest raw offset at or before here."""
        return self._buffer_end - len(self._buffer) + self._at

    def section_bytes(self) -> bytes | None:
        """Return the whole section that was just opened, if that is cheap."""
        return None

    def close_section(self) -> int:
        """Go behind the one record of `section_bytes`; return its stored length."""
        start, self._at = self.place(), len(self._buffer)
        return self.place() - start

    def member(self) -> int:
        """Return the raw offset of the member with the next byte."""
        return 0

    @property
    def last_member(self) -> int:
        """The member with the last byte of the record that was closed last."""
        return 0

    def damage(self, first: int, last: int) -> str | None:
        """Return what failed in the members from `first` to `last`, None if they are sound.

        The codes are CHECKSUM, COMPRESSION and CUT of functions.archive.record. Damage is known at
        a member's end.
        """
        return None

    def close_record(self, offset: int | None, short: bool = False) -> tuple[int | None, int]:
        """Go from a record's end to the next record's start, or to the section's end.

        Return the length of the record at `offset`, and how many bytes of garbage were skipped. The
        length excludes the newlines behind the record, as in the Internet Archive's CDX. If no
        record follows, or the record is `short` of bytes, its length may be wrong: then the next
        record is searched within it.
        """
        end = self.place()
        self.swallowed = 0
        self.skip_newlines()
        # The length is right if the file ends here, or if a record begins here with a new line.
        follows = self.at_end() or (
            self._buffer[self._at - 1 : self._at] in b"\r\n" and self._at_record()
        )
        if offset is not None and (short or not follows):
            length = self._go_back(offset)
            if length is not None:
                self.swallowed = end - offset - length
                return length, 0
        return None if offset is None else end - offset, self.skip_garbage()

    def skip_garbage(self) -> int:
        """Skip newlines, and all bytes before the next record's start; return how many of these."""
        self.skip_newlines()
        if self.at_end() or self._at_record():
            return 0
        return self._seek_record()

    def at_end(self) -> bool:
        """Tell whether the section has no more bytes."""
        return self._at >= len(self._buffer) and not self._read_more()

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the section's end, without consuming them."""
        while len(self._buffer) - self._at < size and self._read_more():
            pass
        return self._buffer[self._at : self._at + size]

    def take(self, size: int) -> bytes:
        """Consume 1 to `size` bytes; empty at the section's end."""
        if self._at >= len(self._buffer) and not self._read_more():
            return b""
        piece = self._buffer[self._at : self._at + size]
        self._at += len(piece)
        return piece

    def skip(self, size: int) -> int:
        """Skip up to `size` bytes; return how many."""
        left = size
        while left > 0 and not self.at_end():
            step = min(left, len(self._buffer) - self._at)
            self._at += step
            left -= step
        return size - left

    def skip_newlines(self) -> None:
        """Skip CR and LF."""
        while not self.at_end():
            match = _NEWLINES.match(self._buffer, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._buffer):
                return

    def take_through(self, pattern: re.Pattern[bytes], limit: int) -> tuple[bytes, bool]:
        """Consume the bytes through the first match of `pattern`; return whether it matched.

        Without a match, the first `limit` bytes are consumed.
        """
        sought = self._at
        while True:
            match = pattern.search(self._buffer, sought)
            if match and match.end() - self._at <= limit:
                piece = self._buffer[self._at : match.end()]
                self._at = match.end()
                return piece, True
            size = len(self._buffer) - self._at
            if size >= limit or not self._read_more():
                return self.take(limit), False
            sought = max(0, size - 4)  # a match may have begun in the last bytes: none is longer

    def put_back(self, size: int) -> None:
        """Go back by `size` of the bytes that `take_through` returned last."""
        self._at -= size

    def _at_record(self) -> bool:
        return begins_record(self.peek(HEAD))

    def _go_back(self, offset: int) -> int | None:
        """Go to the first record start within the record at `offset`, if it is still buffered.

        Return the resulting length of the record at `offset`, without the newlines behind it.
        """
        pieces = [self._buffer]
        base = self._buffer_end - len(self._buffer)  # the raw offset where the pieces begin
        for piece in reversed(self._behind):
            if base <= offset:
                break
            pieces.append(piece)
            base -= len(piece)
        pieces.reverse()
        window = b"".join(pieces)
        here = len(window) - len(self._buffer) + self._at
        match = RECORD_START.search(window, max(offset + 1 - base, 0))
        if match is None or match.start() >= here:
            return None
        self._gone_back += here - match.start()
        if self._gone_back > _MOST_AGAIN * self._buffer_end:
            return None
        self._behind.clear()
        self._behind_size = 0
        self._buffer, self._at = window, match.start()
        start = max(offset - base, 0)
        return len(window[start : self._at].rstrip(b"\r\n")) + start + base - offset

    def _seek_record(self) -> int:
        """Go to the next record's start or the section's end; return how many bytes it skips."""
        skipped = 0
        while True:
            # Each record's start has the end of a line; zeros have none, and are passed at once.
            if self._buffer.find(b"\n", self._at) >= 0 and self._searched < self._searchable():
                self._searched += len(self._buffer) - self._at
                # Not here: no record begins at this byte.
                match = RECORD_START.search(self._buffer, self._at + 1)
                if match:
                    skipped += match.start() - self._at
                    self._at = match.start()
                    return skipped
            # An unfinished line is kept for the next piece, up to a header's length.
            keep = min(len(self._buffer) - self._at, HEAD)
            cut = self._buffer.rfind(b"\n", len(self._buffer) - keep)
            end = cut if cut >= self._at else len(self._buffer)
            skipped += end - self._at
            self._at = end
            if not self._read_more():
                skipped += len(self._buffer) - self._at
                self._at = len(self._buffer)
                return skipped

    def _searchable(self) -> float:
        """Return how many bytes of garbage may be searched so far."""
        return inf

    def _read_more(self) -> bool:
        piece = self._read_piece()
        if not piece:
            return False
        if self._at < len(self._buffer):
            piece = self._buffer[self._at :] + piece
        self._buffer, self._at = piece, 0
        return True

    def _read_piece(self) -> bytes:
        """Return the section's next bytes; empty at its end."""
        piece, self._head = self._head, b""
        piece = piece or self._stream.read(PIECE) or b""
        if piece:
            self._buffer_end += len(piece)
            self._behind.append(self._buffer[: self._at])
            self._behind_size += self._at
            while self._behind_size > _BEHIND_LIMIT:
                self._behind_size -= len(self._behind.popleft())
        return piece
