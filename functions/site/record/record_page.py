"""The page of a record: its fields, its formats, its versions, and where its copy is."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import quote

from functions.http import http_message
from functions.http.http_message import Reply
from functions.kinds import CAPTURES, find_kind
from functions.oai.format import Format, select_available
from functions.oai.request import GET_RECORD
from functions.reading.repository import PublishedRecord, find_item
from functions.site.fields import list_fields, read_title, shorten, weigh
from functions.site.page import PageError, PageRequest, SitePage
from functions.site.record import citation, commands, linked_data, record_files
from functions.snapshot import oai_name
from functions.snapshot.errors import ConfigurationError

_ROOM = 50_000
"""Characters of XML with its markup escaped: a page should stay below 150 kB."""


@dataclass(frozen=True, slots=True)
class FormatText:
    """A record in a format: XML, whether it was cut, and the addresses of the whole."""

    prefix: str
    xml: str
    is_cut: bool
    view: str
    raw: str


def show(request: PageRequest) -> SitePage:
    """Return the page of a record. Raises PageError if the snapshot does not have it."""
    record = find_record(request)
    address = request.address
    title = request.text("record.deleted") if record.deleted else shorten(read_title(record), 500)
    lives = record_files.read_lives(request, record)
    files = record_files.list_files(request, record, lives)
    copy, shown = record_files.find_copy(request, record, files), [*record_files.take_files(files)]
    view = request.find_view(record) or copy
    formats = list(_render_formats(request, record))
    page_url = linked_data.find_page(request, record)
    raw = address.request(GET_RECORD, metadataPrefix="oai_dc", identifier=record.identifier)
    kind = find_kind(record.kind)
    name, series = record.fields.get(kind.source), record.fields.get("series")
    names = {series: record.fields.get("series_name")} if series else {}
    url = record.fields.get("url")
    is_listed = kind.is_capture and url and request.parts.search is not None
    values = {
        "record": record,
        "rows": []
        if record.deleted
        else list_fields(record, request.text, _link_fields(request, record)),
        "sets": [(spec, request.name_set(spec, names.get(spec))) for spec in record.sets],
        "copy": view,
        "captures": address.page("/captures", url=url, match="exact") if is_listed else None,
        "sources": [(name, request.address.page("/source", name=name))] if name else [],
        "files": shown,
        "more_files": len(files) - len(shown),
        "lives": [life for life in lives if not life.url],
        "formats": formats,
        "history": _list_history(request, record),
        "raw": raw,
        "commands": commands.list_commands(request, record, raw, copy),
        "citation": citation.cite(request, record, title, view or page_url),
    }
    page = SitePage("record.html", title, values)
    if record.deleted:
        return replace(page, status=410)  # search engines drop what is gone
    items = record_files.list_items(record, copy, files)
    return linked_data.describe(request, record, page, copy, items, files)


def show_linkset(request: PageRequest) -> Reply:
    """Return the links of a record as a link set (RFC 9264). Raises PageError."""
    record = find_record(request)
    if record.deleted:
        raise PageError(request.text("record.deleted"), 404)
    files = record_files.list_files(request, record, record_files.read_lives(request, record))
    items = record_files.list_items(record, record_files.find_copy(request, record, files), files)
    body = json.dumps(linked_data.write_linkset(request, record, items)).encode()
    return Reply(200, linked_data.LINKSET_TYPE, body, digest=http_message.document_digest(body))


def find_record(request: PageRequest) -> PublishedRecord:
    """Return the record that the path or the argument `id` names. Raises PageError."""
    names = (request.arguments["id"],) if "id" in request.arguments else request.names
    for name in names:
        record = find_item(request.parts.repository, request.manifest, name)
        if record is not None:
            return record
    raise PageError(request.text("record.unknown", identifier=names[-1] if names else ""), 404)


def _list_history(request: PageRequest, record: PublishedRecord) -> list[tuple[int, datetime]]:
    """Return number and instant of the publishes that changed a record, newest first."""
    manifest = request.manifest
    versions = request.parts.repository.versions(manifest, record.identifier)[-50:]
    return [
        (sequence.number, sequence.effective)
        for place in reversed(versions)
        for sequence in manifest.sequences
        if sequence.first <= place <= sequence.last
    ]


def _link_fields(request: PageRequest, record: PublishedRecord) -> Mapping[str, str]:
    """Return links of a record's columns: to its DOI, its hosts, its sets and its original."""
    fields, page, links = record.fields, request.address.page, {}
    if fields.get("doi"):
        links["doi"] = f"https://doi.org/{quote(fields['doi'], safe='/()')}"
    if record.kind in CAPTURES and request.parts.calendar is not None:
        for name, match in (("url_host_name", "host"), ("url_host_registered_domain", "domain")):
            if fields.get(name):
                links[name] = page("/captures", url=fields[name], match=match)
    if fields.get("refers_to"):
        links["refers_to"] = request.address.record(fields["refers_to"])
    sets = {above for spec in record.sets for above in oai_name.set_lineage(spec)}
    for name in ("archive", "series", "set_spec"):
        spec = str(fields.get(name) or "")
        if spec in sets:
            links[name] = page("/sets", under=spec)
    return links


def _render_formats(request: PageRequest, record: PublishedRecord) -> Iterator[FormatText]:
    """Yield the record in each of its formats; one whose crosswalk fails is left out."""
    if record.deleted:
        return
    address, parts, room = request.address, request.parts, _ROOM
    for row in parts.formats.of_snapshot(request.manifest).of_kind(record.kind):
        if (xml := _render(request, record, row)) is not None:
            arguments = {"metadataPrefix": row.prefix, "identifier": record.identifier}
            yield FormatText(
                row.prefix,
                xml if weigh(xml) <= room else xml[: room // 6],
                weigh(xml) > room,
                address.answer(GET_RECORD, **arguments),
                address.request(GET_RECORD, **arguments),
            )
            room = max(0, room - weigh(xml))


def _render(request: PageRequest, record: PublishedRecord, row: Format) -> str | None:
    parts = request.parts
    try:
        name = parts.configuration["repository.name"]
        for available in select_available([record], row):
            if not available.deleted:
                return parts.renderer.record(available, row, request.address.oai, name).strip()
        return None
    except ConfigurationError:
        return None
