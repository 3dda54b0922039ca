"""The first page: what the archive holds, since when, and how it grew. And how to harvest it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from functions.kinds import find_kind
from functions.oai.request import (
    GET_RECORD,
    IDENTIFY,
    LIST_FORMATS,
    LIST_IDENTIFIERS,
    LIST_RECORDS,
    LIST_SETS,
)
from functions.reading.repository import Figures, MediaTypeFigures, ValueFigures
from functions.site import dcat
from functions.site.chart import Bar, draw_bars, draw_line, draw_months
from functions.site.page import PageRequest, SitePage
from functions.snapshot import instant

_TYPES, _HOSTS = 20, 25
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
        f"ORDER BY captures DESC, host LIMIT {_HOSTS}"
    ),
    "domains": (
        "SELECT url_host_registered_domain AS domain, count(*) AS captures FROM captures "
        "WHERE url_host_registered_domain IS NOT NULL GROUP BY ALL "
        f"ORDER BY captures DESC, domain LIMIT {_HOSTS}"
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


@dataclass(frozen=True, slots=True)
class TypeLine:
    """A media type: its captures, their bytes, and its captures by class of HTTP status."""

    name: str
    captures: int
    bytes: int
    classes: tuple[int, ...]


def show(request: PageRequest) -> SitePage:
    """Return the first page."""
    manifest = request.manifest
    figures = request.parts.repository.figures(manifest)
    gone = manifest.tombstones
    values: dict[str, Any] = {
        "records": sum(manifest.kinds().values()) - gone,
        "deleted": gone,
        "bytes": figures.bytes if figures else 0,
        "host_count": figures.different["hosts"] if figures else 0,
        "set_count": manifest.sets,
        "earliest": manifest.earliest,
        "latest": manifest.sequences[-1].effective if manifest.sequences else manifest.effective,
        "publishes": len(manifest.sequences),
        "queries": QUERIES,
        "classes": [name for _, name in CLASSES],
        "has_templates": any(n and find_kind(kind).terms for kind, n in manifest.kinds().items()),
        "listed": sorted(manifest.kinds().items()),
        "figures": figures,
        **(_draw(request, figures) if figures else {}),
    }
    title, data = request.parts.configuration["repository.name"], dcat.describe_dataset(request)
    return SitePage("overview.html", title, values, data=data)


def _draw(request: PageRequest, figures: Figures) -> Mapping[str, Any]:
    """Return the charts of the page."""
    growth = [
        (p.sequence, instant.to_text(p.effective)[:10], sum(kind.live or 0 for kind in p.kinds))
        for p in figures.publishes
        if all(kind.live is not None for kind in p.kinds)
    ]

    def draw(values: Sequence[ValueFigures], match: str) -> tuple[Bar, ...]:
        def link(name: str) -> str | None:
            page = request.address.page("/captures", url=name, match=match)
            return page if request.parts.calendar else None

        return draw_bars([(value.value, value.captures) for value in values[:_HOSTS]], link)

    dated = [month.value for month in figures.months if month.value]
    return {
        "first_month": dated[0] if dated else "",
        "last_month": dated[-1] if dated else "",
        "kinds_of": sorted(figures.kinds.items()),
        "months": [(month.value, month.captures, month.bytes) for month in figures.months],
        "map": draw_months({m.value: m.captures for m in figures.months if "-" in m.value}),
        "types": list_types(figures.media_types),
        "domains": draw(figures.domains, "domain"),
        "hosts": draw(figures.hosts, "host"),
        "growth": growth,
        "plot": draw_line([(day, live) for _, day, live in growth]),
    }


def list_types(media_types: Sequence[MediaTypeFigures]) -> list[TypeLine]:
    """Return the most frequent media types, each with its captures by class of HTTP status."""
    lines = []
    for row in [row for row in media_types if row.media_type is not None][:_TYPES]:
        classes = dict.fromkeys((digit for digit, _ in CLASSES), 0)
        for status, (count, _) in row.statuses.items():
            digit = str((status or 0) // 100)
            classes[digit if digit in classes else ""] += count
        lines.append(TypeLine(row.media_type or "", row.captures, row.bytes, (*classes.values(),)))
    return lines


def show_harvesting(request: PageRequest) -> SitePage:
    """Return the page on harvesting: requests of each verb, formats, and where the data is."""
    address, parts, manifest = request.address, request.parts, request.manifest
    dc = {"metadataPrefix": "oai_dc"}
    requests = [
        (verb, address.answer(verb, **arguments), address.request(verb, **arguments))
        for arguments, verbs in (
            ({}, (IDENTIFY, LIST_FORMATS, LIST_SETS)),
            (dc, (LIST_IDENTIFIERS, LIST_RECORDS)),
        )
        for verb in verbs
    ]
    values = {
        "requests": requests,
        "get_record": GET_RECORD,
        "list_url": address.request(LIST_RECORDS, **dc),
        "formats": parts.formats.present(manifest).rows,
        "repository": address.is_static and address.page("/static-repository.xml"),
        "serves_content": request.serves_content,
        "root": address.root,
        "data_url": parts.configuration["identify.data_url"],
    }
    return SitePage("harvest.html", request.text("harvest.title"), values)
