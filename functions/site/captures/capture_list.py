"""The captures of a URL, of a host or of a domain: a calendar and a list."""

from calendar import Calendar
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from functions.content import terms
from functions.content.calendar import MonthCounts
from functions.content.capture_row import CaptureRow
from functions.content.protocols import NEWEST, BytePlace
from functions.content.terms import NoScope, ResumeKey, Scope
from functions.site.captures.content_change import MARKED, find_changes, list_days, mark_months
from functions.site.chart import HeatMap, draw_months
from functions.site.fields import shorten
from functions.site.page import PageError, PageRequest, SitePage

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
    for.
    """

    lines: Sequence[CaptureLine]
    more: Mapping[str, object]
    marks: Mapping[str, Sequence[str]]
    days: Mapping[str, Sequence[str]]


def show(request: PageRequest) -> SitePage:
    """Return the page for the arguments url, match, from, to and after. Raises PageError."""
    arguments, text = request.arguments, request.text
    if request.parts.search is None or request.parts.calendar is None:
        raise PageError(text("captures.none"), 404)
    url = arguments.get("url", "").strip()
    values: dict[str, object] = {"url": url, "match": arguments.get("match", "exact")}
    if not url:
        return SitePage("captures.html", text("captures.title"), {**values, "rows": None})
    try:
        scope = terms.parse_scope(url, arguments.get("match", ""))
    except (NoScope, KeyError) as error:
        raise PageError(text("captures.scope")) from error
    since = _read_date(request, "from", "0")
    until = _read_date(request, "to", "9")
    counts = request.parts.calendar.count(request.manifest, scope.ranges)
    filters = {"url": url, "match": scope.match}
    few = counts.is_whole and counts.total <= _FEW
    captures = _find(request, scope, since, until, is_few=few)
    marked = {change for changes in captures.marks.values() for change in changes}
    marked.update(*captures.days.values())
    dates = {name: arguments.get(name) or None for name in ("from", "to")}
    page = request.address.page
    return SitePage(
        "captures.html",
        f"{text('captures.of')} {scope.url}",
        {
            "url": url,
            "scope": scope,
            "match": scope.match,
            "counts": counts,
            "map": _draw(request, counts, filters, captures.marks),
            "legend": [change for change in MARKED if change in marked],
            "rows": captures.lines,
            "days": captures.days,
            "marks": MARKED,
            "months": {
                month: Calendar().monthdayscalendar(int(month[:4]), int(month[5:]))
                for month in sorted({day[:7] for day in captures.days})
            },
            "years": [
                (year, page("/captures", **filters, **{"from": year, "to": year}))
                for year in sorted({month // 100 for month in counts.months if month})
            ],
            "more": page("/captures", **filters, **dates, **captures.more)
            if captures.more
            else None,
            "span": _write_span(arguments.get("from", ""), arguments.get("to", "")),
            "whole": page("/captures", **filters),
            "wider": [
                (match, page("/captures", url=scope.url, match=match))
                for match in ("exact", "host", "domain")
                if match != scope.match
            ],
            "indexes": _list_indexes(request, scope),
        },
    )


def _draw(
    request: PageRequest,
    counts: MonthCounts,
    filters: dict[str, str],
    marks: Mapping[str, Sequence[str]],
) -> HeatMap:
    def link(month: str) -> str:
        digits = month.replace("-", "")
        return request.address.page("/captures", **filters, **{"from": digits, "to": digits})

    months = {f"{m // 100:04}-{m % 100:02}": n for m, n in counts.months.items() if m}
    return draw_months(months, link, marks)


def _read_date(request: PageRequest, name: str, fill: str) -> int:
    """Return a date of 4 to 14 digits, filled to 14. Raises PageError."""
    text = request.arguments.get(name, "").replace("-", "")
    if not text:
        return 0 if fill == "0" else NEWEST
    if not (text.isascii() and text.isdecimal() and 4 <= len(text) <= 14):
        raise PageError(request.text("captures.date", name=name))
    return int(text.ljust(14, fill))


def _write_span(since: str, until: str) -> str:
    """Return the days between which captures are listed, or the one month; "" for all."""
    first, last = (
        "-".join(filter(None, (text[:4], text[4:6], text[6:8])))
        for text in (since.replace("-", ""), until.replace("-", ""))
    )
    return first if first == last else f"{first} – {last}".strip()


def _read(
    request: PageRequest,
    scope: Scope,
    key: ResumeKey | None,
    since: int,
    until: int,
    most: int = _MANY,
) -> tuple[list[CaptureRow], str | None]:
    """Return up to `most` captures behind a key, and the key of the next; None at the end."""
    assert request.parts.search is not None
    manifest = request.manifest
    after: BytePlace | None = key.place if key else None
    captures: list[CaptureRow] = []
    for first, last in scope.ranges:
        if after is not None and after.surt >= terms.cut_surt(last):
            continue
        page = request.parts.search.page(
            manifest, first, last, after, most + 1 - len(captures), since, until
        )
        captures += page.captures
        after = page.after
        if after is not None or len(captures) > most:
            break
    if after is None and len(captures) <= most:
        return captures, None
    place = after
    if place is None or len(captures) > most:  # one more shows that more follow
        captures = captures[:most]
        last_one = captures[-1]
        surt = terms.cut_surt(last_one.surt)
        place = BytePlace(surt, int(last_one.stamp or 0), last_one.position)
    return captures, ResumeKey(place).to_text(manifest.namespace, manifest.store)


def _find(
    request: PageRequest, scope: Scope, since: int, until: int, *, is_few: bool
) -> FoundCaptures:
    """Return the captures of a page, with what became of their content."""
    manifest, written = request.manifest, request.arguments.get("after", "")
    key = ResumeKey.from_text(written, manifest.namespace, manifest.store)
    is_exact, is_year = scope.match == "exact", f"{since:014}"[:4] == f"{until:014}"[:4]
    digits = request.arguments.get("from", "").replace("-", "")[:6]  # a day is seen in its month
    if is_few and key is None:
        # Those before and behind the dates tell what became of the content.
        rows, more = _read(request, scope, None, 0, NEWEST, _FEW)
        if more is None:
            changes = find_changes(rows)
            pairs = [*zip(rows, changes, strict=True)]
            marks = mark_months(rows, changes) if is_exact else {}
            shown = [pair for pair in pairs if since <= int(pair[0].stamp or 0) <= until]
            days = list_days(pairs if is_year else [], digits)
            if not is_exact:
                shown.sort(key=lambda pair: _rank(pair[0]))
            start = request.number("start")
            following = {"start": start + _MANY} if len(shown) > start + _MANY else {}
            lines = _describe(request, shown[start : start + _MANY])
            return FoundCaptures(lines, following, marks, days)
    rows, more = _read(request, scope, key, since, until)
    begun = key.place.surt if key else None

    def is_complete(surt: str) -> bool:
        return since == 0 and terms.cut_surt(surt) != begun

    pairs = [*zip(rows, find_changes(rows, is_complete), strict=True)]
    whole = is_year and is_exact and key is None
    of_year = _read(request, scope, None, since, until, _FEW)[0] if whole else []
    days = list_days(zip(of_year, find_changes(of_year), strict=True), digits)
    if not is_exact:
        pairs.sort(key=lambda pair: _rank(pair[0]))
    return FoundCaptures(_describe(request, pairs), {"after": more} if more else {}, {}, days)


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
