"""The tables of the captures of a URL, host or domain: their list, and their counts by month."""

from collections.abc import Sequence
from dataclasses import replace

from functions.content import terms
from functions.content.calendar import MonthCounts
from functions.content.capture_row import CaptureRow
from functions.content.protocols import BytePlace
from functions.content.terms import NoScope, ResumeKey, Scope
from functions.site.captures import capture_list
from functions.site.page import TABLE_ROWS, PageError, PageRequest, PageTable, SitePage
from functions.snapshot import schema
from functions.store import engine

_MONTH = "left(fetch_date, 4) || '-' || coalesce(nullif(substr(fetch_date, 6, 2), ''), '01')"
_COLUMNS = ("identifier", "url", "fetch_date", "fetch_status", "media_type", "content_length")


def show(request: PageRequest) -> SitePage:
    """Return the page of captures with its tables. Raises PageError.

    The list has one if it is of all dates, as the table is.
    """
    page = capture_list.show(request)
    if page.values["rows"] is None:
        return page
    scope, is_of_all = page.values["scope"], not page.values["span"]
    tables = {
        "query": _describe_months(request, scope, page.values["counts"]),
        "table": _describe_list(request, scope, ()) if is_of_all else None,
    }
    return replace(page, values={**page.values, **tables})


def find_months(request: PageRequest) -> PageTable:
    """Return the counts of captures by month, for the arguments url and match. Raises PageError."""
    scope, calendar = _parse_scope(request), request.parts.calendar
    assert calendar is not None
    return _describe_months(request, scope, calendar.count(request.manifest, scope.ranges))


def find_captures(request: PageRequest) -> PageTable:
    """Return captures from the key in the argument `after` on, by URL and date.

    The statement has no such key: it begins at the first capture. Raises PageError.
    """
    scope, manifest, search = _parse_scope(request), request.manifest, request.parts.search
    assert search is not None
    written = request.arguments.get("after", "")
    key = ResumeKey.from_text(written, manifest.namespace, manifest.store)
    after = key.place if key else None
    rows: list[CaptureRow] = []
    for first, last in scope.ranges:
        if len(rows) <= TABLE_ROWS and (after is None or after.surt < terms.cut_surt(last)):
            rows += search.captures(manifest, first, last, after, TABLE_ROWS + 1 - len(rows))
    if len(rows) <= TABLE_ROWS:
        return _describe_list(request, scope, rows)
    end = rows[TABLE_ROWS - 1]
    place = BytePlace(terms.cut_surt(end.surt), int(end.stamp or 0), end.position)
    more = ResumeKey(place).to_text(manifest.namespace, manifest.store)
    return _describe_list(request, scope, rows[:TABLE_ROWS], more)


def _parse_scope(request: PageRequest) -> Scope:
    """Return what the arguments url and match mean. Raises PageError."""
    if request.parts.search is None or request.parts.calendar is None:
        raise PageError(request.text("captures.none"), 404)
    url, match = (request.arguments.get(name, "").strip() for name in ("url", "match"))
    try:
        return terms.parse_scope(url, match)
    except (NoScope, KeyError) as error:
        raise PageError(request.text("captures.scope")) from error


def _within(scope: Scope) -> str:
    """Return the condition of the captures of a scope."""
    bounds = (
        f"url_surtkey >= {engine.quote(first)} AND url_surtkey < {engine.quote(last)}"
        for first, last in scope.ranges
    )
    return f"({' OR '.join(bounds)})"


def _describe_months(request: PageRequest, scope: Scope, counts: MonthCounts) -> PageTable:
    rows = [(f"{m // 100:04}-{m % 100:02}", n) for m, n in sorted(counts.months.items()) if m]
    sql = (
        f"SELECT {_MONTH} AS month, count(*) AS captures FROM captures "
        f"WHERE {_within(scope)} AND fetch_date != '' GROUP BY ALL ORDER BY month DESC"
    )
    filters = {"url": request.arguments["url"], "match": scope.match}
    return PageTable("calendar", sql, ("month", "captures"), rows[::-1], filters)


def _describe_list(
    request: PageRequest, scope: Scope, captures: Sequence[CaptureRow], more: str = ""
) -> PageTable:
    """Return captures as a table; `more` is the key of those that follow."""
    sql = (
        "SELECT identifier, url, fetch_date, fetch_status, "
        "coalesce(content_mime_type, content_mime_detected) AS media_type, content_length "
        f"FROM records WHERE kind = 'capture' AND NOT deleted AND {_within(scope)} "
        f"ORDER BY left(url_surtkey, {schema.SURT_LONGEST}), coalesce(fetch_date, ''), position"
    )
    rows = [
        (row.identifier, row.url, row.date, row.status, row.mime or row.detected, row.length)
        for row in captures
    ]
    filters = {"url": request.arguments["url"], "match": scope.match}
    return PageTable(
        "captures", sql, _COLUMNS, rows, filters, {**filters, "after": more} if more else None
    )
