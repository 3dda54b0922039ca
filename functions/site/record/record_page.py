"""The page of a record: its fields, its formats, its versions, and where its copy is."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from functions.content import neighbours
from functions.content.capture_row import CaptureRow
from functions.http import http_message
from functions.http.http_message import Reply
from functions.kinds import CAPTURES, find_kind
from functions.kinds.kind import LinkedName, link_identifier
from functions.oai.format import Format, select_available
from functions.oai.request import GET_RECORD
from functions.reading.repository import PublishedRecord, find_item
from functions.site.fields import cut_work, is_web, list_fields, read_title, shorten, weigh
from functions.site.page import PageError, PageRequest, PageTable, SitePage
from functions.site.record import citation, commands, linked_data, record_files
from functions.snapshot import oai_name
from functions.snapshot.errors import ConfigurationError

_ROOM = 40_000
"""Characters of XML with its markup escaped: a page should stay below 150 kB."""
_RELATED = 100
"""Related works that a page links."""


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
        "sets": [(spec, request.name_set(spec, names.get(spec))) for spec in record.sets],
        "copy": view,
        "captures": address.page("/captures", url=url, match="exact") if is_listed else None,
        "beside": _find_beside(request, record) if is_listed else (),
        "sources": [(name, request.address.page("/source", name=name))] if name else [],
        "files": shown,
        "more_files": len(files) - len(shown),
        "file_table": record_files.describe_files(request, record, files),
        "lives": [life for life in lives if not life.url],
        "formats": formats,
        "history": _list_history(request, record),
        "raw": raw,
        "commands": commands.list_commands(request, record, raw, copy),
    }
    if record.deleted:
        values |= {"rows": (), "citation": None}
        return SitePage("record.html", title, values, 410)  # search engines drop what is gone
    values |= _describe_work(request, record, title, view or page_url, files)
    if kind.is_capture and record.fields.get("fetch_status") in (200, None):
        type_ = kind.work(record.fields).type
        date, size = record.fields.get("fetch_date"), record.fields.get("content_length")
        values["image"] = request.find_image(record.fields["url"], date, type_, size, view)
    page = SitePage("record.html", title, values)
    items = record_files.list_items(record, copy, files)
    return linked_data.describe(request, record, page, copy, items, files)


def _describe_work(
    request: PageRequest,
    record: PublishedRecord,
    title: str,
    address: str,
    files: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the card of a live record, its citations, which name `address`, and its fields."""
    kind = find_kind(record.kind)
    work = cut_work(kind.work(record.fields))
    pdfs = (f["copy"] for f in files if f["copy"] and f.get("mimetype") == "application/pdf")
    name = request.parts.configuration["repository.name"]
    archive = request.text("record.archived" if kind.is_capture else "record.held", name=name)
    cited = citation.describe(record, title, address, archive)
    citations = []
    for path, type_ in citation.TYPES.items():
        link = request.address.page(f"/{path}", id=record.identifier)
        if not link:  # a host of files may not know the type
            body = request.parts.renderer.page(path, _cite(request, record))
            link = f"data:{type_};charset=utf-8,{quote(body)}"
        citations.append((path[5:], link))
    return {
        "is_capture": kind.is_capture,
        "work": work,
        "creators": [_link_person(request, person) for person in work.creators],
        "contributors": [_link_person(request, person) for person in work.contributors],
        "versions": [
            (version, request.address.record(str(version.get("identifier"))))
            for version in record.fields.get("versions") or ()
        ],
        "related": [
            (re.sub(r"(?<!^)(?=[A-Z])", " ", str(link.get("relation") or "")).capitalize(), other)
            for link in record.fields.get("related") or ()
            if (other := link_identifier(str(link.get("identifier") or ""))).name
        ][:_RELATED],
        "citation": request.parts.renderer.page("cite.txt", cited).decode().strip(),
        "citations": citations,
        "cited": cited,
        "pdf": next(pdfs, ""),
        "rows": list_fields(record, request.text, _link_fields(request, record)),
    }


def find_files(request: PageRequest) -> PageTable:
    """Return the files of a record, from the argument `start` on. Raises PageError."""
    record = find_record(request)
    lives = record_files.read_lives(request, record)
    files = record_files.list_files(request, record, lives)
    return record_files.describe_files(request, record, files)


def show_linkset(request: PageRequest) -> Reply:
    """Return the links of a record as a link set (RFC 9264). Raises PageError."""
    record = find_record(request)
    if record.deleted:
        raise PageError(request.text("record.deleted"), 404)
    files = record_files.list_files(request, record, record_files.read_lives(request, record))
    items = record_files.list_items(record, record_files.find_copy(request, record, files), files)
    body = json.dumps(linked_data.write_linkset(request, record, items)).encode()
    return Reply(200, linked_data.LINKSET_TYPE, body, digest=http_message.document_digest(body))


def show_citation(request: PageRequest) -> Reply:
    """Return the citation of a record in BibTeX or RIS, as a file. Raises PageError."""
    record, path = find_record(request), request.call.path[1:]
    if record.deleted:
        raise PageError(request.text("record.deleted"), 404)
    body = request.parts.renderer.page(path, _cite(request, record))
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", record.identifier.rpartition(":")[2])[-60:]
    headers = {"Content-Disposition": f'attachment; filename="{name}{path[4:]}"'}
    tag = http_message.document_digest(body)
    return Reply(200, citation.TYPES[path], body, headers, tag)


def _cite(request: PageRequest, record: PublishedRecord) -> dict[str, Any]:
    address = request.find_view(record) or linked_data.find_page(request, record)
    archive = request.parts.configuration["repository.name"]
    return citation.describe(record, read_title(record), address, archive)


def _link_person(request: PageRequest, person: LinkedName) -> tuple[str, str]:
    """Return a name, and where it leads: to an ORCID, to the person's record, or to a search."""
    if is_web(person.link):
        return person.name, person.link
    if person.link and find_item(request.parts.repository, request.manifest, person.link):
        return person.name, request.address.record(person.link)
    if request.parts.words is None or '"' in person.name:
        return person.name, ""
    return person.name, request.address.page("/search", q=f'"{person.name}"')


def _find_beside(
    request: PageRequest, record: PublishedRecord
) -> Sequence[tuple[str, str, CaptureRow]]:
    """Return the captures of the same URL before and behind a capture, with relation and label."""
    capture = CaptureRow.of(record.identifier, record.position, record.sets, record.fields)
    if request.parts.search is None or not capture.stamp or not capture.surt:
        return ()
    beside = neighbours.find_beside(request.parts.search, request.manifest, capture)
    relations = (("prev", "replay.before"), ("next", "replay.behind"))
    named = zip(relations, beside, strict=True)
    return [(relation, request.text(key), row) for (relation, key), row in named if row]


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
    """Return links of a record's columns: to its hosts, its sets and its original."""
    fields, page, links = record.fields, request.address.page, {}
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
