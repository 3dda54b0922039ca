"""The members of a gzip file (RFC 1952): a tape on which each record has its own member.

Sections are cut where a member begins with a record; a member that does not, goes on with the
record before it. Empty members are passed over. A corrupt member is left where it breaks, and
reading goes on at the next member that inflates to a record's start.
"""

import zlib
from typing import BinaryIO

from builder.sources.recognise import HEAD, begins_record
from builder.sources.tape import PIECE, Tape

_MAGIC = b"\x1f\x8b\x08"
_FEED = 1 << 15  # compressed bytes given to zlib at once: it copies those of the next member
_OUTPUT = 1 << 18  # inflated bytes of one piece, which bounds memory
_NEAR = 1 << 12  # compressed bytes that show what a member begins with


class Members(Tape):
    """A gzip file; offsets and lengths are those of the members, in raw bytes."""

    def __init__(self, head: bytes, stream: BinaryIO, start: int = 0) -> None:
        """Start with `head`, the file's first bytes, which were already read from `stream`.

        With a `start`, the stream is sought to there, for `find_record`.
        """
        super().__init__(b"", stream)
        if start:
            stream.seek(start)
        self._raw = b"" if start else head
        self._raw_at = 0
        self._raw_base = start  # offset in the file of the first byte of _raw
        self._inflater: zlib._Decompress | None = None
        self._ahead = b""  # first piece of the member that opens the next section
        self._member = 0  # raw offset of the member in hand
        self._member_fresh = True
        self._start = 0  # raw offset of the section
        self._end = 0  # raw offset of the section's end, once it is reached
        self._within = False  # whether the member in hand belongs to the section

    def next_section(self) -> bool:
        """Go to the next section; False at the file's end."""
        if not self._ahead and not self._open():
            return False
        self._start = self._member
        self._buffer, self._at, self._ahead = self._ahead, 0, b""
        self._within = True
        return True

    def find_record(self) -> None:
        """Go from the start to the first member there or behind that inflates to a record's."""
        self._find_member(self._raw_base)

    def ahead(self) -> int | None:
        """Return the raw offset of the member that opens the next section, once it is reached."""
        return self._member if self._ahead else None

    def offset(self, first: bool) -> int | None:
        """Return the offset of the section's member; None unless the record opens the section."""
        return self._start if first else None

    def place(self) -> int:
        """Return the raw offset of the section's first member."""
        return self._start

    def close_record(self, offset: int | None) -> tuple[int | None, int]:
        """Go to the next record's start; the length is known if the record ends its section."""
        garbage = self.settle()
        whole = offset is not None and self.ended()
        return (self._end - offset if whole and offset is not None else None), garbage

    def _piece(self) -> bytes:
        while not self._ahead:
            if self._inflater is not None:
                piece = self._inflate()
                if piece:
                    return piece
            if self._within:
                self._end = self._raw_base + self._raw_at
                self._within = False
            if not self._open() or begins_record(self._ahead):
                break
            piece, self._ahead = self._ahead, b""
            self._within = True
            return piece
        return b""

    def _open(self) -> bool:
        """Start on the next member that is not empty, leaving its first piece in _ahead."""
        while self._has_raw(_NEAR):
            place = self._raw_base + self._raw_at
            if not self._raw.startswith(_MAGIC, self._raw_at):
                self._find_member(place)
                detail = f"{self._raw_base + self._raw_at - place} bytes"
                self.faults.append((place, "gzip-garbage", detail, "left out"))
                continue
            self._member = place
            self._member_fresh = True
            self._inflater = zlib.decompressobj(31)
            self._ahead = self._inflate()
            if self._ahead:
                return True
        return False

    def _inflate(self) -> bytes:
        """Return the member's next piece; none at its end, which also drops the inflater."""
        while self._inflater is not None:
            inflater = self._inflater
            self._has_raw(1)
            data = self._raw[self._raw_at : self._raw_at + _FEED]
            before = zlib.decompressobj(31) if self._member_fresh else inflater.copy()
            self._member_fresh = False
            try:
                piece = inflater.decompress(data, _OUTPUT)
            except zlib.error as error:
                return self._give_up(_salvaged(before, data), str(error))
            if inflater.eof:
                self._raw_at += len(data) - len(inflater.unused_data)
                self._inflater = None
            else:
                self._raw_at += len(data) - len(inflater.unconsumed_tail)
                if not data and not piece:
                    self._inflater = None
                    place = self._member
                    self.faults.append((place, "gzip-truncated", "", "read up to the end"))
            if piece:
                return piece
        return b""

    def _give_up(self, piece: bytes, error: str) -> bytes:
        # What follows the error may already be the next member, so it is sought from the start.
        self._inflater = None
        found = self._find_member(self._member + 1)
        next_place = f"read on at byte {self._raw_base + self._raw_at}" if found else "read no more"
        self.faults.append((self._member, "gzip-corrupt", error, next_place))
        return piece

    def _find_member(self, place: int) -> bool:
        """Go to the first member at `place` or behind that inflates to a record's start."""
        at = max(place - self._raw_base, 0)
        while True:
            at = self._raw.find(_MAGIC, at)
            if at < 0:
                # The magic may lie across the reads' border.
                self._raw_at = max(len(self._raw) - len(_MAGIC) + 1, 0)
                ahead = self._raw_base + self._raw_at
                self._has_raw(len(_MAGIC))
                if len(self._raw) - self._raw_at < len(_MAGIC):
                    self._raw_at = len(self._raw)
                    return False
                at = ahead - self._raw_base
                continue
            place = self._raw_base + at
            self._raw_at = at
            self._has_raw(_NEAR)
            at = place - self._raw_base
            if _opens_record(self._raw[at : at + _NEAR]):
                self._raw_at = at
                return True
            at += 1

    def _has_raw(self, size: int) -> bool:
        """Make at least `size` raw bytes ready, if the file has them; tell whether any are."""
        while len(self._raw) - self._raw_at < size:
            piece = self._stream.read(PIECE)
            if not piece:
                break
            # Some bytes behind are kept, for a search to begin where a broken member began.
            drop = max(self._raw_at - PIECE, 0)
            self._raw = self._raw[drop:] + piece
            self._raw_base += drop
            self._raw_at -= drop
        return self._raw_at < len(self._raw)


def _opens_record(raw: bytes) -> bool:
    inflater = zlib.decompressobj(31)
    try:
        return begins_record(inflater.decompress(raw, HEAD))
    except zlib.error:
        return begins_record(_salvaged(zlib.decompressobj(31), raw))


def _salvaged(inflater: "zlib._Decompress", data: bytes) -> bytes:
    """Return what `data` inflates to before it breaks, which zlib withholds with its error."""
    pieces: list[bytes] = []
    size = 0
    for step in (256, 1):
        while data and size < _OUTPUT:
            trial = inflater.copy()
            try:
                piece = trial.decompress(data[:step])
            except zlib.error:
                break
            pieces.append(piece)
            size += len(piece)
            inflater, data = trial, data[step:]
    return b"".join(pieces)
