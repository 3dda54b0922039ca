"""The page of charts: what the archive holds, since when, and how it grew, in numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

from functions.reading.repository import Figures, MediaTypeFigures
from functions.site.chart import Bar, draw_bars, draw_line, draw_months
from functions.site.page import PageError, PageRequest, PageTable, SitePage
from functions.snapshot import instant

_TYPES, HOSTS = 20, 25
"""Media types and hosts that the page shows."""
CLASSES: Sequence[tuple[str, str]] = (*((digit, f"{digit}xx") for digit in "2345"), ("", "–"))
"""Classes of HTTP status by their first digit; the last one is all else."""

_COUNTS = "count(*) AS captures, sum(coalesce(content_length, 0))::BIGINT AS bytes"
_SUMS = f"{_COUNTS} FROM captures"
_TYPE = "coalesce(content_mime_type, content_mime_detected, '') AS media_type"
_CLASSES = ", ".join(
    f'count(*) FILTER (WHERE fetch_status // 100 = {digit}) AS "{name}"'
    for digit, name in CLASSES[:4]
)
QUERIES: Mapping[str, str] = {
    "months": (
        f"SELECT coalesce(left(fetch_date, 7), '') AS month, {_SUMS} GROUP BY ALL ORDER BY ALL"
    ),
    "types": (
        f"SELECT {_TYPE}, {_COUNTS}, {_CLASSES}, "
        "count(*) FILTER (WHERE coalesce(fetch_status // 100 NOT BETWEEN 2 AND 5, true)) AS other "
        f"FROM captures GROUP BY ALL ORDER BY captures DESC, media_type LIMIT {_TYPES}"
    ),
    "hosts": (
        "SELECT url_host_name AS host, count(*) AS captures FROM captures "
        "WHERE url_host_name IS NOT NULL GROUP BY ALL "
        f"ORDER BY captures DESC, host LIMIT {HOSTS}"
    ),
    "domains": (
        "SELECT url_host_registered_domain AS domain, count(*) AS captures FROM captures "
        "WHERE url_host_registered_domain IS NOT NULL GROUP BY ALL "
        f"ORDER BY captures DESC, domain LIMIT {HOSTS}"
    ),
    "kinds": (
        "SELECT kind, count(*) FILTER (WHERE NOT deleted) AS live, "
        "count(*) FILTER (WHERE deleted) AS deleted FROM records GROUP BY ALL ORDER BY ALL"
    ),
    "growth": (
        "SELECT sequence, left(datestamp::VARCHAR, 10) AS day, sum(live)::BIGINT AS live "
        "FROM publishes GROUP BY ALL ORDER BY ALL"
    ),
}
"""The statements that give the numbers of each table of the page."""
_COLUMNS: Mapping[str, Sequence[str]] = {
    "months": ("month", "captures", "bytes"),
    "types": ("media_type", "captures", "bytes", *(name for _, name in CLASSES[:4]), "other"),
    "hosts": ("host", "captures"),
    "domains": ("domain", "captures"),
    "kinds": ("kind", "live", "deleted"),
    "growth": ("sequence", "day", "live"),
}


def show(request: PageRequest) -> SitePage:
    """Return the page of charts."""
    manifest = request.manifest
    figures = request.parts.repository.figures(manifest)
    months = [month.value for month in figures.months if month.value] if figures else []
    values: dict[str, Any] = {
        "records": sum(manifest.kinds().values()) - manifest.tombstones,
        "bytes": figures.bytes if figures else 0,
        "host_count": figures.different["hosts"] if figures else 0,
        "set_count": manifest.sets,
        "earliest": manifest.earliest,
        "latest": manifest.sequences[-1].effective if manifest.sequences else manifest.effective,
        "publishes": len(manifest.sequences),
        "classes": [name for _, name in CLASSES],
        "first_month": months[0] if months else "",
        "last_month": months[-1] if months else "",
        "tables": {name: _list_rows(name, figures) for name in QUERIES} if figures else {},
    }
    if figures:
        tables = values["tables"]
        growth = [(day, live) for _, day, live in tables["growth"].rows]
        dated = {m.value: m.captures for m in figures.months if "-" in m.value}
        values |= {
            "map": draw_months(dated),
            "plot": draw_line(growth),
            "hosts": draw_hosts(request, tables["hosts"].rows, "host"),
            "domains": draw_hosts(request, tables["domains"].rows, "domain"),
        }
    return SitePage("figures.html", request.text("charts.title"), values)


def find_table(name: str, request: PageRequest) -> PageTable:
    """Return a table of the page by its name. Raises PageError."""
    figures = request.parts.repository.figures(request.manifest)
    if figures is None:
        raise PageError(request.text("error.missing"), 404)
    return _list_rows(name, figures)


def draw_hosts(request: PageRequest, rows: Sequence[Sequence[Any]], match: str) -> tuple[Bar, ...]:
    """Return bars of hosts or domains, which lead to their captures."""

    def link(name: str) -> str | None:
        page = request.address.page("/captures", url=name, match=match)
        return page if request.parts.calendar else None

    return draw_bars([(value, captures) for value, captures in rows], link)


def _list_rows(name: str, figures: Figures) -> PageTable:
    rows: Sequence[Sequence[Any]]
    match name:
        case "months":
            rows = [(month.value, month.captures, month.bytes) for month in figures.months]
        case "types":
            types = [row for row in figures.media_types if row.media_type is not None]
            rows = [_count_classes(row) for row in types[:_TYPES]]
        case "kinds":
            rows = [(kind, *counts) for kind, counts in sorted(figures.kinds.items())]
        case "growth":
            rows = [
                (p.sequence, instant.to_text(p.effective)[:10], sum(k.live or 0 for k in p.kinds))
                for p in figures.publishes
                if all(kind.live is not None for kind in p.kinds)
            ]
        case _:
            values = figures.hosts if name == "hosts" else figures.domains
            rows = [(value.value, value.captures) for value in values[:HOSTS]]
    return PageTable(name, QUERIES[name], _COLUMNS[name], rows)


def _count_classes(row: MediaTypeFigures) -> Sequence[Any]:
    """Return a media type with its captures, their bytes, and captures by class of status."""
    classes = dict.fromkeys((digit for digit, _ in CLASSES), 0)
    for status, (count, _) in row.statuses.items():
        digit = str((status or 0) // 100)
        classes[digit if digit in classes else ""] += count
    return (row.media_type or "", row.captures, row.bytes, *classes.values())
