"""What searches and contents give: places of captures, archive files, and descriptions.

An error has a reason why content is unavailable, and its HTTP status (RFC 9110, section 15). A
dialect has the differences of the index servers of pywb, the Internet Archive and OutbackCDX. Each
has its own path, so that the clients of all get answers that they can parse.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, NamedTuple, Protocol

from functions.content.capture_row import CaptureRow
from functions.snapshot.errors import SheafError

STATUSES: Mapping[str, int] = {
    "unknown": 404,  # no item has that identifier, or the item has no such file
    "withdrawn": 410,  # the item was taken down; the answer says nothing else about it
    "no-content": 404,  # the item has no bytes of its own: a collection, a paper without a file
    "elsewhere": 404,  # the bytes are at another service, such as archive.org
    "unplaced": 404,  # the capture's record has no known place of its own in its file
    "unresolved": 404,  # a revisit whose original is unknown or has no bytes
    "not-held": 404,  # no version of that time
    "redirect-loop": 404,  # recorded redirects that lead back, or are too many
    "not-at-hand": 503,  # the archive file is not at its recorded place
    "damaged": 502,  # the archive file has other bytes there than the record declares
    "undecodable": 406,  # a coding that Sheaf cannot decode; the bytes as stored are available
}
"""HTTP status of each code. 404 and 410 are final within this snapshot."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A byte range of an object: its address for messages, offset, and length (None: to its end).

    `bucket` and `key` name an object in a bucket; both are empty elsewhere.
    """

    address: str
    offset: int
    length: int | None
    bucket: str = ""
    key: str = ""


NEWEST = 99_999_999_999_999
"""The highest timestamp."""


class BytePlace(NamedTuple):
    """A place in the order of the table of URLs (schema.ORDER); a search continues behind it."""

    surt: str
    stamp: int
    position: int


Bound = tuple[str, int]
"""A SURT, cut as in BytePlace, and a date in 14 digits: where two blocks of the table meet."""


@dataclass(frozen=True, slots=True)
class CapturePlace:
    """The result of a search, and where the next one continues; None at the end of the range."""

    captures: Sequence[CaptureRow]
    after: BytePlace | None


class Archives(Protocol):
    """Reads archive files from all known places. Thread-safe."""

    def candidates(self, filename: str) -> Sequence[str]:
        """Return the addresses at which an archive file may be, likeliest first."""
        ...

    def open(self, address: str, offset: int, length: int | None) -> BinaryIO:
        """Open a byte range of a file for forward reading; the caller closes it.

        Raises ContentError not-at-hand if the file is not there, and StoreError if its storage does
        not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Content:
    """A description of an item's bytes; they are read when it is opened.

    `media_type` is as archived or as the platform declares it ("" if unknown). `headers` are those
    of the archived response, unchanged and in order; empty if there is no response. `digest`
    identifies the bytes ("sha1:" and base32, "sha256:" and hexadecimal) and distinguishes versions.
    `size` is the number of bytes that `open_content` gives, if known before. `name` is the name of
    a file, if the last part of its URL is another. `capture` is set for a
    capture, and `original` for a revisit, whose bytes are the original's. `stretch` is the location
    of the bytes if they need no decoding; None if they are packed in any way.
    """

    identifier: str
    url: str
    date: datetime | None
    status: int | None
    media_type: str
    headers: Sequence[tuple[str, str]]
    digest: str
    size: int | None
    capture: CaptureRow | None = None
    original: CaptureRow | None = None
    stretch: ByteRange | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    """Further facts: `truncated` (why bytes are missing), `damaged` (what failed in their member).

    `coded` lists the codings of the stored payload by its header, in the order of application.
    """
    name: str = ""


class ContentError(SheafError):
    """Content is unavailable; `code` is a key of STATUSES, and the text is a one-line message."""

    def __init__(self, code: str, detail: str) -> None:
        """Raises KeyError for an unknown code."""
        super().__init__(detail)
        self.code = code
        self.status = STATUSES[code]


@dataclass(frozen=True, slots=True)
class Dialect:
    """A server's behaviour: output formats by the value of `output`, and the default format.

    With `is_whole`, a filter without an operator is an expression for the whole value. `since` is
    the earliest date that is listed. With `is_silent`, a page behind the last one is empty instead
    of an error, and the page count is a bare number. With `is_loose`, unknown parameters and
    outputs are passed over, and `~` in a filter searches for a part.
    """

    outputs: Mapping[str, str]
    output: str
    is_whole: bool = False
    since: int = 0
    is_silent: bool = False
    is_loose: bool = False


PYWB = Dialect({name: name for name in ("cdxj", "json", "text", "cdx")}, "cdxj")
# Its clients parse the date of each line, so captures without a date are not listed.
ARCHIVE = Dialect(
    {"text": "text", "json": "array", "cdxj": "cdxj", "cdx": "cdx"},
    "text",
    is_whole=True,
    since=1,
    is_silent=True,
)

REPLAY = "/web"
"""The path of archived pages as they were (functions.content.replay), read only where it is used.
"""

SCRIPTS = "/replay"
"""The path of archived pages with their scripts (functions.content.replay.scripts)."""

OUTBACK = Dialect(
    {"text": "cdx11", "json": "rows", "cdxj": "cdxj"},
    "cdx11",
    is_whole=True,
    since=1,
    is_loose=True,
)

OUTBACK_PATH = "/cdx/outback"
DIALECTS: Mapping[str, Dialect] = {
    "/cdx": PYWB,
    "/cdx/search/cdx": ARCHIVE,
    OUTBACK_PATH: OUTBACK,
}
"""The dialect of each path."""
