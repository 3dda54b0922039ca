"""The first page: what the archive is, what is new and large in it. And how to harvest it."""

from collections.abc import Mapping, Sequence
from typing import Any

from functions.kinds import find_kind
from functions.kinds.collections import COLLECTION
from functions.oai.request import (
    IDENTIFY,
    LIST_FORMATS,
    LIST_IDENTIFIERS,
    LIST_RECORDS,
    LIST_SETS,
)
from functions.reading.repository import CollectionFigures, Figures
from functions.site import browse, dcat
from functions.site.chart import draw_bars
from functions.site.charts_page import draw_hosts
from functions.site.fields import is_web
from functions.site.page import PageRequest, PageTable, SitePage
from functions.snapshot import instant

_NEW, _LARGE = 6, 6
"""Records, and hosts and collections, that the page shows."""


def show(request: PageRequest) -> SitePage:
    """Return the first page."""
    manifest, configuration = request.manifest, request.parts.configuration
    figures = request.parts.repository.figures(manifest)
    kinds = {
        kind: figures.kinds[kind][0] if figures and kind in figures.kinds else count
        for kind, count in sorted(manifest.kinds().items())
    }
    kinds = {kind: count for kind, count in kinds.items() if count}
    collections = None
    if kinds.get(COLLECTION.name):
        collections = request.parts.repository.collections(manifest, _LARGE)
    described = str((configuration["identify.eprints"] or {}).get("content") or "")
    sets = request.parts.repository.children(manifest, "", "", 2 * _LARGE)
    latest = manifest.sequences[-1].effective if manifest.sequences else None
    values: dict[str, Any] = {
        "description": "" if is_web(described) else described,
        "summary": _summarise(request, figures, kinds),
        "span": _find_span(figures, collections),
        "latest": instant.to_text(latest)[:10] if latest else "",
        "listed": kinds,
        "newest": browse.list_newest(request, _NEW),
        "years": _count_years(figures) if figures else (),
        "hosts": draw_hosts(
            request, [(h.value, h.captures) for h in figures.hosts[:_LARGE]], "host"
        )
        if figures
        else (),
        "collections": collections.largest if collections else (),
        "name_collection": request.name_collection,
        "sets": [(row.spec, request.name_set(row.spec, row.name), row.live) for row in sets],
        "has_templates": any(find_kind(kind).terms for kind in kinds),
    }
    title, data = configuration["repository.name"], dcat.describe_dataset(request)
    return SitePage("overview.html", title, values, data=data)


def _summarise(request: PageRequest, figures: Figures | None, kinds: Mapping[str, int]) -> str:
    """Return a sentence of what the archive holds, "" if that is nothing."""
    text, things = request.text, []
    for kind, count in sorted(kinds.items(), key=lambda pair: -pair[1]):
        if kind == COLLECTION.name:  # it holds captures that count already
            continue
        thing = text.count(kind, count)
        if find_kind(kind).is_capture and figures and figures.different["hosts"]:
            hosts = text.count("host", figures.different["hosts"])
            thing = text("front.of_hosts", copies=thing, hosts=hosts)
        things.append(thing)
    return text("front.holds", things=text.join(things)) if things else ""


def _find_span(
    figures: Figures | None, collections: CollectionFigures | None
) -> tuple[str, str] | None:
    """Return the dates of the first and the last capture: days if collections know them."""
    months = [month.value for month in figures.months if month.value] if figures else []
    if not months:
        return None
    first, last = months[0], months[-1]
    if collections and collections.first.startswith(first):
        first = collections.first
    if collections and collections.last.startswith(last):
        last = collections.last
    return first, last


def _count_years(figures: Figures) -> Sequence[Any]:
    """Return a bar for each year from the first to the last with captures."""
    counts: dict[int, int] = {}
    for month in figures.months:
        if month.value[:4].isdecimal():
            year = int(month.value[:4])
            counts[year] = counts.get(year, 0) + month.captures
    years = range(max(min(counts), max(counts) - 99), max(counts) + 1) if counts else ()
    return draw_bars([(str(year), counts.get(year, 0)) for year in years])


def find_formats(request: PageRequest) -> PageTable:
    """Return the metadata formats that a harvest can ask for, with their schemas."""
    formats = request.parts.formats.present(request.manifest).rows
    oai = request.address.oai
    rows = [(row.prefix, row.schema_url(oai), row.namespace) for row in formats]
    return PageTable("formats", "", ("prefix", "schema", "namespace"), rows)


def show_harvesting(request: PageRequest) -> SitePage:
    """Return the page on harvesting: requests of each verb, formats, and where the data is."""
    address, parts = request.address, request.parts
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
        "list_url": address.request(LIST_RECORDS, **dc),
        "formats": find_formats(request),
        "repository": address.is_static and address.page("/static-repository.xml"),
        "serves_content": request.serves_content,
        "root": address.root,
        "data_url": parts.configuration["identify.data_url"],
    }
    return SitePage("harvest.html", request.text("harvest.title"), values)
