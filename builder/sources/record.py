"""A record's header as both container formats have it, and the block behind it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from builder.sources.tape import PIECE, Tape

Flaw = tuple[str, str | None, str, str]
"""What is wrong with a record: code, field, detail, what was done."""

DOCUMENTS = frozenset({"response", "resource", "revisit"})
"""Record types that are captures of a document."""

_NO_DOCUMENT: tuple[tuple[bytes, str], ...] = (
    (b"dns:", "dns"),
    (b"whois:", "whois"),
    (b"filedesc:", "filedesc"),
    (b"urn:pageinfo", "pageinfo"),
    (b"metadata:", "crawl-log"),
)


@dataclass(slots=True)
class Record:
    """A record's header. Texts are bytes as stored; the length counts bytes of the block."""

    type: str
    url: bytes
    date: bytes
    length: int | None
    mime: bytes = b""
    """The ARC header's media type, or the WARC header's Content-Type, which is the block's."""
    fields: Mapping[bytes, bytes] = field(default_factory=dict)
    """WARC named fields by lower-case name; none in an ARC file."""
    is_arc: bool = False
    status: int | None = None
    location: bytes = b""
    """Result code and location of an ARC version 2 header."""


class Block:
    """The bytes behind a record's header, as many as it declares or as its section has."""

    __slots__ = ("_left", "_tape", "length")

    def __init__(self, tape: Tape, length: int) -> None:
        self._tape = tape
        self._left = length
        self.length = length

    def take(self, size: int = PIECE) -> bytes:
        """Return between 1 and `size` bytes; none at the block's end."""
        if self._left <= 0:
            return b""
        piece = self._tape.take(min(size, self._left))
        self._left -= len(piece)
        return piece

    def drain(self) -> None:
        """Pass over the rest of the block."""
        if self._left > 0:
            self._left -= self._tape.skip(self._left)

    @property
    def missing(self) -> int:
        """Return how many of the declared bytes were not taken."""
        return self._left


def left_out(record: Record) -> str | None:
    """Return why the record is no document, by its type and URL; None if it is one."""
    if record.type not in DOCUMENTS:
        return record.type
    start = record.url[:16].lower()
    for scheme, reason in _NO_DOCUMENT:
        if start.startswith(scheme):
            return reason
    return None


def shown(data: bytes, limit: int = 120) -> str:
    """Return bytes from an archive as a fault's detail: printable ASCII, the rest escaped."""
    text = data[:limit].decode("latin-1").encode("unicode_escape").decode("ascii")
    return text + ("..." if len(data) > limit else "")
