"""Captures of a restore: their source, their bytes, and their selection by options.

The source is a store or an endpoint. Captures are selected by URL, by date and by HTTP status;
the latest accepted capture of a URL is restored. Dates are in 14 digits and in seconds. The
errors are the reasons why a file is not restored, or not completely: missing bytes, or no place
for it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol
from urllib.parse import urlsplit

from builder.http import limits
from functions.content import terms
from functions.content.protocols import STATUSES
from functions.content.terms import Range, Scope
from functions.snapshot import surt
from functions.snapshot.authority import text as shown
from functions.snapshot.errors import SheafError
from functions.snapshot.instant import from_digits

CODES: Mapping[str, str] = {
    "in-the-way": "a link, or a file that no restore wrote, is in its place",
    "too-large": "it is larger than --max-bytes",
    "cut-short": "the connection ended early, or no more bytes arrived",
    "refused": "the endpoint sent an unexpected response",
    "no-room": "the disk is full, or writing is not permitted",
}
"""Codes of a restore itself; those of functions.content.protocols.STATUSES are reported as well."""
LAST_SECOND = "99991231235959"
"""The last second of all."""
_UNSAID = {ord(character): None for character in "-:TtZz "}
USUAL_STATUSES = "200-205,207-303,305-399"
"""Complete responses and redirects: neither 206 (partial), 304 (not modified) nor errors."""
_STATUS_RANGE = re.compile(r"([1-9][0-9]{2})(?:-([1-9][0-9]{2}))?")


@dataclass(frozen=True, slots=True)
class ListedCapture:
    """A capture as needed for a plan.

    `stamp` is its date in 14 digits; unknown parts have the lowest value ("" if all is unknown).
    `media_type` is without parameters, "" if unknown. `length` is the size of the stored payload in
    bytes; `digest` identifies the payload. The payload of a `revisit` is that of another capture.
    `method` is the request's method unless it is GET: the URL then includes the request's
    arguments.
    """

    identifier: str
    url: str
    surt: str
    stamp: str
    status: int | None
    redirect: str | None
    digest: str
    media_type: str
    length: int | None
    revisit: bool = False
    method: str | None = None

    @property
    def leads(self) -> bool:
        """Whether it is a redirect, which has no file."""
        return self.status is not None and 300 <= self.status < 400 and bool(self.redirect)


@dataclass(frozen=True, slots=True)
class CaptureFilter:
    """Filter of captures by set (if any), and by the prefixes `urls`.

    Without `urls` all captures match. A host name matches the whole host, and `*.host` its
    subdomains as well. `until` has 14 digits: the last second that matches.
    """

    set: str | None
    urls: tuple[str, ...]
    until: str

    def ranges(self) -> Sequence[Range]:
        """Return the ranges of SURTs of the URLs."""
        return [interval for url in self.urls for interval in parse_scope(url).ranges]

    def select(self, captures: Iterable[ListedCapture]) -> Iterator[ListedCapture]:
        """Yield the captures of a set that match by URL and date."""
        ranges = self.ranges()
        for capture in captures:
            within = not self.urls or any(first <= capture.surt < end for first, end in ranges)
            if within and capture.stamp <= self.until:
                yield capture


@dataclass(frozen=True, slots=True)
class CaptureBytes:
    """The bytes of a capture as the server sent them, to be read once; `size` is None if unknown.

    `headers` are those of the archived response, by names in lower case, the first of each.
    """

    stream: BinaryIO
    size: int | None
    headers: Mapping[str, str] = field(default_factory=dict)


class CaptureSource(Protocol):
    """Captures of one snapshot, and their bytes. `open` is thread-safe."""

    @property
    def address(self) -> str:
        """The address, as the user writes it."""
        ...

    def captures(self, choice: CaptureFilter) -> Iterator[ListedCapture]:
        """Yield the captures of the choice, in any order, perhaps with duplicates.

        Raises SheafError if the source is unavailable.
        """
        ...

    def of_url(self, url: str, until: str) -> Iterator[ListedCapture]:
        """Yield the captures of one URL, in any order. Raises SheafError."""
        ...

    def open(self, identifier: str, digest: str = "") -> AbstractContextManager[CaptureBytes]:
        """Open the bytes of a capture, with codings decoded; `digest` comes from its listing.

        Raises MissingError if this file is unavailable, SheafError if the source is. The last read
        raises MissingError damaged if the payload does not match the digest of its record.
        """
        ...

    def close(self) -> None:
        """Close connections and files."""
        ...


class RebuildError(SheafError):
    """A site cannot be restored, or the restore cannot continue."""


class MissingError(RebuildError):
    """A file cannot be restored. The code is one of CODES or STATUSES; the text gives details."""

    def __init__(self, code: str, detail: str) -> None:
        """Raises KeyError for an unknown code."""
        super().__init__(detail)
        self.code = code
        if code not in CODES:
            STATUSES[code]


def parse_scope(text: str) -> Scope:
    """Return the scope: a whole host, `*.host` with its subdomains, else a prefix.

    Raises functions.content.terms.NoScope.
    """
    if text.startswith("*."):
        return terms.parse_scope(text)
    url = terms.complete_url(text.removesuffix("*"))
    parts = urlsplit(url)
    whole = not text.endswith("*") and parts.netloc and not (parts.path + parts.query)
    return terms.parse_scope(url, "host" if whole else "prefix")


def request_url(url: str, method: str | None, body: str | None) -> str:
    """Return a URL, with the method and the body as arguments unless the method was GET."""
    raw = url.encode("utf-8", "surrogatepass")
    return shown(raw if method is None else surt.request_url(raw, method, body))


def until_date(text: str) -> str:
    """Return the last second of a year, month, day or shorter time, in 14 digits.

    The date may contain dashes, colons, `T` and `Z`; it is UTC. Raises RebuildError if it is
    invalid.
    """
    digits = text.translate(_UNSAID)
    if digits.isascii() and digits.isdigit() and len(digits) in {4, 6, 8, 10, 12, 14}:
        with suppress(ValueError):
            from_digits(digits + "00000101000000"[len(digits) :])
            return digits + LAST_SECOND[len(digits) :]
    raise RebuildError(
        f"--as-of {text}: expected a date such as 2009, 2009-11-05 or 2009-11-05T12:00:00Z"
    )


def modification_time(headers: Mapping[str, str], stamp: str) -> int | None:
    """Return the Last-Modified time of a file, in seconds since 1970, or the capture's date.

    The header is ignored if it is after the capture or before 1970. None if both are unknown.
    """
    captured = None
    with suppress(ValueError):  # its date is unknown
        captured = max(0, int(from_digits(stamp).timestamp()))
    modified = limits.parse_http_date(headers.get("last-modified"))
    if modified is not None and modified > 0 and (captured is None or modified <= captured):
        return modified
    return captured


def accept_statuses(text: str, *, requests: bool = False) -> Callable[[ListedCapture], bool]:
    """Return a predicate: whether a capture's status is listed, or unknown.

    The response to another method than GET is not a page of its URL; it counts only with
    `requests`.

    `text` is a list of statuses and ranges, separated by commas. A revisit with status 304 is
    accepted always: it stands for the capture that it refers to. Raises RebuildError if the list is
    invalid.
    """
    wanted: set[int] = set()
    for part in text.split(","):
        match = _STATUS_RANGE.fullmatch(part.strip())
        if not match:
            raise RebuildError(f"--status {text}: expected statuses such as 200,301-308")
        wanted.update(range(int(match[1]), int(match[2] or match[1]) + 1))

    def accepts(capture: ListedCapture) -> bool:
        if capture.method is not None and not requests:
            return False
        return (
            capture.status is None
            or capture.status in wanted
            or (capture.status == 304 and capture.revisit)
        )

    return accepts
