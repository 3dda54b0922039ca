"""Record stream of a gzip file (RFC 1952) whose records have gzip members of their own.

A section begins with each member that begins with a record; other members continue the record
before them. A corrupt member gives the bytes before its error, and reading goes on at the next
member that inflates to a record's start. The error is added to `faults` as gzip-corrupt, with the
byte at which reading went on; builder.sources.webarchives.records makes a row of it.

zlib inflates members that are big or that ISA-L rejects: its state can be copied before each step.
"""

import zlib
from typing import BinaryIO

from functions.archive.inflate import (
    GZIP,
    ODD_FLAGS,
    OUTPUT,
    InflateError,
    Inflater,
    opens_record,
    salvage,
)
from functions.archive.record import CHECKSUM, COMPRESSION, CUT, Section
from functions.archive.stream import PIECE, RecordStream, begins_record

MAGIC = b"\x1f\x8b\x08"
"""The first bytes of a gzip member (RFC 1952)."""
_FEED = 1 << 15  # compressed bytes for zlib at once: it copies what belongs to the next member
_READ = 1 << 18  # bytes of one read
_FIRST_FEED = 1 << 11  # compressed bytes for ISA-L at first: it copies unused input
_WHOLE_RAW = 1 << 20  # compressed bytes of a member that is inflated at once; below: inflated bytes
_WHOLE = 1 << 22
_CHECKS = ("incorrect data check", "incorrect length check")  # zlib's words for a member's end
_SEARCHED, _SEARCHED_TIMES = 1 << 24, 32
"""Bytes of garbage that are searched for a record, and as many more for each compressed byte: a
member of newlines has a thousand times its size, and the search takes 16 MB a second."""
_NEAR = 1 << 12  # compressed bytes that show a member's first line


