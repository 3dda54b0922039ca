"""Index of captures over HTTP: answers a query with a limited number of lines.

If more lines follow, the header Link names the next request (RFC 8288). On request a resume key
does the same, as on the Internet Archive's server. A page requested by its number is complete,
because such clients do not follow links.

Other servers number the blocks of a compressed index (ZipNum). Here the blocks are the row groups
of the table of URLs. Their bounds are in the manifest's leaves. Counting pages therefore reads no
rows, and the last page costs as much as the first. Pages belong to one snapshot: a publish between
two requests may move their bounds. A resume key stays valid.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from urllib.parse import urlencode

from functions.config.configuration import Configuration
from functions.content import capture_row, terms
from functions.content.capture_row import FORMS, CaptureRow
from functions.content.protocols import DIALECTS, Bound, BytePlace
from functions.content.query import BadQuery, Query, parse_query
from functions.content.search import CaptureSearch
from functions.content.terms import ResumeKey, cut_surt
from functions.http.http_message import Call, FormError, Reply
from functions.snapshot import layout
from functions.snapshot.manifest import Manifest
from functions.store.engine import QueryError

LARGEST = 4_000_000
"""Approximate maximum bytes of an answer: Lambda's limit is 6 MB, and base64 adds a third."""

_BATCH = 2048
_SCANNED = 5
"""Limit of captures examined for one answer, as a multiple of its maximum number of lines."""
_MARK = 16  # digits of a collapse hash


@dataclass(frozen=True, slots=True)
class PageBounds:
    """A part of a range of SURTs: from a place, and below a bound (None: to the end)."""

    first: str
    last: str
    start: BytePlace | None = None
    end: Bound | None = None


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a query: its blocks in order, and the number of blocks in a page."""

    blocks: Sequence[PageBounds]
    size: int

    @property
    def count(self) -> int:
        """Number of pages."""
        return -(-len(self.blocks) // self.size)

    def page(self, number: int) -> Iterator[PageBounds]:
        """Yield the blocks of a page, adjacent ones joined; none behind the last page."""
        blocks = self.blocks[number * self.size :][: self.size]
        for _, adjacent in groupby(blocks, key=lambda block: (block.first, block.last)):
            head, *rest = adjacent
            yield replace(head, end=rest[-1].end) if rest else head


def largest(lines: int) -> int:
    """Return the maximum number of blocks in a page, if an answer has at most that many lines."""
    return max(1, lines // layout.GROUP_ROWS)


def find_pages(query: Query, search: CaptureSearch, manifest: Manifest, lines: int) -> Pages:
    """Return the pages of a query. Raises StoreError."""
    blocks: list[PageBounds] = []
    for first, last in query.scope.ranges:
        starts = search.starts(manifest, first, last, query.since, query.until)
        # The bounds of a single row group do not show whether it has rows in the range.
        if len(starts) < 2 and not (
            starts and search.captures(manifest, first, last, None, 1, query.since, query.until)
        ):
            continue
        places = [None, *(BytePlace(surt, stamp, -1) for surt, stamp in starts[1:])]
        ends = [*starts[1:], None]
        blocks += [PageBounds(first, last, *bounds) for bounds in zip(places, ends, strict=False)]
    if query.closest is not None:
        return Pages(blocks[:1], 1)
    return Pages(blocks, min(query.page_size, largest(lines)))


@dataclass(slots=True)
class CdxLines:
    """The lines of an answer while it is built; `left` more captures may be examined.

    `marks` holds the collapse hashes of the last line, one for each collapsed field.
    """

    query: Query
    most: int
    left: int
    marks: list[str] = field(init=False)
    size: int = 0
    captures: list[CaptureRow] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    end: BytePlace | None = None

    def __post_init__(self) -> None:
        """Begin with the hashes of the line that the query resumes behind."""
        marks = self.query.resume.mark if self.query.resume else ""
        self.marks = [marks[_MARK * n :][:_MARK] for n in range(len(self.query.collapses))]

    @property
    def is_full(self) -> bool:
        """True if no more lines fit."""
        return len(self.texts) >= self.most or self.size >= LARGEST

    def add(self, capture: CaptureRow) -> None:
        """Append a capture, unless it collapses with the one before it."""
        for number, collapse in enumerate(self.query.collapses):
            mark = collapse.mark(capture)
            if mark == self.marks[number]:
                return
            self.marks[number] = mark
        form = FORMS[self.query.output]
        text = form.write(capture, self.query.fields or form.fields)
        self.captures.append(capture)
        self.texts.append(text)
        self.size += len(text) + 1


def find(query: Query, search: CaptureSearch, manifest: Manifest, most: int) -> CdxLines:
    """Return at most `most` lines of a query, and the place where they end if more follow."""
    wanted = most if query.limit is None else min(query.limit, most)
    lines = CdxLines(query, wanted, _SCANNED * most)
    if query.closest is not None:
        for capture in _near(query, query.closest, search, manifest, wanted):
            if not lines.is_full:
                lines.add(capture)
        return lines
    after = query.resume.place if query.resume else None
    _walk(lines, search, manifest, _ranges(query, after))
    return lines


def page(query: Query, search: CaptureSearch, manifest: Manifest, pages: Pages) -> CdxLines:
    """Return all lines of a page, up to the query's limit or LARGEST bytes."""
    most = query.limit or sys.maxsize
    if query.closest is not None:
        return find(query, search, manifest, query.limit or _BATCH)
    lines = CdxLines(query, most, sys.maxsize)
    _walk(lines, search, manifest, [*pages.page(query.page or 0)])
    return lines


