"""Text of an index file, gzipped or not, in blocks of whole lines.

A ZipNum index is a series of gzip members, each with whole lines; it is read as one text.
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from builder.intake.captures import Fault
from builder.sources.webarchives import recognise
from builder.sources.webarchives.cdx import notation
from builder.sources.webarchives.cdx.notation import Legend
from functions.archive.gzip_members import MAGIC
from functions.archive.record import show

_SECONDARY = re.compile(
    rb"(?:![^\n]*\n)*[^\t\n]+ \d{14}[^\t\n]*\t[^\t\n]+\t\d+\t\d+(?:\t\d+)?\r?(?:\n|$)"
)
"""A line of it: sort key, name of a part, offset, length, and number."""


def find_form(head: bytes) -> str | None:
    """Return "cdx" or "cdxj" by a file's first bytes, with ".gz" for gzip; None for other files."""
    is_gzip = recognise.is_gzip(head)
    text = recognise.inflate_head(head) if is_gzip else head
    line = text.partition(b"\n")[0]
    is_cdx = notation.parse_header(line) is not None or notation.guess_legend(line) is not None
    form = "cdxj" if notation.is_cdxj(text) else "cdx" if is_cdx else None
    return form and form + (".gz" if is_gzip else "")


def is_secondary(head: bytes) -> bool:
    """Return whether these first bytes are of a ZipNum's secondary index, which is not needed."""
    return _SECONDARY.match(head) is not None


BLOCK = 1 << 24
"""Bytes of text in a block; each thread needs a few times as much memory."""
PIECE = 1 << 20
"""Bytes that are read at once."""


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of an index: number of the block, its offset in the text, and its legend.

    CDXJ has no legend; CDX lines without one cannot be read.
    """

    number: int
    start: int
    data: bytes
    legend: Legend | None = None
    is_readable: bool = True


class IndexText:
    """The text of a file, decompressed if it is gzip. Damage is added to `faults`, not raised."""

    def __init__(self, file: BinaryIO, name: str, piece: int = PIECE) -> None:
        """`piece` is the number of bytes, of the file and of the text, that are read at once."""
        self._file = file
        self._piece = piece
        self.name = name
        self._head = file.read(piece)
        self._gzip = recognise.is_gzip(self._head)
        self._inflater = zlib.decompressobj(31) if self._gzip else None
        self._begun = False  # whether a member has begun that has not ended
        self.consumed = 0
        """Bytes of the file that were read."""
        self.faults: list[Fault] = []

    def pieces(self) -> Iterator[bytes]:
        """Yield the text in pieces. Raises OSError."""
        data = self._head
        while data:
            self.consumed += len(data)
            if self._gzip:
                yield from self._inflate(data)
            else:
                yield data
            data = self._file.read(self._piece)
        if self._begun:
            detail = "the last member has no end"
            self._fault("gzip-truncated", self.consumed, detail, "read up to there")

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        more = False  # whether the decompressor has more output than there was room for
        while data or more:
            if self._inflater is None:  # after damage: search for the next member
                at = data.find(MAGIC)
                if at < 0:
                    return
                data = data[at:]
                self._inflater = zlib.decompressobj(31)
            self._begun = True
            try:
                text = self._inflater.decompress(data, self._piece)
            except zlib.error as error:
                done = "skipped; reading continues at the next member"
                self._fault("gzip-corrupt", self.consumed - len(data), str(error), done)
                self._inflater, self._begun, more, data = None, False, False, data[1:]
                yield b"\n"  # ends the line that was cut off
                continue
            if text:
                yield text
            data, more = self._inflater.unconsumed_tail, len(text) == self._piece
            if self._inflater.eof:
                data, more = self._inflater.unused_data.lstrip(b"\x00"), False
                self._inflater, self._begun = zlib.decompressobj(31), False

    def _fault(self, code: str, place: int, detail: str, done: str) -> None:
        self.faults.append(Fault(self.name, place, code, None, detail, done))


def blocks(text: IndexText, form: str, size: int = BLOCK) -> Iterator[LineBlock | Fault]:
    """Yield the text in blocks of about `size` bytes, and faults of lines too long for a block.

    `form` is cdx or cdxj. Raises OSError.
    """
    number = 0
    legends = _Legends(text.name)
    for start, lines in _whole_lines(text, size):
        if isinstance(lines, Fault):
            yield lines
        elif form == "cdxj":
            yield LineBlock(number, start, lines)
            number += 1
        else:
            for at, data in _parts(lines):
                place, rest = legends.take(start + at, data)
                yield from legends.faults
                legends.faults.clear()
                if rest:
                    is_readable = legends.current is not None
                    yield LineBlock(number, place, rest, legends.current, is_readable)
                    number += 1


class _Legends:
    """The legend of the lines, and its fault, if any."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_first = True
        self.current: Legend | None = None
        self.faults: list[Fault] = []

    def take(self, place: int, lines: bytes) -> tuple[int, bytes]:
        """Read a header at the beginning of the lines; return the offset and the text after it."""
        line, _, rest = lines.partition(b"\n")
        legend = notation.parse_header(line)
        if legend is not None:
            lacking = notation.missing_fields(legend)
            unknown = " ".join(x for x in legend.letters if x not in notation.LETTERS)
            self.current = None if lacking else legend
            if lacking:
                detail = f"no field {lacking}: {show(line)}"
                self._fault("index-header-invalid", place, detail, "the lines below are skipped")
            elif unknown:
                self._fault("index-header-invalid", place, f"letters {unknown}", "passed over")
            place, lines = place + len(line) + 1, rest
        elif self._is_first:
            self.current = notation.guess_legend(line)
            self._fault("index-no-header", place, "", f"read as {self.current}")
        self._is_first = False
        return place, lines

    def _fault(self, code: str, place: int, detail: str, done: str) -> None:
        self.faults.append(Fault(self._name, place, code, None, detail, done))


def _whole_lines(text: IndexText, size: int) -> Iterator[tuple[int, bytes | Fault]]:
    """Yield whole lines of about `size` bytes, without the last newline, and their offsets."""
    pieces: list[bytes] = []
    length = start = 0
    is_skipping = False
    for piece in text.pieces():
        if is_skipping:
            cut = piece.find(b"\n") + 1
            start += cut or len(piece)
            if not cut:
                continue
            piece, is_skipping = piece[cut:], False
        pieces.append(piece)
        length += len(piece)
        if length < size:
            continue
        data = b"".join(pieces)
        cut = data.rfind(b"\n")
        if cut < 0:
            detail = f"a line of more than {size} bytes"
            fault = Fault(text.name, start, "index-line-invalid", None, detail, "left out")
            yield start, fault
            start, is_skipping, pieces, length = start + length, True, [], 0
            continue
        yield start, data[:cut]
        pieces, start = [data[cut + 1 :]], start + cut + 1
        length = len(pieces[0])
    data = b"".join(pieces)
    if data.strip(b"\n"):
        yield start, data.removesuffix(b"\n")


def _parts(lines: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield CDX lines divided before each header among them."""
    begin = 0
    sought = 1
    while (at := lines.find(b"CDX", sought)) >= 0:
        sought = at + 3
        line = lines.rfind(b"\n", 0, at) + 1
        if line > begin and at - line <= 1:
            end = lines.find(b"\n", at)
            if notation.parse_header(lines[line : end if end >= 0 else len(lines)]):
                yield begin, lines[begin : line - 1]
                begin = line
    yield begin, lines[begin:]
