"""A record's header, common to ARC and WARC, and the block behind it.

A section lists its gzip members or zstd frames: their positions, their ends and their damage.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from functions.archive.stream import PIECE, RecordStream

RecordFault = tuple[str, str | None, str, str]
"""A fault of a record: code, field, detail, action taken."""

DOCUMENT_TYPES = frozenset({"response", "resource", "revisit"})
"""Record types that capture a document."""

_NO_DOCUMENT: tuple[tuple[bytes, str], ...] = (
    (b"dns:", "dns"),
    (b"whois:", "whois"),
    (b"filedesc:", "filedesc"),
    (b"urn:pageinfo", "pageinfo"),
    (b"metadata:", "crawl-log"),
)
_SCHEMES = tuple(scheme for scheme, _ in _NO_DOCUMENT)
_NO_DOCUMENT_TYPES: dict[bytes, str] = {
    # media type of a block that is no HTTP message: the kind of record
    b"text/anvl": "metadata",
    b"application/warc-fields": "metadata",
    b"application/x-www-form-urlencoded": "request",
    b"multipart/form-data": "request",
}
CHECKSUM, COMPRESSION, CUT = "checksum", "compression", "cut"
"""The damage of a member: its checksum or length; its compressed data; the file ends in it."""


@dataclass(slots=True)
class RecordHeader:
    """A record's header. Texts are stored bytes; the length counts bytes of the block."""

    type: str
    url: bytes
    date: bytes
    length: int | None
    mime: bytes = b""
    """The ARC header's media type, or the WARC header's Content-Type, which is the block's."""
    fields: Mapping[bytes, bytes] = field(default_factory=dict)
    """WARC named fields by lower-case name, at least record_header.READ_FIELDS; empty for ARC."""
    is_arc: bool = False
    status: int | None = None
    location: bytes = b""
    """Result code and location of an ARC version 2 header."""


class RecordBlock:
    """The bytes behind a record's header: as many as declared, or as the section has."""

    __slots__ = ("_left", "_stream", "length")

    def __init__(self, stream: RecordStream, length: int) -> None:
        self._stream = stream
        self._left = length
        self.length = length

    def take(self, size: int = PIECE) -> bytes:
        """Return 1 to `size` bytes; empty at the block's end."""
        if self._left <= 0:
            return b""
        piece = self._stream.take(min(size, self._left))
        self._left -= len(piece)
        return piece

    def drain(self) -> None:
        """Skip the rest of the block."""
        if self._left > 0:
            self._left -= self._stream.skip(self._left)

    @property
    def missing(self) -> int:
        """How many of the declared bytes were not read."""
        return self._left


class BufferedBlock(RecordBlock):
    """A block that is wholly in memory."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes, at: int, length: int) -> None:
        """Take `length` bytes of `data` from `at` on; all of them exist."""
        self._data = data
        self._at = at
        self._left = length
        self.length = length

    def take(self, size: int = 0) -> bytes:
        """Return up to `size` bytes, or all that are left if 0; empty at the block's end."""
        step = self._left if size <= 0 or size > self._left else size
        at = self._at
        self._at += step
        self._left -= step
        return self._data[at : at + step]

    def take_through(self, mark: bytes, limit: int) -> bytes:
        """Return the bytes through `mark`, or all if it is not in the next `limit` bytes."""
        place = self._data.find(mark, self._at, self._at + min(limit, self._left))
        return self.take(place + len(mark) - self._at if place >= 0 else 0)

    def drain(self) -> None:
        """Skip the rest of the block."""
        self._left = 0


def skip_reason(record: RecordHeader) -> str | None:
    """Return why the record is no document, by type and URL; None for a document."""
    if record.type not in DOCUMENT_TYPES:
        return record.type
    start = record.url[:16].lower()
    if not start.startswith(_SCHEMES):
        return None
    return next(reason for scheme, reason in _NO_DOCUMENT if start.startswith(scheme))


def skip_reason_by_type(media_type: bytes) -> str | None:
    """Return why a record without HTTP status is no document, by its block's media type."""
    if media_type[:5].lower() not in (b"text/", b"appli", b"multi"):
        return None
    return _NO_DOCUMENT_TYPES.get(media_type.partition(b";")[0].strip().lower())


def show(data: bytes, limit: int = 120) -> str:
    """Return bytes of an archive for a fault's detail: printable ASCII, the rest escaped."""
    text = data[:limit].decode("latin-1").encode("unicode_escape").decode("ascii")
    return text + ("..." if len(data) > limit else "")


class Section:
    """The members of a section. Offsets of members are raw; others count decompressed bytes."""

    def __init__(self) -> None:
        self.last_member = 0
        """The member with the last byte of the record that was closed last."""
        self.last_end: int | None = None
        """The raw end of that member, once another member follows in this section."""
        self._gathered = 0
        self._latest = 0
        # Earlier members that the buffer may hold: where each ends, its raw offset, its raw end.
        self._borders: deque[tuple[int, int, int]] = deque()
        self._damages: dict[int, str] = {}

    def begin(self, member: int, size: int) -> None:
        """Begin with a member whose first `size` bytes are buffered."""
        self._latest = member
        self._gathered = size
        self._borders.clear()
        if self._damages:
            self._damages = {n: code for n, code in self._damages.items() if n >= member}

    def give(self, size: int) -> None:
        """Count further bytes of the open member."""
        self._gathered += size

    def follow(self, member: int, end: int, unread: int) -> None:
        """Continue with another member. The previous one ends at the raw offset `end`."""
        here = self._gathered - unread
        while self._borders and self._borders[0][0] < here:
            self._borders.popleft()
        if self._latest == self.last_member and self.last_end is None:
            self.last_end = end
        self._borders.append((self._gathered, self._latest, end))
        self._latest = member

    def holder(self, unread: int) -> int:
        """Return the member with the next byte; `unread` bytes are buffered."""
        return self._find(self._gathered - unread)[0]

    def close(self, unread: int) -> None:
        """Record the member and end of the byte before the next one."""
        self.last_member, self.last_end = self._find(self._gathered - unread - 1)

    def fail(self, member: int, code: str) -> None:
        """Record the damage of a member of this section or behind it."""
        self._damages[member] = code

    def damage(self, first: int, last: int) -> str | None:
        """Return the damage of members `first` to `last`, None if they are sound."""
        if not self._damages:
            return None
        return next((c for n, c in sorted(self._damages.items()) if first <= n <= last), None)

    def _find(self, at: int) -> tuple[int, int | None]:
        for until, member, end in self._borders:
            if at < until:
                return member, end
        return self._latest, None
