"""The page of a record: its fields, its formats, its versions, and where its copy is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from functions.oai.format import Format
from functions.oai.render import about
from functions.oai.repository import PublishedRecord
from functions.oai.request import GET_RECORD
from functions.site import linked_data
from functions.site.fields import FieldRow, is_web, list_fields, read_title
from functions.site.page import PageError, PageRequest, SitePage, quote_sql
from functions.snapshot import oai_name
from functions.snapshot.errors import ConfigurationError

_LONGEST = 16_000
"""Characters of a format's XML that a page shows; a page should stay below 150 kB."""
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
    title = request.text("record.deleted") if record.deleted else read_title(record)
    copy = request.find_copy(record)
    formats = list(_render_formats(request, record))
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
        "files": _files(request, record),
        "formats": formats,
        "history": history,
        "raw": raw,
        "commands": _commands(request, record, raw, copy),
        "citation": _citation(request, record, title, copy),
    }
    page = SitePage("record.html", title, values)
    return page if record.deleted else linked_data.describe(request, record, page, copy)


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
    address, parts = request.address, request.parts
    for row in parts.formats.of_kind(record.kind):
        xml = _render(request, record, row)
        if xml is not None:
            given = {"metadataPrefix": row.prefix, "identifier": record.identifier}
            yield FormatText(
                row.prefix,
                xml[:_LONGEST],
                len(xml) > _LONGEST,
                address.answer(GET_RECORD, **given),
                address.request(GET_RECORD, **given),
            )


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


def _files(request: PageRequest, record: PublishedRecord) -> list[dict[str, Any]]:
    """Return the files of a dataset or a template, each with the address of its copy."""
    if record.kind in ("fileset", "file"):
        return [
            {**file, "copy": _file_copy(request, record, file)}
            for file in record.fields.get("files") or ()
        ]
    if record.kind == "template":
        return [
            {
                "path": url,
                "mimetype": about.first(file, "format"),
                "url": url if is_web(url) else None,
                "copy": request.address.content(url) if request.serves_content else None,
            }
            for file in about.nodes_of(record.fields.get("fields"), "file")
            for url in about.texts(file, "url")
        ]
    return []


def _file_copy(
    request: PageRequest, record: PublishedRecord, file: Mapping[str, Any]
) -> str | None:
    if not (request.serves_content and file.get("key")):
        return None
    own = request.address.content(record.identifier)
    return f"{own}?{linked_data.encode({'file': file['path']})}"


def _commands(
    request: PageRequest, record: PublishedRecord, raw: str, copy: str | None
) -> list[tuple[str, str]]:
    """Return commands to copy, each with the key of its description."""
    table = {"capture": "captures", "template": "templates"}.get(record.kind, "records")
    query = f"FROM {table} WHERE identifier = {quote_sql(record.identifier)}"
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
    pieces.append(copy or record.identifier)
    return ". ".join(pieces) + "."
