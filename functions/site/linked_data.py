"""What a record's page says to machines: JSON-LD of schema.org, and typed links.

The links follow FAIR Signposting, Level 1 (RFC 8288): cite-as, describedby, item, type, collection.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from functions.http.http_message import IN_PATH
from functions.oai.repository import PublishedRecord
from functions.oai.request import GET_RECORD
from functions.site.fields import read_authors, read_date, shorten
from functions.site.page import PageRequest, SitePage

_TYPES: Mapping[str, str] = {
    "capture": "WebPage",
    "collection": "Collection",
    "template": "ScholarlyArticle",
    "fileset": "Dataset",
    "file": "Dataset",
    "harvested": "CreativeWork",
}
"""Types of schema.org by the kind of an item."""
_TEMPLATES: Mapping[str, str] = {
    "redif-series": "Periodical",
    "redif-archive": "Organization",
    "redif-book": "Book",
    "redif-software": "SoftwareSourceCode",
}
"""The same by the type of a template; all others are articles."""
_LINKED = 20
"""Links, authors, keywords and licences at most."""
_LONGEST, _SHORT = 1_000, 100
"""Characters of a description, and of an author's name or a keyword."""


def describe(
    request: PageRequest, record: PublishedRecord, page: SitePage, copy: str | None
) -> SitePage:
    """Return the page of a live record with its links and its data."""
    links = list(_links(request, record, copy))
    return replace(page, links=tuple(links), data=_data(request, record, page.title, copy))


def find_type(record: PublishedRecord) -> str:
    """Return the type of schema.org."""
    written = str(record.fields.get("type") or "").partition(" ")[0].lower()
    if record.kind == "template":
        return _TEMPLATES.get(written, _TYPES["template"])
    return _TYPES.get(record.kind, "CreativeWork")


def encode(values: Mapping[str, str]) -> str:
    """Return a query of a URL."""
    return urlencode(values, quote_via=quote, safe=":/")


def _links(request: PageRequest, record: PublishedRecord, copy: str | None) -> list[str]:
    address, fields = request.address, record.fields
    doi = fields.get("doi")
    cited = f"https://doi.org/{quote(doi, safe='/()')}" if doi else _url(request, record)
    found = [_link(cited, "cite-as"), _link(f"https://schema.org/{find_type(record)}", "type")]
    found.append(_link("https://schema.org/AboutPage", "type"))
    for row in request.parts.formats.of_kind(record.kind)[:_LINKED]:
        given = {"metadataPrefix": row.prefix, "identifier": record.identifier}
        raw = address.request(GET_RECORD, **given)
        profile = quote(row.namespace, safe=f":/?#&%{IN_PATH}")
        found.append(_link(raw, "describedby", f'type="application/xml"; profile="{profile}"'))
    if copy is not None:
        found.append(_link(copy, "item"))
    collections = [spec for spec in record.sets[:_LINKED] if spec.startswith("collection:")]
    found += [
        _link(_absolute(request, address.page("/sets", under=spec)), "collection")
        for spec in collections
    ]
    return found


def _link(target: str, relation: str, more: str = "") -> str:
    safe = quote(target, safe=f":/?#[]@!$&()*+,;=%{IN_PATH}")
    return f'<{safe}>; rel="{relation}"' + (f"; {more}" if more else "")


def _url(request: PageRequest, record: PublishedRecord) -> str:
    return _absolute(request, replace(request.address, language="").record(record.identifier))


def _absolute(request: PageRequest, link: str) -> str:
    """Return a link of SiteAddress.page with scheme and host."""
    scheme, _, rest = request.address.root.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}{link}"


def _data(
    request: PageRequest, record: PublishedRecord, title: str, copy: str | None
) -> dict[str, Any]:
    """Return the JSON-LD of a record."""
    fields, configuration = record.fields, request.parts.configuration
    found: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": find_type(record),
        "@id": _url(request, record),
        "identifier": record.identifier,
        "name": title,
        "dateModified": record.datestamp.date().isoformat(),
        "isPartOf": {
            "@type": "DataCatalog",
            "name": configuration["repository.name"],
            "url": request.address.root or "/",
        },
    }
    if record.kind == "capture":
        found["url"] = fields.get("url")
        found["inLanguage"] = (fields.get("content_languages") or "").split(",")[0] or None
        found["encodingFormat"] = fields.get("content_mime_type")
        found["archivedAt"] = copy
    elif copy is not None:
        found["distribution"] = {"@type": "DataDownload", "contentUrl": copy}
    if record.kind in ("fileset", "file"):
        found["url"] = fields.get("url")
        found["description"] = shorten(fields.get("abstract") or "", _LONGEST)
        licences = (fields.get("licences") or ())[:_LINKED]
        found["license"] = [shorten(x.get("url") or x.get("name") or "") for x in licences]
        found["keywords"] = [
            shorten(word, _SHORT) for word in (fields.get("subjects") or ())[:_LINKED]
        ]
        found["publisher"] = fields.get("publisher")
        if fields.get("doi"):
            found["sameAs"] = f"https://doi.org/{fields['doi']}"
    authors = read_authors(record)
    if authors:
        names = (shorten(name, _SHORT) for name in authors[:_LINKED])
        found["author"] = [{"@type": "Person", "name": name} for name in names]
    if read_date(record):
        found["datePublished" if record.kind != "capture" else "dateCreated"] = read_date(record)
    return {name: value for name, value in found.items() if value not in (None, "", [])}
