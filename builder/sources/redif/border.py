"""The borders of templates in a file: a template runs from its Template-Type to the next one.

A border is a line that begins with `Template-Type:`, in any case; indented ones are none, nor is
what would be a URL. CRLF, LF and CR each end a line.
"""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from builder.sources.redif.encoding import EncodedLines

LIMIT = 1 << 20
"""Bytes of a template that are read: some two hundred times what is long."""
LEAST = 1 << 10
"""What a limit has to be at least."""
_CHUNK = 1 << 18
_KEY = b"template-type:"


class TemplateText(NamedTuple):
    """The bytes of one template, or what stands before the first one (`template` is False)."""

    template: bool
    offset: int
    """Of its first byte in the file."""
    line: int
    """Of its first line, from 1."""
    data: bytes
    """As the source gives them, with what follows up to the next template."""
    cut: bool
    """Whether there was more than is read."""


def split_templates(
    stream: BinaryIO, limit: int = LIMIT
) -> Iterator[tuple[EncodedLines, TemplateText]]:
    """Yield what a file holds, in order. Raises OSError as the stream does.

    No more than `limit` bytes of a template (LEAST at least), and about as many read ahead, are
    held at any time.
    """
    source = EncodedLines(stream)
    limit = max(limit, LEAST)
    held = _TextBuffer(source, limit)
    for block, begins in _blocks(source, limit):
        at = 0
        for border in _borders(block, begins):
            held.add(block[at:border])
            if held.size:
                yield source, held.take()
            held.template = True
            at = border
        held.add(block[at:])
    yield source, held.take()


class _TextBuffer:
    """The stretch that is being read: its first `limit` bytes, and how far all was read."""

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
        """Return the stretch; what is added from now on is the next one."""
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        found = TemplateText(self.template, *self._begin, data, self.size > self._limit)
        self._begin = (self._offset, self._line)
        self._parts = []
        self.size = 0
        return found


def _blocks(source: EncodedLines, limit: int) -> Iterator[tuple[bytes, bool]]:
    """Yield whole lines, many at a time, and whether the first byte begins a line.

    Of a line that is longer than `limit` some bytes are yielded alone.
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
        if (lower[at - 1] in b"\r\n" if at else begins) and lower[end : end + 2] != b"//":
            yield at
        at = lower.find(_KEY, end)