class GzipMembers(RecordStream):
    """A gzip file; offsets and lengths count compressed bytes."""

    has_members = True
    _magic, _near = MAGIC, _NEAR  # where a member begins; bytes that show its first line
    _retained = PIECE  # raw bytes kept, so that a search can begin at a broken member's start

    def __init__(self, head: bytes, stream: BinaryIO, start: int = 0, at: int = 0) -> None:
        """Start with `head`, the file's bytes from `at` on, which were already read from `stream`.

        With a `start`, the stream seeks there, for `find_record`.
        """
        super().__init__(b"", stream)
        if start:
            stream.seek(start)
        self._raw = b"" if start else head
        self._raw_at = 0
        self._raw_base = start or at  # offset in the file of the first byte of _raw
        self._inflater: zlib._Decompress | None = None
        self._ahead = b""  # first piece of the next member that is not empty, once it is reached
        self._continues = False  # whether that member goes on with the section in hand
        self._ahead_faults: list[tuple[int, str, str, str]] = []
        self._member = 0  # raw offset of the member in hand
        self._member_fresh = True
        self._gave = False  # whether the member in hand gave any bytes
        self._start = 0  # raw offset of the section
        self._end = 0  # raw offset of the section's end, once it is reached
        self._within = False  # whether the member in hand belongs to the section
        self._section = Section()

    def next_section(self) -> bool:
        """Go to the next section; False at the file's end."""
        if not self._ahead and not self._open():
            return False
        self._start = self._member
        self._buffer, self._at, self._ahead = self._ahead, 0, b""
        self._section.begin(self._start, len(self._buffer))
        self._within = self._inflater is not None
        if not self._within:
            self._end = self._raw_base + self._raw_at
            faults, self.faults = self.faults, self._ahead_faults
            self.faults.clear()
            self._continues = self._open() and not begins_record(self._ahead)
            self._ahead_faults, self.faults = self.faults, faults
        return True

    def section_bytes(self) -> bytes | None:
        """Return the whole section if it is one member that was inflated at once."""
        return None if self._within or self._continues else self._buffer

    def close_section(self) -> int:
        """Go behind the one record of `section_bytes`; return its stored length."""
        self._at = len(self._buffer)
        self._section.close(0)
        self.faults += self._ahead_faults
        self._ahead_faults = []
        return self._end - self._start

    def find_record(self) -> None:
        """Go to the first member from the start on that inflates to a record's start."""
        self._find_member(self._raw_base)

    def next_offset(self) -> int | None:
        """Return the raw offset of the next section's first member, once it is reached."""
        return self._member if self._ahead and not self._continues else None

    def record_offset(self, first: bool) -> int | None:
        """Return the section's offset; None unless the record is the section's first."""
        return self._start if first else None

    def place(self) -> int:
        """Return the raw offset of the section's first member."""
        return self._start

    def member(self) -> int:
        """Return the raw offset of the member that holds the next byte."""
        return self._section.holder(len(self._buffer) - self._at)

    @property
    def last_member(self) -> int:
        """The member that holds the last byte of the record closed last."""
        return self._section.last_member

    def damage(self, first: int, last: int) -> str | None:
        """Return what failed in members `first` to `last` (see RecordStream.damage)."""
        return self._section.damage(first, last)

    def close_record(self, offset: int | None, short: bool = False) -> tuple[int | None, int]:
        """Go to the next record's start, or to the section's end.

        The length is known if the record opens its section and its last member holds no other
        record's start: the record ends with that member.
        """
        section = self._section
        section.close(len(self._buffer) - self._at)
        garbage = self.skip_garbage()
        if offset is None or (not self.at_end() and self.member() == section.last_member):
            return None, garbage
        end = self._end if section.last_end is None else section.last_end
        return end - offset, garbage

    def _searchable(self) -> float:
        return _SEARCHED + _SEARCHED_TIMES * (self._raw_base + self._raw_at)

    def _read_piece(self) -> bytes:
        piece = self._next_piece()
        self._section.give(len(piece))
        return piece

    def _next_piece(self) -> bytes:
        if self._ahead_faults:
            self.faults += self._ahead_faults
            self._ahead_faults = []
        while self._continues or not self._ahead:
            if self._continues:
                piece, self._ahead = self._ahead, b""
                self._continues = False
                self._within = True
                self._section.follow(self._member, self._end, len(self._buffer) - self._at)
                return piece
            if self._inflater is not None:
                piece = self._inflate()
                if piece:
                    return piece
            if self._within:
                self._end = self._raw_base + self._raw_at
                self._within = False
            if not self._open():
                break
            self._continues = not begins_record(self._ahead)
        return b""

    def _open(self) -> bool:
        """Start on the next member that is not empty, leaving its first piece in _ahead."""
        while self._has_raw(_NEAR):
            place = self._raw_base + self._raw_at
            if not self._raw.startswith(MAGIC, self._raw_at):
                self._find_member(place)
                detail = f"{self._raw_base + self._raw_at - place} bytes"
                self.faults.append((place, "gzip-garbage", detail, "left out"))
                continue
            self._member = place
            whole = self._inflate_whole()
            if whole is None:
                self._member_fresh = True
                self._gave = False
                self._inflater = zlib.decompressobj(31)
                whole = self._inflate()
            self._ahead = whole
            if whole:
                return True
        return False

    def _inflate_whole(self) -> bytes | None:
        """Inflate this member and go behind it; None if zlib has to do it."""
        at = self._raw_at
        data = self._raw[at : at + _FIRST_FEED]
        if len(data) < 4 or data[3] & ODD_FLAGS:
            return None
        inflater, pieces = Inflater(GZIP), list[bytes]()
        room, used, feed = _WHOLE, 0, _FIRST_FEED
        try:
            while data and room > 0 and used < _WHOLE_RAW:
                pieces.append(inflater.decompress(data, room))
                if inflater.eof:
                    self._raw_at = at + len(data) - len(inflater.unused_data)
                    return b"".join(pieces)
                used += len(data) - len(inflater.unconsumed_tail)
                room -= len(pieces[-1])
                feed = min(8 * feed, PIECE)
                if len(self._raw) - self._raw_at < used + feed:
                    self._has_raw(used + feed)
                at = self._raw_at + used
                data = self._raw[at : at + feed]
        except InflateError:
            pass
        return None

    def _inflate(self) -> bytes:
        """Return the member's next piece; none at its end, which also drops the inflater."""
        while self._inflater is not None:
            inflater = self._inflater
            self._has_raw(1)
            data = self._raw[self._raw_at : self._raw_at + _FEED]
            before = zlib.decompressobj(31) if self._member_fresh else inflater.copy()
            self._member_fresh = False
            try:
                piece = inflater.decompress(data, OUTPUT)
            except zlib.error as error:
                return self._give_up(salvage(before, data), str(error))
            if inflater.eof:
                self._raw_at += len(data) - len(inflater.unused_data)
                self._inflater = None
            else:
                self._raw_at += len(data) - len(inflater.unconsumed_tail)
                if not data and not piece:
                    return self._end_early()
            if piece:
                self._gave = True
                return piece
        return b""

    def _end_early(self) -> bytes:
        """Leave the open member, which the file's end cuts off."""
        # A broken member may swallow the members after it and look cut off.
        if self._find_member(self._member + 1):
            if not self._gave or not self._stores(self._raw[self._raw_at :][:64]):
                return self._give_up(b"", "no end before the file's")
            self._raw_at = len(self._raw)
        self._inflater = None
        self._section.fail(self._member, CUT)
        self.faults.append((self._member, "gzip-truncated", "", "read up to the end"))
        return b""

    def _stores(self, raw: bytes) -> bool:
        """Tell whether the open member may hold `raw`, as an archive in an archive does."""
        start = self._member - self._raw_base  # below 0: the member's first bytes are not kept
        return start < 0 or raw in zlib.decompressobj(31).decompress(self._raw[start:], _WHOLE)

    def _give_up(self, piece: bytes, error: str) -> bytes:
        # The error may lie behind the next member's start, so search from this member's start.
        self._inflater = None
        code = CHECKSUM if error.endswith(_CHECKS) else COMPRESSION
        self._section.fail(self._member, code)
        is_next = self._find_member(self._member + 1)
        next_place = f"continued at byte {self._raw_base + self._raw_at}" if is_next else "stopped"
        self.faults.append((self._member, "gzip-corrupt", error, next_place))
        return piece

    def _find_member(self, place: int) -> bool:
        """Go to the next member from `place` on that inflates to a record's start, or the end."""
        at, length = max(place - self._raw_base, 0), len(self._magic)
        while True:
            at = self._raw.find(self._magic, at)
            if at < 0:
                # The magic number may lie across two reads.
                self._raw_at = max(len(self._raw) - length + 1, 0)
                ahead = self._raw_base + self._raw_at
                self._has_raw(length)
                if len(self._raw) - self._raw_at < length:
                    self._raw_at = len(self._raw)
                    return False
                at = ahead - self._raw_base
                continue
            place = self._raw_base + at
            self._raw_at = at
            self._has_raw(self._near)
            at = place - self._raw_base
            if self._opens_record(at):
                return True
            at += 1

    def _opens_record(self, at: int) -> bool:
        return opens_record(self._raw[at : at + _NEAR])  # a subclass knows other members

    def _has_raw(self, size: int) -> bool:
        """Buffer at least `size` raw bytes if the file has them; tell whether any are left."""
        while len(self._raw) - self._raw_at < size:
            piece = self._stream.read(max(_READ, size - len(self._raw) + self._raw_at))
            if not piece:
                break
            drop = max(self._raw_at - self._retained, 0)
            self._raw = self._raw[drop:] + piece
            self._raw_base += drop
            self._raw_at -= drop
        return self._raw_at < len(self._raw)
