"""The captures of a URL, of a host or of a domain: a calendar and a list."""

from calendar import Calendar
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from functions.content import terms
from functions.content.calendar import MonthCounts
from functions.content.capture_row import CaptureRow
from functions.content.protocols import NEWEST
from functions.content.terms import Scope
from functions.site.captures.capture_query import (
    CaptureQuery,
    describe_list,
    describe_months,
    find_key,
    list_arguments,
)
from functions.site.captures.content_change import MARKED, find_changes, list_days, mark_months
from functions.site.chart import HeatMap, draw_months
from functions.site.fields import shorten
from functions.site.page import PageRequest, SitePage

_MANY, _FEW = 100, 1_000
"""Captures on a page, and so many that all are read at once: these have an order of their own."""
_PAGES = ("text/html", "application/xhtml+xml")
_AIDS = ("css", "javascript", "ecmascript", "json", "font", "woff")
"""Media types of pages, and what is in those of files that pages need: lists have these last."""
_LONGEST = 160
"""Characters of a URL in a list: a page should stay below 150 kB."""


@dataclass(frozen=True, slots=True)
class CaptureLine:
    """A capture in a list.

    URLs may be cut. `change` is what became of the URL's content (see content_change), or "".
    """

    identifier: str
    url: str
    date: str
    status: int | None
    type: str
    length: int | None
    change: str
    redirect: str | None
    copy: str | None
    image: str | None


@dataclass(frozen=True, slots=True)
class FoundCaptures:
    """Captures of a page, the arguments of the next page, and what calendars show.

    `marks` are the changes of months, `days` those of the days of a year or less, if it was asked
    for. `types` are media types, the most frequent first.
    """

    lines: Sequence[CaptureLine]
    more: Mapping[str, object]
    marks: Mapping[str, Sequence[str]]
    days: Mapping[str, Sequence[str]]
    types: Sequence[str]


