"""The page of a record: its fields, its formats, its versions, and where its copy is."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from functions.database import engine
from functions.http import http_message
from functions.http.http_message import Reply
from functions.oai.format import Format
from functions.oai.render import about
from functions.oai.repository import ObjectLife, PublishedRecord
from functions.oai.request import GET_RECORD
from functions.site import linked_data
from functions.site.fields import FieldRow, is_web, list_fields, read_title, shorten, weigh
from functions.site.page import PageError, PageRequest, SitePage
from functions.snapshot import oai_name, obi
from functions.snapshot.errors import ConfigurationError

_ROOM, _FILES = 50_000, 30_000
"""Characters of XML and of files with their markup escaped: a page should stay below 150 kB."""
_TITLE = 500
_VERSIONS = 50


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
    manifest, address = request.manifest, request.address
    title = (
        request.text("record.deleted") if record.deleted else shorten(read_title(record), _TITLE)
    )
    copy, lives = request.find_copy(record), _lives(request, record)
    formats = list(_render_formats(request, record))
    files = _files(request, record, lives)
    shown = list(_take(files))
    versions = request.parts.repository.versions(manifest, record.identifier)[-_VERSIONS:]
    stamps = {s.number: s for s in manifest.sequences}
    history = [
        (number, stamps[number].effective)
        for place in reversed(versions)
        for number, one in stamps.items()
        if one.first <= place <= one.last
    ]
    raw = address.request(GET_RECORD, metadataPrefix="oai_dc", identifier=record.identifier)
    values = {
        "record": record,
        "rows": _rows(request, record),
        "sets": [(spec, _name(request, spec)) for spec in record.sets],
        "copy": copy,
        "captures": _captures_link(request, record),
        "sources": _source_links(request, record),
        "files": shown,
        "more_files": len(files) - len(shown),
        "lives": [one for one in lives if not one.url],
        "formats": formats,
        "history": history,
        "raw": raw,
        "commands": _commands(request, record, raw, copy),
        "citation": _citation(request, record, title, copy),
    }
    page = SitePage("record.html", title, values)
    if record.deleted:
        return page
    return linked_data.describe(request, record, page, copy, _items(record, copy, files))


def show_linkset(request: PageRequest) -> Reply:
    """Return the links of a record as a link set (RFC 9264). Raises PageError."""
    record = find_record(request)
    if record.deleted:
        raise PageError(request.text("record.deleted"), 404)
    files = _files(request, record, _lives(request, record))
    items = _items(record, request.find_copy(record), files)
    body = json.dumps(linked_data.write_linkset(request, record, items)).encode()
    digest = http_message.document_digest(body)
    return Reply(200, linked_data.LINKSET_TYPE, body, digest=digest)


def _items(
    record: PublishedRecord, copy: str | None, files: Sequence[Mapping[str, Any]]
) -> list[tuple[str, str]]:
    """Return the addresses of a record's stored bytes, with media types or ""."""
    found = [(file["copy"], file.get("mimetype") or "") for file in files if file["copy"]]
    if not found and copy is not None:
        found = [(copy, record.fields.get("content_mime_type") or "")]
    return found


