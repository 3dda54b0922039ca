"""What a record's page says to machines: JSON-LD of schema.org, and typed links.

The links follow FAIR Signposting: Level 1 in headers (RFC 8288), Level 2 as a link set (RFC 9264).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from functions.http.http_message import IN_PATH
from functions.kinds import find_kind
from functions.oai.request import GET_RECORD
from functions.reading.repository import PublishedRecord
from functions.site.fields import is_web, read_date, shorten
from functions.site.page import PageRequest, SitePage

LINKSET_TYPE = "application/linkset+json"
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)
_LINKED, _ITEMS = 20, 5_000
"""Links of a relation, authors, keywords and licences at most; and items of a link set."""
_SHORT = 100
"""Characters of the name of an author or file."""
_MOST = {"description": 1_000, "keywords": _SHORT, "license": 300}
"""Characters of the texts of properties."""
_ADDRESS = 500
"""Characters of the address of a file that the data has."""


@dataclass(frozen=True, slots=True)
class TypedLink:
    """A link of a record's page: target, relation, and attributes of the target (RFC 8288)."""

    target: str
    relation: str
    type: str = ""
    profile: str = ""

    def to_header(self) -> str:
        """Return the link as a value of the header Link."""
        pairs = {"rel": self.relation, "type": self.type, "profile": self.profile}
        return f"<{self.target}>" + "".join(f'; {k}="{v}"' for k, v in pairs.items() if v)

    def to_json(self) -> dict[str, Any]:
        """Return the link as a target object; other attributes are lists (RFC 9264, 4.2.4.3)."""
        target: dict[str, Any] = {"href": self.target}
        target |= {"type": self.type} if self.type else {}
        return target | ({"profile": [self.profile]} if self.profile else {})


def describe(
    request: PageRequest,
    record: PublishedRecord,
    page: SitePage,
    copy: str | None,
    items: Sequence[tuple[str, str]],
    files: Sequence[Mapping[str, Any]],
) -> SitePage:
    """Return the page of a live record with its links and its data.

    `items` are the addresses of its stored bytes, with media types or "", and `files` are those of
    a dataset with their copies.
    """
    plain = replace(request.address, language="").page("/linkset", id=record.identifier)
    whole = TypedLink(_escape(request.address.locate(plain)), "linkset", LINKSET_TYPE)
    links = (whole, *list_links(request, record, items[:_LINKED]))
    headers = tuple(link.to_header() for link in links)
    return replace(page, links=headers, data=_data(request, record, page.title, copy, files))


def write_linkset(
    request: PageRequest, record: PublishedRecord, items: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """Return the links of a live record and of its items as a link set (RFC 9264, 4.2).

    That is FAIR Signposting, Level 2.
    """
    page, contexts = find_page(request, record), []
    links: dict[str, Any] = {"anchor": page}
    for link in list_links(request, record, items[:_ITEMS]):
        links.setdefault(link.relation, []).append(link.to_json())
        back = {"item": "collection", "describedby": "describes"}.get(link.relation)
        if back:
            contexts.append({"anchor": link.target, back: [{"href": page, "type": "text/html"}]})
    return {"linkset": [links, *contexts]}


def find_type(record: PublishedRecord) -> str:
    """Return the type of schema.org."""
    kind, written = find_kind(record.kind), str(record.fields.get("type") or "")
    return kind.types.get(written.partition(" ")[0].lower(), kind.type)


def list_links(
    request: PageRequest, record: PublishedRecord, items: Sequence[tuple[str, str]]
) -> list[TypedLink]:
    """Return the links of a live record; `items` are as in describe."""
    address, fields = request.address, record.fields
    doi = fields.get("doi")
    cited = f"https://doi.org/{quote(doi, safe='/()')}" if doi else find_page(request, record)
    links = [
        TypedLink(_escape(cited), "cite-as"),
        TypedLink(f"https://schema.org/{find_type(record)}", "type"),
        TypedLink("https://schema.org/AboutPage", "type"),
    ]
    for row in request.parts.formats.of_snapshot(request.manifest).of_kind(record.kind)[:_LINKED]:
        arguments = {"metadataPrefix": row.prefix, "identifier": record.identifier}
        if not (raw := _escape(address.request(GET_RECORD, **arguments))):
            break
        profile = quote(row.namespace, safe=f":/?#&%{IN_PATH}")
        links.append(TypedLink(raw, "describedby", "application/xml", profile))
    for target, type_ in items:
        media_type = type_ if _MEDIA_TYPE.fullmatch(type_) else ""
        links.append(TypedLink(_escape(target), "item", media_type))
    for spec in record.sets[:_LINKED]:
        if spec.startswith("collection:"):
            target = address.locate(address.page("/sets", under=spec))
            links.append(TypedLink(_escape(target), "collection", "text/html"))
    licences = [licence.get("url") or "" for licence in fields.get("licences") or ()][:_LINKED]
    return links + [TypedLink(_escape(url), "license") for url in licences if is_web(url)]


def _escape(target: str) -> str:
    return quote(target, safe=f":/?#[]@!$&()*+,;=%{IN_PATH}")


def find_page(request: PageRequest, record: PublishedRecord) -> str:
    """Return the URL of a record's page, in the configured language."""
    address = request.address
    return address.locate(replace(address, language="").record(record.identifier))


def _data(
    request: PageRequest,
    record: PublishedRecord,
    title: str,
    copy: str | None,
    files: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the JSON-LD of a record."""
    fields, configuration = record.fields, request.parts.configuration
    data: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": find_type(record),
        "@id": find_page(request, record),
        "identifier": record.identifier,
        "name": title,
        "dateModified": record.datestamp.date().isoformat(),
        "isPartOf": {
            "@type": "DataCatalog",
            "name": configuration["repository.name"],
            "url": f"{request.address.root}/",
        },
    }
    kind = find_kind(record.kind)
    if kind.has_files:
        stored = [file for file in files if file["copy"] and len(file["copy"]) <= _ADDRESS]
        data["distribution"] = [_describe_file(file) for file in stored[:_LINKED]]
    if copy is not None and not data.get("distribution") and not kind.is_capture:
        data["distribution"] = {"@type": "DataDownload", "contentUrl": copy}
    work = kind.work(fields)
    values: Mapping[str, Any] = {
        "url": work.url,
        "description": work.abstract,
        "license": [licence.link or licence.name for licence in work.licences],
        "keywords": [*work.subjects],
        "publisher": work.publisher,
        "inLanguage": work.language,
        "encodingFormat": work.type if kind.is_capture else None,
        "sameAs": f"https://doi.org/{work.doi}" if work.doi else None,
        "author": [
            {"@type": "Person", "name": shorten(author.name, _SHORT)}
            for author in work.creators[:_LINKED]
        ],
    }
    for name, value in values.items():
        most = _MOST.get(name)
        if most and value is not None:
            is_text = isinstance(value, str)
            value = shorten(value, most) if is_text else [shorten(v, most) for v in value[:_LINKED]]
        data[name] = value
    if kind.is_capture:
        data["archivedAt"] = copy
    if read_date(record):
        data["dateCreated" if kind.is_capture else "datePublished"] = read_date(record)
    return {name: value for name, value in data.items() if value not in (None, "", [])}


def _describe_file(file: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored file as a download."""
    size = file.get("bytes")
    download = {
        "@type": "DataDownload",
        "name": shorten(file.get("original") or file["path"], _SHORT),
        "contentUrl": file["copy"],
        "encodingFormat": file.get("mimetype"),
        "contentSize": None if size is None else f"{size} B",
        "sha256": file.get("sha256"),
    }
    return {name: value for name, value in download.items() if value}
