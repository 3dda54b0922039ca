"""The address of a memento, and links from it to the others of its URL (RFC 7089, section 6).

Other archives have these addresses too. What `/content` answers are the bytes of a memento.

The answers of a memento and of a TimeGate name the first, last, previous and next memento. The
table of URLs is sorted, so a search finds each one by its place. It reads only the records of these
four and of superseded versions before them, however many mementos the URL has.
"""

import logging
from collections.abc import Mapping, Sequence
from email.utils import format_datetime

from functions.content import capture_row, header_fields, terms
from functions.content.capture_row import CaptureRow
from functions.content.protocols import REPLAY, BytePlace
from functions.content.search import CaptureSearch
from functions.content.terms import cut_surt
from functions.http.http_message import Call
from functions.snapshot.errors import StoreError
from functions.snapshot.manifest import Manifest

_LOG = logging.getLogger("sheaf")

_REPEATS = ("range", "if-none-match")  # headers of clients that had the links before
_LONGEST = 4000
"""Longest Link header: gateways accept 10 KB of headers."""


def address(base: str, capture: CaptureRow) -> str:
    """Return the URL of a dated capture as a memento."""
    url = header_fields.uri_in_path(capture_row.capture_url(capture))
    return f"{base}{REPLAY}/{capture.stamp}/{url}"


def date(capture: CaptureRow) -> str:
    """Return the date of a memento in HTTP's format."""
    return format_datetime(capture.instant, usegmt=True)


def link(base: str, capture: CaptureRow, relation: str) -> str:
    """Return the link to a memento."""
    return f'<{address(base, capture)}>; rel="{relation}"; datetime="{date(capture)}"'


def find_links(
    search: CaptureSearch, manifest: Manifest, base: str, capture: CaptureRow | None
) -> Sequence[str]:
    """Return links to a memento and its neighbours, one for each, by date.

    A capture without a date has no links. Raises StoreError.
    """
    if capture is None or not capture.stamp:
        return ()
    before, behind = find_beside(search, manifest, capture)
    first, last = capture, capture
    if before is not None:
        first = _find_next(search, manifest, capture, None) or before
    if behind is not None:
        last = _find_next(search, manifest, capture, None, reverse=True) or behind
    mementos: dict[str, tuple[CaptureRow, list[str]]] = {}
    for memento, relation in (
        (first, "first"),
        (before, "prev"),
        (capture, ""),
        (behind, "next"),
        (last, "last"),
    ):
        if memento is not None:
            mementos.setdefault(memento.identifier, (memento, []))[1].append(relation)
    return [
        link(base, memento, " ".join((*filter(None, relations), "memento")))
        for memento, relations in mementos.values()
    ]


def add_links(
    headers: Mapping[str, str],
    call: Call,
    search: CaptureSearch,
    manifest: Manifest,
    capture: CaptureRow | None,
) -> Mapping[str, str]:
    """Return the headers of a memento, with links to it and its neighbours.

    The bytes matter more than the links. If the search fails, this logs the error and returns the
    headers unchanged. Conditional requests and those for a part get no links.
    """
    if "Link" not in headers or any(name in call.headers for name in _REPEATS):
        return headers
    try:
        links = find_links(search, manifest, call.base, capture)
    except StoreError as error:
        _LOG.error("%a: no links to other mementos: %s: %s", call.path, type(error).__name__, error)
        return headers
    text = ", ".join((headers["Link"], *links))
    return {**headers, "Link": text} if len(text) <= _LONGEST else headers


def find_beside(
    search: CaptureSearch, manifest: Manifest, capture: CaptureRow
) -> tuple[CaptureRow | None, CaptureRow | None]:
    """Return the previous and the next memento of a dated capture's URL. Raises StoreError."""
    place = BytePlace(cut_surt(capture.surt), int(capture.stamp), capture.position)
    before = _find_next(search, manifest, capture, place, reverse=True)
    return before, _find_next(search, manifest, capture, place)


def _find_next(
    search: CaptureSearch,
    manifest: Manifest,
    capture: CaptureRow,
    after: BytePlace | None,
    *,
    reverse: bool = False,
) -> CaptureRow | None:
    within = terms.exact_range(capture.surt)
    captures = search.captures(manifest, *within, after, 1, since=1, reverse=reverse)
    return captures[0] if captures else None