def _take(files: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield files as long as their rows have room."""
    room = _FILES
    for file in files:
        room -= 200 + 2 * weigh(str(file.get("path"))) + len(str(file.get("copy")))
        if room < 0:
            return
        yield file


def find_record(request: PageRequest) -> PublishedRecord:
    """Return the record that the path or the argument `id` names. Raises PageError."""
    names = (request.arguments["id"],) if "id" in request.arguments else request.names
    for name in names:
        record = request.parts.repository.record(request.manifest, name)
        if record is not None:
            return record
    shown = names[-1] if names else ""
    raise PageError(request.text("record.unknown", identifier=shown), 404)


def _rows(request: PageRequest, record: PublishedRecord) -> list[FieldRow]:
    return [] if record.deleted else list_fields(record, request.text)


def _name(request: PageRequest, spec: str) -> str:
    return oai_name.set_name(spec, request.parts.configuration["sets.names"])


def _render_formats(request: PageRequest, record: PublishedRecord) -> Iterator[FormatText]:
    """Yield the record in each of its formats; one whose crosswalk fails is left out."""
    if record.deleted:
        return
    address, parts, room = request.address, request.parts, _ROOM
    for row in parts.formats.of_kind(record.kind):
        xml = _render(request, record, row)
        if xml is not None:
            given = {"metadataPrefix": row.prefix, "identifier": record.identifier}
            yield FormatText(
                row.prefix,
                xml if weigh(xml) <= room else xml[: room // 6],
                weigh(xml) > room,
                address.answer(GET_RECORD, **given),
                address.request(GET_RECORD, **given),
            )
            room = max(0, room - weigh(xml))


def _render(request: PageRequest, record: PublishedRecord, row: Format) -> str | None:
    parts = request.parts
    if record.kind == "harvested" and row.prefix not in _prefixes(record):
        return None
    try:
        name = parts.configuration["repository.name"]
        return parts.render(record, row, request.address.oai, name).strip()
    except ConfigurationError:
        return None


def _prefixes(record: PublishedRecord) -> set[str]:
    return {one["prefix"] for one in record.fields.get("records") or ()}


def _captures_link(request: PageRequest, record: PublishedRecord) -> str | None:
    url = record.fields.get("url")
    if record.kind != "capture" or not url or request.parts.search is None:
        return None
    return request.address.page("/captures", url=url, match="exact")


def _source_links(request: PageRequest, record: PublishedRecord) -> list[tuple[str, str]]:
    """Return the archive file that a capture came from, with the link to its page."""
    name = record.fields.get("warc_filename")
    return [(name, request.address.page("/source", name=name))] if name else []


def _files(
    request: PageRequest, record: PublishedRecord, lives: Sequence[ObjectLife]
) -> list[dict[str, Any]]:
    """Return the files of a dataset or a template, each with the address of its copy."""
    if record.kind in ("fileset", "file"):
        return [
            {**file, "copy": _file_copy(request, record, file)}
            for file in record.fields.get("files") or ()
        ]
    if record.kind == "template":
        by_url = {one.url: one for one in lives if one.url}
        return [
            {
                "path": url,
                "mimetype": about.first(file, "format"),
                "url": url if is_web(url) else None,
                "life": by_url.get(url),
                "copy": _own(request, record, url) if _is_stored(by_url.get(url)) else None,
            }
            for file in about.nodes_of(record.fields.get("fields"), "file")
            for url in about.texts(file, "url")
        ]
    return []


def _file_copy(
    request: PageRequest, record: PublishedRecord, file: Mapping[str, Any]
) -> str | None:
    return _own(request, record, file["path"]) if file.get("key") else None


def _own(request: PageRequest, record: PublishedRecord, file: str) -> str | None:
    """Return the address of a stored file of a record."""
    if not request.serves_content:
        return None
    own = request.address.content(record.identifier)
    return f"{own}?{linked_data.encode({'file': file})}"


def _is_stored(life: ObjectLife | None) -> bool:
    return life is not None and life.versions > 0


def _lives(request: PageRequest, record: PublishedRecord) -> Sequence[ObjectLife]:
    handle = record.fields.get("handle")
    if record.kind != "template" or not handle:
        return ()
    gathered = record.fields.get(obi.GATHERED) or {}
    return request.parts.repository.template_files(request.manifest, handle, gathered)


def _commands(
    request: PageRequest, record: PublishedRecord, raw: str, copy: str | None
) -> list[tuple[str, str]]:
    """Return commands to copy, each with the key of its description."""
    table = {"capture": "captures", "template": "templates"}.get(record.kind, "records")
    query = f"FROM {table} WHERE identifier = {engine.quote(record.identifier)}"
    found = [
        ("record.get", f"curl {_quote(raw)}"),
        ("record.query", f"sheaf query {_quote(query)}"),
    ]
    if copy is not None:
        found.insert(1, ("record.fetch", f"curl -O -J {_quote(copy)}"))
    for spec in record.sets[:1]:
        folder = "records"
        found.append(
            ("record.harvest", f"sheaf harvest {request.address.oai} {folder} --set {_quote(spec)}")
        )
    return found


def _quote(text: str) -> str:
    """Return an argument for a POSIX shell."""
    if "'" in text and not any(sign in text for sign in '"$`\\!'):
        return f'"{text}"'
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _citation(
    request: PageRequest, record: PublishedRecord, title: str, copy: str | None
) -> str | None:
    """Return how to cite an item: its title, its date, the archive, and its addresses."""
    if record.deleted:
        return None
    fields, name = record.fields, request.parts.configuration["repository.name"]
    date = str(fields.get("fetch_date") or fields.get("published") or "")[:10]
    pieces = [f"“{title}”"]
    if fields.get("url") and record.kind == "capture":
        pieces.append(str(fields["url"]))
    key = "record.archived" if record.kind == "capture" else "record.held"
    pieces.append(request.text(key, name=name) + (f", {date}" if date else ""))
    doi = fields.get("doi")
    pieces.append(f"https://doi.org/{doi}" if doi else copy or record.identifier)
    return ". ".join(pieces) + "."
