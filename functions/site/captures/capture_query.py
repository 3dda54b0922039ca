"""What a request asks of the captures of a URL, host or domain: their list, and their tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from functions.content import terms
from functions.content.calendar import MonthCounts
from functions.content.capture_row import CaptureRow
from functions.content.protocols import NEWEST, BytePlace
from functions.content.terms import NoScope, ResumeKey, Scope
from functions.reading.record_filter import write_literals
from functions.reading.repository import RecordFilter
from functions.site.page import TABLE_ROWS, PageError, PageRequest, PageTable
from functions.snapshot import schema
from functions.store import engine

_MONTH = "left(fetch_date, 4) || '-' || coalesce(nullif(substr(fetch_date, 6, 2), ''), '01')"
_DIGITS = "left(regexp_replace(coalesce(fetch_date, ''), '[^0-9]', '', 'g'), 14)"
_STAMP = f"{_DIGITS} || substr('00000101000000', length({_DIGITS}) + 1)"
"""A date in 14 digits, as functions.snapshot.instant.to_stamp writes it."""
_COLUMNS = ("identifier", "url", "fetch_date", "fetch_status", "media_type", "content_length")


@dataclass(frozen=True, slots=True)
class CaptureQuery:
    """The captures of a scope from `since` to `until`, dates in 14 digits, that meet a filter.

    The year of the filter is within the dates already. `key` is where a list goes on.
    """

    scope: Scope
    chosen: RecordFilter
    since: int = 0
    until: int = NEWEST
    key: ResumeKey | None = None

    @staticmethod
    def of(request: PageRequest) -> "CaptureQuery":
        """Return what url, match, status, type, year, from, to and after mean. Raises PageError."""
        manifest, arguments = request.manifest, request.arguments
        if request.parts.search is None or request.parts.calendar is None:
            raise PageError(request.text("captures.none"), 404)
        url, match = (arguments.get(name, "").strip() for name in ("url", "match"))
        try:
            scope = terms.parse_scope(url, match)
        except (NoScope, KeyError) as error:
            raise PageError(request.text("captures.scope")) from error
        chosen = request.read_filter()
        return CaptureQuery(
            scope,
            chosen,
            max(_read_date(request, "from", "0"), int(chosen.year.ljust(14, "0"))),
            min(_read_date(request, "to", "9"), int(chosen.year.ljust(14, "9"))),
            ResumeKey.from_text(arguments.get("after", ""), manifest.namespace, manifest.store),
        )

    @property
    def has_filter(self) -> bool:
        """Whether captures are left out by their status or media type."""
        return bool(self.chosen.status or self.chosen.media_type)

    def is_met(self, capture: CaptureRow) -> bool:
        """Return whether a capture has the status and the media type that a reader chose."""
        status, media_type = str(capture.status or ""), capture.mime or capture.detected or ""
        is_alike = media_type.startswith(self.chosen.media_type)
        return is_alike and status.startswith(self.chosen.status)

    def is_within(self, capture: CaptureRow) -> bool:
        """Return whether a capture is between the dates."""
        return self.since <= int(capture.stamp or 0) <= self.until

    def read(self, request: PageRequest, limit: int) -> tuple[list[CaptureRow], str | None]:
        """Return captures behind the key, and the key behind them; None at the end.

        They are up to `limit`, and of any status and media type. Raises StoreError.
        """
        assert request.parts.search is not None
        after: BytePlace | None = self.key.place if self.key else None
        captures: list[CaptureRow] = []
        for first, last in self.scope.ranges:
            if after is not None and after.surt >= terms.cut_surt(last):
                continue
            # One more shows that more follow.
            count = limit + 1 - len(captures)
            page = request.parts.search.page(
                request.manifest, first, last, after, count, self.since, self.until
            )
            captures += page.captures
            after = page.after
            if after is not None or len(captures) > limit:
                break
        if len(captures) > limit:
            return captures[:limit], find_key(request, captures[limit - 1])
        return captures, after and _write_key(request, after)


def find_key(request: PageRequest, capture: CaptureRow) -> str:
    """Return the key of a list behind a capture."""
    place = BytePlace(terms.cut_surt(capture.surt), int(capture.stamp or 0), capture.position)
    return _write_key(request, place)


def list_arguments(request: PageRequest, query: CaptureQuery) -> Mapping[str, str | None]:
    """Return the arguments of a list besides its key; None for what was not asked for."""
    names = ("status", "type", "year", "from", "to")
    chosen = {name: request.arguments.get(name) or None for name in names}
    return {"url": request.arguments["url"].strip(), "match": query.scope.match, **chosen}


def _write_key(request: PageRequest, place: BytePlace) -> str:
    return ResumeKey(place).to_text(request.manifest.namespace, request.manifest.store)


def _read_date(request: PageRequest, name: str, fill: str) -> int:
    """Return a date of 4 to 14 digits, filled to 14. Raises PageError."""
    text = request.arguments.get(name, "").replace("-", "")
    if text and not (text.isascii() and text.isdecimal() and 4 <= len(text) <= 14):
        raise PageError(request.text("captures.date", name=name))
    return int(text.ljust(14, fill))


def find_months(request: PageRequest) -> PageTable:
    """Return the counts of captures by month, for the arguments url and match. Raises PageError."""
    query, calendar = CaptureQuery.of(request), request.parts.calendar
    assert calendar is not None
    return describe_months(request, query, calendar.count(request.manifest, query.scope.ranges))


def find_captures(request: PageRequest) -> PageTable:
    """Return captures from the key in the argument `after` on, by URL and date.

    The statement has no such key: it begins at the first capture. Raises PageError.
    """
    query = CaptureQuery.of(request)
    rows, more = query.read(request, TABLE_ROWS)
    return describe_list(request, query, [row for row in rows if query.is_met(row)], more)


def _within(scope: Scope) -> str:
    """Return the condition of the captures of a scope."""
    bounds = (
        f"url_surtkey >= {engine.quote(first)} AND url_surtkey < {engine.quote(last)}"
        for first, last in scope.ranges
    )
    return f"({' OR '.join(bounds)})"


def describe_months(request: PageRequest, query: CaptureQuery, counts: MonthCounts) -> PageTable:
    """Return the counts of months as a table, the newest first."""
    rows = [(f"{m // 100:04}-{m % 100:02}", n) for m, n in sorted(counts.months.items()) if m]
    sql = (
        f"SELECT {_MONTH} AS month, count(*) AS captures FROM captures "
        f"WHERE {_within(query.scope)} AND fetch_date != '' GROUP BY ALL ORDER BY month DESC"
    )
    arguments = {name: list_arguments(request, query)[name] for name in ("url", "match")}
    return PageTable("calendar", sql, ("month", "captures"), rows[::-1], arguments)


def describe_list(
    request: PageRequest,
    query: CaptureQuery,
    captures: Sequence[CaptureRow],
    more: str | None = None,
) -> PageTable:
    """Return captures as a table; `more` is the key of those that follow."""
    conditions = [_within(query.scope), *write_literals(replace(query.chosen, year=""))]
    if (query.since, query.until) != (0, NEWEST):
        conditions.append(f"{_STAMP} BETWEEN '{query.since:014}' AND '{query.until:014}'")
    sql = (
        "SELECT identifier, url, fetch_date, fetch_status, "
        "coalesce(content_mime_type, content_mime_detected) AS media_type, content_length "
        f"FROM records WHERE kind = 'capture' AND NOT deleted AND {' AND '.join(conditions)} "
        f"ORDER BY left(url_surtkey, {schema.SURT_LONGEST}), coalesce(fetch_date, ''), position"
    )
    rows = [
        (row.identifier, row.url, row.date, row.status, row.mime or row.detected, row.length)
        for row in captures
    ]
    arguments = list_arguments(request, query)
    following = {**arguments, "after": more} if more else None
    return PageTable("captures", sql, _COLUMNS, rows, arguments, following)