def _ranges(query: Query, after: BytePlace | None) -> Sequence[PageBounds]:
    """Return the parts of the query's ranges behind a place, in the query's order."""
    step = -1 if query.is_reverse else 1
    return [
        PageBounds(first, last, after)
        for first, last in query.scope.ranges[::step]
        if after is None
        or (after.surt <= cut_surt(last) if step > 0 else after.surt >= cut_surt(first))
    ]


def _walk(
    lines: CdxLines, search: CaptureSearch, manifest: Manifest, blocks: Sequence[PageBounds]
) -> None:
    """Add the captures of the blocks to the lines, in order."""
    query = lines.query
    for block in blocks:
        place = block.start
        while True:
            batch = min(_BATCH, max(1, lines.left))
            if not query.filters and not query.collapses:
                batch = min(batch, max(1, lines.most - len(lines.texts)))
            page = search.page(
                manifest,
                block.first,
                block.last,
                place,
                batch,
                query.since,
                query.until,
                reverse=query.is_reverse,
                end=block.end,
            )
            lines.left -= len(page.captures)
            captures = page.captures
            if query.resolves:
                captures = [capture.resolve() for capture in captures]
            for capture in terms.apply_filters(captures, query.filters, search.matching):
                lines.add(capture)
                if lines.is_full:
                    is_last = capture.position == page.captures[-1].position
                    if not (is_last and page.after is None and block is blocks[-1]):
                        stamp = int(capture.stamp or "0")
                        lines.end = BytePlace(cut_surt(capture.surt), stamp, capture.position)
                    return
            place = page.after
            if place is None:
                break
            if lines.left <= 0 or (len(page.captures) < batch and query.page is None):
                lines.end = place
                return


def _near(
    query: Query, moment: int, search: CaptureSearch, manifest: Manifest, most: int
) -> Sequence[CaptureRow]:
    """Return dated captures of one URL, nearest to a date first."""
    captures: list[CaptureRow] = []
    for is_reverse in (False, True):
        since = max(query.since, 1) if is_reverse else max(query.since, moment)
        until = min(query.until, moment - 1) if is_reverse else query.until
        side = replace(
            query, since=since, until=until, is_reverse=is_reverse, collapses=(), output="text"
        )
        lines = CdxLines(side, most, _SCANNED * most)
        _walk(lines, search, manifest, _ranges(side, None))
        captures += lines.captures
    when = capture_row.to_instant(moment)

    def distance(capture: CaptureRow) -> tuple[object, ...]:
        return abs(capture.instant - when), capture.stamp, capture.position

    return sorted(captures, key=distance)[:most]


