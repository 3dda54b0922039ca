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
from urllib.parse import urlencode

from functions.config.configuration import Configuration
from functions.content import capture_row, query, terms
from functions.content.capture_row import FORMS, CaptureRow
from functions.content.protocols import DIALECTS, Bound, BytePlace
from functions.content.query import BadQuery, Query
from functions.content.search import CaptureSearch
from functions.content.terms import ResumeKey, cut_surt
from functions.database.engine import QueryError
from functions.http.http_message import Call, FormError, Reply
from functions.snapshot import layout
from functions.snapshot.manifest import Manifest

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
        joined: PageBounds | None = None
        for block in self.blocks[number * self.size :][: self.size]:
            if joined is not None and (joined.first, joined.last) == (block.first, block.last):
                joined = replace(joined, end=block.end)
                continue
            if joined is not None:
                yield joined
            joined = block
        if joined is not None:
            yield joined


def largest(lines: int) -> int:
    """Return the maximum number of blocks in a page, if an answer has at most that many lines."""
    return max(1, lines // layout.GROUP_ROWS)


def find_pages(asked: Query, search: CaptureSearch, manifest: Manifest, lines: int) -> Pages:
    """Return the pages of a query. Raises StoreError."""
    blocks: list[PageBounds] = []
    for first, last in asked.scope.ranges:
        some = [*_blocks(search, manifest, asked, first, last)]
        # The bounds of a single row group do not show whether it has rows in the range.
        if len(some) > 1 or (some and _has_rows(search, manifest, asked, some[0])):
            blocks += some
    if asked.closest is not None:
        return Pages(blocks[:1], 1)
    return Pages(blocks, min(asked.page_size, largest(lines)))


def _blocks(
    search: CaptureSearch, manifest: Manifest, asked: Query, first: str, last: str
) -> Iterator[PageBounds]:
    starts = search.starts(manifest, first, last, asked.since, asked.until)
    for number, (surt, stamp) in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else None
        yield PageBounds(first, last, BytePlace(surt, stamp, -1) if number else None, end)


def _has_rows(search: CaptureSearch, manifest: Manifest, asked: Query, block: PageBounds) -> bool:
    place = block.start
    while True:
        found = search.page(
            manifest, block.first, block.last, place, 1, asked.since, asked.until, end=block.end
        )
        if found.captures or found.after is None:
            return bool(found.captures)
        place = found.after


@dataclass(slots=True)
class CdxLines:
    """The lines of an answer while it is built; `left` more captures may be examined.

    `marks` holds the collapse hashes of the last line, one for each collapsed field.
    """

    query: Query
    most: int
    left: int
    marks: list[str] = field(default_factory=list)
    size: int = 0
    captures: list[CaptureRow] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    end: BytePlace | None = None

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


def find(asked: Query, search: CaptureSearch, manifest: Manifest, most: int) -> CdxLines:
    """Return at most `most` lines of a query, and the place where they end if more follow."""
    wanted = most if asked.limit is None else min(asked.limit, most)
    lines = CdxLines(asked, wanted, _SCANNED * most, _marks(asked))
    if asked.closest is not None:
        for capture in _near(asked, asked.closest, search, manifest, wanted):
            if not lines.is_full:
                lines.add(capture)
        return lines
    after = asked.resume.place if asked.resume else None
    _walk(lines, search, manifest, _ranges(asked, after))
    return lines


def page(asked: Query, search: CaptureSearch, manifest: Manifest, pages: Pages) -> CdxLines:
    """Return all lines of a page, up to the query's limit or LARGEST bytes."""
    most = asked.limit or sys.maxsize
    if asked.closest is not None:
        return find(asked, search, manifest, asked.limit or _BATCH)
    lines = CdxLines(asked, most, sys.maxsize, _marks(asked))
    _walk(lines, search, manifest, [*pages.page(asked.page or 0)])
    return lines


def _marks(asked: Query) -> list[str]:
    given = asked.resume.mark if asked.resume else ""
    return [given[_MARK * n :][:_MARK] for n in range(len(asked.collapses))]


def _ranges(asked: Query, after: BytePlace | None) -> Sequence[PageBounds]:
    """Return the parts of the query's ranges behind a place, in the query's order."""
    step = -1 if asked.is_reverse else 1
    return [
        PageBounds(first, last, after)
        for first, last in asked.scope.ranges[::step]
        if after is None
        or (after.surt <= cut_surt(last) if step > 0 else after.surt >= cut_surt(first))
    ]


def _walk(
    lines: CdxLines, search: CaptureSearch, manifest: Manifest, blocks: Sequence[PageBounds]
) -> None:
    """Add the captures of the blocks to the lines, in order."""
    asked = lines.query
    for block in blocks:
        place = block.start
        while True:
            batch = min(_BATCH, max(1, lines.left))
            if not asked.filters and not asked.collapses:
                batch = min(batch, max(1, lines.most - len(lines.texts)))
            found = search.page(
                manifest,
                block.first,
                block.last,
                place,
                batch,
                asked.since,
                asked.until,
                reverse=asked.is_reverse,
                end=block.end,
            )
            lines.left -= len(found.captures)
            captures = found.captures
            if asked.resolves:
                captures = [capture.resolve() for capture in captures]
            for capture in terms.apply_filters(captures, asked.filters, search.matching):
                lines.add(capture)
                if lines.is_full:
                    last = found.captures[-1].position
                    is_over = capture.position == last and found.after is None
                    lines.end = (
                        None
                        if is_over and block is blocks[-1]
                        else BytePlace(
                            cut_surt(capture.surt), int(capture.stamp or "0"), capture.position
                        )
                    )
                    return
            place = found.after
            if place is None:
                break
            if lines.left <= 0 or (len(found.captures) < batch and asked.page is None):
                lines.end = place
                return


def _near(
    asked: Query, moment: int, search: CaptureSearch, manifest: Manifest, most: int
) -> Sequence[CaptureRow]:
    """Return dated captures of one URL, nearest to a date first."""
    found: list[CaptureRow] = []
    for is_reverse in (False, True):
        since = max(asked.since, 1) if is_reverse else max(asked.since, moment)
        until = min(asked.until, moment - 1) if is_reverse else asked.until
        side = replace(
            asked, since=since, until=until, is_reverse=is_reverse, collapses=(), output="text"
        )
        lines = CdxLines(side, most, _SCANNED * most)
        _walk(lines, search, manifest, _ranges(side, None))
        found += lines.captures
    when = capture_row.to_instant(moment)

    def distance(capture: CaptureRow) -> tuple[object, ...]:
        return (
            abs(capture_row.to_instant(int(capture.stamp)) - when),
            capture.stamp,
            capture.position,
        )

    return sorted(found, key=distance)[:most]


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
        pairs = call.pairs()
        stores = (manifest.store, *(name for _, name in manifest.former))
        asked = query.read(pairs, manifest.namespace, stores, dialect)
        most = settings["content.lines"]
        if not asked.counts_pages and asked.page is None:
            lines = find(asked, search, manifest, most)
            return _list(call, pairs, lines, manifest)
        found = find_pages(asked, search, manifest, most)
        if asked.counts_pages:
            if dialect.is_silent:
                return Reply(200, PLAIN, f"{found.count}\n".encode())
            told = {"pages": found.count, "pageSize": found.size, "blocks": len(found.blocks)}
            return Reply(200, "application/json", json.dumps(told).encode() + b"\n")
        if (asked.page or 0) < max(1, found.count):
            return _page(found, page(asked, search, manifest, found))
        if dialect.is_silent:
            return Reply(200, FORMS[asked.output].type, b"")
        raise BadQuery(f"page is {asked.page}, expected 0 to {max(0, found.count - 1)}.")
    except (BadQuery, FormError) as error:
        return refusal(400, str(error))
    except QueryError as error:
        (line, *_) = str(error).splitlines()
        return refusal(400, f"filter is not a regular expression of RE2: {line}")


def _list(
    call: Call, pairs: Sequence[tuple[str, str]], lines: CdxLines, manifest: Manifest
) -> Reply:
    """Return an answer that links to the next one."""
    asked, shown = lines.query, None
    headers = {}
    if lines.end is not None:
        key = ResumeKey(lines.end, "".join(lines.marks)).to_text(manifest.namespace, manifest.store)
        more = None if asked.limit is None else asked.limit - len(lines.texts) or asked.limit
        link = f'<{_following(call, pairs, key, more, asked)}>; rel="next"'
        is_told = len(link) <= _LONGEST
        if is_told:
            headers["Link"] = link
        if asked.shows_key or not is_told:
            shown = key
    return _write_reply(asked, lines.texts[::-1] if asked.is_last else lines.texts, shown, headers)


def _page(found: Pages, lines: CdxLines) -> Reply:
    """Return a complete page, or a refusal."""
    asked = lines.query
    if lines.size >= LARGEST:
        text = f"This page has more than {LARGEST} bytes; request fewer fields with fl, or"
        return refusal(413, f"{text} use showResumeKey and resumeKey.")
    if not lines.texts and asked.output == "json" and (asked.page or 0) + 1 < found.count:
        # Clients of Common Crawl's index take an empty page for the last one.
        told = {"message": f"No Captures found for: {asked.scope.url}"}
        return Reply(404, "application/json", json.dumps(told).encode() + b"\n")
    return _write_reply(asked, lines.texts, None, {})


def _write_reply(
    asked: Query, texts: Sequence[str], key: str | None, headers: Mapping[str, str]
) -> Reply:
    form = FORMS[asked.output]
    body = form.frame(asked.fields or form.fields, texts, key).encode()
    return Reply(200, form.type, body, headers, hashlib.sha256(body).hexdigest()[:32])


def refusal(status: int, text: str) -> Reply:
    """Return a one-line refusal; unprintable characters of quotations become blanks."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return Reply(status, PLAIN, f"{line}\n".encode("utf-8", "replace"))


def _following(
    call: Call, pairs: Sequence[tuple[str, str]], key: str, more: int | None, asked: Query
) -> str:
    """Return the URL of the next request: the same query with a resume key."""
    kept = [(name, text) for name, text in pairs if name not in ("resumeKey", "limit")]
    limit = [] if more is None else [("limit", str(-more if asked.is_last else more))]
    found = urlencode([*kept, *limit, ("resumeKey", key)], errors="surrogatepass")
    return f"{call.base}{call.path.rstrip('/')}?{found}"
