"""The text of templates in a file: their encodings and their boundaries.

A byte order mark decides the encoding. Without one, UTF-16 is known by the NUL bytes of its first
two characters. Otherwise each line is UTF-8 or of another encoding, windows-1252 by default, so no
knowledge of the whole file is needed.

A template runs from its Template-Type to the next one: a line that begins with `Template-Type:`, in
any case. Indented lines and URLs do not count. CRLF, LF and CR each end a line. Where files were
joined without a line end, it may follow a byte order mark, or a handle.
"""

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from functions.archive.redif_text import MARKED

_UTF_8_MARK = b"\xef\xbb\xbf"
_UTF_16_MARKS = {b"\xff\xfe": "utf-16le", b"\xfe\xff": "utf-16be"}
# Two characters of ASCII, without a mark: nothing else has a NUL byte in every second place.
_UTF_16 = (
    (re.compile(rb"(?:[\t\n\r -~]\x00){2}"), "utf-16le"),
    (re.compile(rb"(?:\x00[\t\n\r -~]){2}"), "utf-16be"),
)
_CONTINUING = bytes(range(0x80, 0xC0))
_FOUR = bytes(range(0xF0, 0xF8))  # first bytes of characters that are two units of UTF-16


class EncodedLines:
    """A stream with UTF-16 converted to UTF-8 and all other bytes unchanged.

    `mark` is the encoding of a byte order mark, or of UTF-16 without one, else None. The mark
    itself is skipped; `start` is its length in bytes.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        head = b""
        while len(head) < 4 and (piece := stream.read(4 - len(head))):
            head += piece
        self.mark: str | None = None
        self.start = 0
        self._decoder: codecs.IncrementalDecoder | None = None
        if head.startswith(_UTF_8_MARK):
            self.mark, self.start = MARKED, 3
        elif head[:2] in _UTF_16_MARKS:
            self.mark, self.start = _UTF_16_MARKS[head[:2]], 2
        elif b"\x00" in head:
            self.mark = next((name for form, name in _UTF_16 if form.fullmatch(head)), None)
        if self.mark in _UTF_16_MARKS.values():
            self._decoder = codecs.getincrementaldecoder(self.mark or "")("replace")
        self._head = head[self.start :]
        self.plain = self._decoder is None
        """Whether bytes read are as many as in the file."""

    def read(self, size: int) -> bytes:
        """Return about `size` more bytes, empty at the end. Raises the stream's OSError.

        An incomplete character at the end of UTF-16 is dropped.
        """
        head, self._head = self._head, b""
        while True:
            piece = self._stream.read(size)
            data, head = head + piece, b""
            if self._decoder is None or not data:
                return data
            if text := self._decoder.decode(data):
                return text.encode("utf-8", "replace")
            if not piece:
                return b""

    def width(self, data: bytes) -> int:
        """Return how many bytes of the file these read bytes are."""
        if self._decoder is None:
            return len(data)
        units = len(data.translate(None, _CONTINUING)) + len(data)
        return 2 * (units - len(data.translate(None, _FOUR)))


LIMIT = 1 << 20
"""The most bytes of a template: some two hundred times a long one."""
LEAST = 1 << 10
"""The smallest limit."""
_CHUNK = 1 << 18
_KEY = b"template-type:"
_JOINED = re.compile(rb"(?:\xef\xbb\xbf|(?<![^\r\n])handle:[^\r\n]+)\Z")
"""What a Template-Type follows where files were joined: a mark, or the line of a handle."""
_LONGEST = 200  # bytes of such a line


class TemplateText(NamedTuple):
    """The bytes of one template, or those before the first one (`template` is False)."""

    template: bool
    offset: int
    """The offset of its first byte in the file."""
    line: int
    """Its first line, from 1."""
    data: bytes
    """As the source gives them, up to the next template."""
    cut: bool
    """Whether it exceeded the limit."""


def split_templates(
    stream: BinaryIO, limit: int = LIMIT
) -> Iterator[tuple[EncodedLines, TemplateText]]:
    """Yield the parts of a file in order. Raises the stream's OSError.

    At most `limit` bytes of a template (LEAST or more) are held, and about as many read ahead.
    """
    source = EncodedLines(stream)
    limit = max(limit, LEAST)
    buffer = _TextBuffer(source, limit)
    for block, begins in _blocks(source, limit):
        at = 0
        for border in _borders(block, begins):
            buffer.add(block[at:border])
            if buffer.size:
                yield source, buffer.take()
            buffer.template = True
            at = border
        buffer.add(block[at:])
    yield source, buffer.take()


class _TextBuffer:
    """The current part: its first `limit` bytes, and the position read so far."""

    def __init__(self, source: EncodedLines, limit: int) -> None:
        self._source, self._limit = source, limit
        self._offset, self._line = source.start, 1  # behind what was read
        self._begin = (self._offset, self._line)
        self._parts: list[bytes] = []
        self.template = False
        self.size = 0

    def add(self, data: bytes) -> None:
        size = len(data)
        self._offset += size if self._source.plain else self._source.width(data)
        self._line += data.count(b"\n")
        if b"\r" in data:
            self._line += data.count(b"\r") - data.count(b"\r\n")
        if self.size < self._limit:
            self._parts.append(data[: self._limit - self.size])
        self.size += size

    def take(self) -> TemplateText:
        """Return the part; further bytes belong to the next one."""
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        data = data.removesuffix(_UTF_8_MARK)
        part = TemplateText(self.template, *self._begin, data, self.size > self._limit)
        self._begin = (self._offset, self._line)
        self._parts = []
        self.size = 0
        return part


def _blocks(source: EncodedLines, limit: int) -> Iterator[tuple[bytes, bool]]:
    """Yield whole lines, many at a time, and whether the first byte begins a line.

    A line longer than `limit` is yielded in pieces.
    """
    rest, begins = b"", True
    while data := source.read(_CHUNK):
        rest += data
        # A CR at the very end may be the first half of a CRLF.
        end = max(rest.rfind(b"\n"), rest.rfind(b"\r", 0, len(rest) - 1)) + 1
        if end:
            yield rest[:end], begins
            rest, begins = rest[end:], True
        elif len(rest) > max(limit, _CHUNK):
            end = len(rest) - 1
            yield rest[:end], begins
            rest, begins = rest[end:], False
    if rest:
        yield rest, begins


def _borders(block: bytes, begins: bool) -> Iterator[int]:
    lower = block.lower()
    at = lower.find(_KEY)
    while at >= 0:
        end = at + len(_KEY)
        is_begun = lower[at - 1] in b"\r\n" if at else begins
        is_begun = is_begun or _JOINED.search(lower, max(0, at - _LONGEST), at) is not None
        if is_begun and lower[end : end + 2] != b"//":
            yield at
        at = lower.find(_KEY, end)