PLAIN = "text/plain"
_LONGEST = 6000
"""Longest Link, in characters: gateways accept 10 KB of headers.

A longer one becomes a resume key.
"""


def reply(call: Call, search: CaptureSearch, manifest: Manifest, settings: Configuration) -> Reply:
    """Return the answer to a call at one of DIALECTS: lines, or 400 for an invalid query.

    `call.base` is the base URL of the paths here. Raises StoreError.
    """
    dialect = DIALECTS.get(call.path.rstrip("/"))
    if dialect is None:
        return refusal(404, f"There is no such index; known: {', '.join(DIALECTS)}.")
    try:
        pairs = call.pairs
        stores = (manifest.store, *(name for _, name in manifest.former))
        query = parse_query(pairs, manifest.namespace, stores, dialect)
        most = settings["content.lines"]
        if not query.counts_pages and query.page is None:
            lines = find(query, search, manifest, most)
            return _list(call, pairs, lines, manifest)
        pages = find_pages(query, search, manifest, most)
        if query.counts_pages:
            if dialect.is_silent:
                return Reply(200, PLAIN, f"{pages.count}\n".encode())
            sizes = {"pages": pages.count, "pageSize": pages.size, "blocks": len(pages.blocks)}
            return _json_reply(200, sizes)
        if (query.page or 0) < max(1, pages.count):
            return _page(pages, page(query, search, manifest, pages))
        if dialect.is_silent:
            return Reply(200, FORMS[query.output].type, b"")
        raise BadQuery(f"page is {query.page}, expected 0 to {max(0, pages.count - 1)}.")
    except (BadQuery, FormError) as error:
        return refusal(400, str(error))
    except QueryError as error:
        (line, *_) = str(error).splitlines()
        return refusal(400, f"filter is not a regular expression of RE2: {line}")


def _list(
    call: Call, pairs: Sequence[tuple[str, str]], lines: CdxLines, manifest: Manifest
) -> Reply:
    """Return an answer that links to the next one."""
    query, shown = lines.query, None
    headers = {}
    if lines.end is not None:
        key = ResumeKey(lines.end, "".join(lines.marks)).to_text(manifest.namespace, manifest.store)
        more = None if query.limit is None else query.limit - len(lines.texts) or query.limit
        # The next request is the same query with a resume key.
        rest = [(name, text) for name, text in pairs if name not in ("resumeKey", "limit")]
        limit = [] if more is None else [("limit", str(-more if query.is_last else more))]
        form = urlencode([*rest, *limit, ("resumeKey", key)], errors="surrogatepass")
        link = f'<{call.base}{call.path.rstrip("/")}?{form}>; rel="next"'
        if len(link) <= _LONGEST:
            headers["Link"] = link
        if query.shows_key or not headers:
            shown = key
    return _write_reply(query, lines.texts[::-1] if query.is_last else lines.texts, shown, headers)


def _json_reply(status: int, fields: Mapping[str, object]) -> Reply:
    return Reply(status, "application/json", json.dumps(fields).encode() + b"\n")


def _page(pages: Pages, lines: CdxLines) -> Reply:
    """Return a complete page, or a refusal."""
    query = lines.query
    if lines.size >= LARGEST:
        text = f"This page has more than {LARGEST} bytes; request fewer fields with fl, or"
        return refusal(413, f"{text} use showResumeKey and resumeKey.")
    if not lines.texts and query.output == "json" and (query.page or 0) + 1 < pages.count:
        # Clients of Common Crawl's index take an empty page for the last one.
        return _json_reply(404, {"message": f"No Captures found for: {query.scope.url}"})
    return _write_reply(query, lines.texts, None, {})


def _write_reply(
    query: Query, texts: Sequence[str], key: str | None, headers: Mapping[str, str]
) -> Reply:
    form = FORMS[query.output]
    body = form.frame(query.fields or form.fields, texts, key).encode()
    return Reply(200, form.type, body, headers, hashlib.sha256(body).hexdigest()[:32])


def refusal(status: int, text: str) -> Reply:
    """Return a one-line refusal; unprintable characters of quotations become blanks."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return Reply(status, PLAIN, f"{line}\n".encode("utf-8", "replace"))