def show(request: PageRequest) -> SitePage:
    """Return the page of captures with its tables. Raises PageError."""
    text, page = request.text, request.address.page
    if not request.arguments.get("url", "").strip() and request.parts.calendar is not None:
        values = {"url": "", "match": request.arguments.get("match", "exact"), "rows": None}
        return SitePage("captures.html", text("captures.title"), values)
    query = CaptureQuery.of(request)
    scope = query.scope
    assert request.parts.calendar is not None
    counts = request.parts.calendar.count(request.manifest, scope.ranges)
    arguments = list_arguments(request, query)
    lasting = {**arguments, "year": None, "from": None, "to": None}
    captures = _find(request, query, is_few=counts.is_whole and counts.total <= _FEW)
    marked = {change for changes in captures.marks.values() for change in changes}
    marked.update(*captures.days.values())
    months = sorted({day[:7] for day in captures.days})
    return SitePage(
        "captures.html",
        f"{text('captures.of')} {scope.url}",
        {
            "url": arguments["url"],
            "scope": scope,
            "match": scope.match,
            "counts": counts,
            "map": _draw(request, counts, lasting, captures.marks),
            "legend": [change for change in MARKED if change in marked],
            "rows": captures.lines,
            "days": captures.days,
            "marks": MARKED,
            "months": {
                month: Calendar().monthdayscalendar(int(month[:4]), int(month[5:]))
                for month in months
            },
            "years": [
                (year, page("/captures", **{**lasting, "from": year, "to": year}))
                for year in sorted({month // 100 for month in counts.months if month})
            ],
            "form": request.make_form(captures.types),
            "arguments": arguments,
            "more": page("/captures", **arguments, **captures.more) if captures.more else None,
            "span": _write_span(arguments["from"] or "", arguments["to"] or ""),
            "whole": page("/captures", **lasting),
            "wider": [
                (match, page("/captures", url=scope.url, match=match))
                for match in ("exact", "host", "domain")
                if match != scope.match
            ],
            "indexes": _list_indexes(request, scope),
            "query": describe_months(request, query, counts),
            "table": describe_list(request, query, ()),
        },
    )


def _draw(
    request: PageRequest,
    counts: MonthCounts,
    arguments: Mapping[str, str | None],
    marks: Mapping[str, Sequence[str]],
) -> HeatMap:
    def link(month: str) -> str:
        digits = month.replace("-", "")
        return request.address.page("/captures", **{**arguments, "from": digits, "to": digits})

    months = {f"{m // 100:04}-{m % 100:02}": n for m, n in counts.months.items() if m}
    return draw_months(months, link, marks)


def _write_span(since: str, until: str) -> str:
    """Return the days between which captures are listed, or the one month; "" for all."""
    first, last = (
        "-".join(filter(None, (text[:4], text[4:6], text[6:8])))
        for text in (since.replace("-", ""), until.replace("-", ""))
    )
    return first if first == last else f"{first} – {last}".strip()


def _find(request: PageRequest, query: CaptureQuery, *, is_few: bool) -> FoundCaptures:
    """Return the captures of a page, with what became of their content."""
    since, until, key = query.since, query.until, query.key
    is_exact = query.scope.match == "exact"
    is_year = f"{since:014}"[:4] == f"{until:014}"[:4]
    digits = request.arguments.get("from", "").replace("-", "")[:6]  # a day is seen in its month
    if is_few and key is None:
        # Those before and behind the dates tell what became of the content.
        rows, more = replace(query, since=0, until=NEWEST).read(request, _FEW)
        if more is None:
            changes = find_changes(rows)
            pairs = [*zip(rows, changes, strict=True)]
            marks = mark_months(rows, changes) if is_exact else {}
            days = list_days((p for p in pairs if is_year and query.is_within(p[0])), digits)
            shown = [pair for pair in pairs if query.is_within(pair[0]) and query.is_met(pair[0])]
            if not is_exact:
                shown.sort(key=lambda pair: _rank(pair[0]))
            start = request.number("start")
            following = {"start": start + _MANY} if len(shown) > start + _MANY else {}
            lines = _describe(request, shown[start : start + _MANY])
            types = Counter(row.mime or row.detected or "" for row in rows)
            return FoundCaptures(lines, following, marks, days, [t for t, _ in types.most_common()])
    # What a page reads must not depend on how rare a status is, so it may be short.
    rows, more = query.read(request, _FEW if query.has_filter else _MANY)
    begun = key.place.surt if key else None

    def is_complete(surt: str) -> bool:
        return since == 0 and terms.cut_surt(surt) != begun

    pairs = [*zip(rows, find_changes(rows, is_complete), strict=True)]
    pairs = [pair for pair in pairs if query.is_met(pair[0])]
    if len(pairs) > _MANY:
        pairs = pairs[:_MANY]
        more = find_key(request, pairs[-1][0])
    whole = is_year and is_exact and key is None
    of_year = query.read(request, _FEW)[0] if whole else []
    days = list_days(zip(of_year, find_changes(of_year), strict=True), digits)
    if not is_exact:
        pairs.sort(key=lambda pair: _rank(pair[0]))
    behind = {"after": more} if more else {}
    return FoundCaptures(_describe(request, pairs), behind, {}, days, request.list_types())


def _rank(row: CaptureRow) -> int:
    """Return the place of a capture in a list: pages, then other content, then what they need."""
    type_ = row.mime or row.detected or ""
    if type_ in _PAGES:
        return 0 if (row.status or 200) < 300 else 1
    return 3 if any(part in type_ for part in _AIDS) else 2


def _describe(
    request: PageRequest, captures: Iterable[tuple[CaptureRow, str]]
) -> Sequence[CaptureLine]:
    """Return the captures and their changes as lines."""
    lines = []
    for row, change in captures:
        copy = request.parts.renderer.copies.find(row.identifier, row.url, row.date)
        if copy is None and request.serves_content:
            view = None if row.method else request.address.replay(row.url, row.date)
            copy = view or request.address.content(row.identifier)
        lines.append(
            CaptureLine(
                row.identifier,
                shorten(row.url, _LONGEST),
                (row.date or "").replace("T", " ").removesuffix("Z"),
                row.status,
                row.mime or row.detected or "",
                row.length,
                change,
                shorten(row.redirect, _LONGEST) if row.redirect else None,
                copy,
                request.find_image(
                    row.url, row.date, row.mime or row.detected or "", row.length, copy
                ),
            )
        )
    return lines


def _list_indexes(request: PageRequest, scope: Scope) -> list[tuple[str, str]]:
    """Return the addresses of the same captures for programs."""
    if not request.serves_content:
        return []
    root = request.address.root
    url = quote(scope.url, safe=":/")
    indexes = [("CDX", f"{root}/cdx?url={url}&matchType={scope.match}")]
    if scope.match == "exact":
        indexes.append(("TimeMap", f"{root}/timemap/link/{scope.url}"))
    return indexes
