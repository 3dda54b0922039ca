"""ScienceBase of the US Geological Survey: items with files, and with sets of files (facets).

Data releases are often a tree: an item without files has items below it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    Person,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import (
    entries,
    first_at,
    inner,
    text,
    values_at,
)
from builder.sources.datasets.platforms.metadata import (
    licences,
    orcid,
    person_from_parts,
    plain_text,
    relate_all,
    texts_at,
)
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

NAME = "sciencebase"
DOMAIN = "www.sciencebase.gov"
_ITEM = re.compile(r"/catalog/(?:item|folder)s?/(?:get/)?(?P<id>[0-9a-f]{24})/?")
_FILE = re.compile(r"/catalog/file/get/.+")
_ON_S3 = "__s3__"
"""Start of the place of a file whose own address answers with an application, not with bytes."""
_CREATORS = frozenset(("author", "originator", "principal investigator", "data author"))
_PUBLISHED = ("publication", "release", "repository created")
"""Types of dates, in lower case, best first."""


class ScienceBase(json_document.HostedPlatform):
    """ScienceBase."""

    facts = PlatformFacts(
        NAME, "host", "files and facets of an item, with digests; not the items below"
    )
    hosts = frozenset((DOMAIN, "sciencebase.gov"))

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the item with its files. Raises FilesetError."""
        path = json_document.path(resource.url)
        if _FILE.fullmatch(path):
            raise ScopeError("it is one file of an item", "file-level")
        if (match := _ITEM.fullmatch(path)) is None:
            raise ScopeError(f"{resource.url} is not an item", "no-dataset")
        id_ = match["id"]
        page = f"https://{DOMAIN}/catalog/item/{id_}"
        item = json_document.mapping(api.document(f"{page}?format=json"), "the item")
        if text(item.get("id")) != id_:
            raise FilesetError("platform-error", f"requested {id_}, received {item.get('id')}")
        files = [_file(id_, entry) for entry in _file_entries(item)]
        for number, facet in enumerate(entries(item.get("facets")), 1):
            folder = (text(facet.get("name")) or f"facet {number}").replace("/", "-")
            within = (_file(id_, entry) for entry in _file_entries(facet))
            files += [replace(file, path=f"{folder}/{file.path}") for file in within]
        if not files and item.get("hasChildren") is True:
            raise ScopeError("its items have the files", "collection")
        return FilesetPlatformItem(
            platform_name=NAME,
            platform_domain=DOMAIN,
            platform_id=id_,
            manifest=json_document.apart(files),
            web_base_url=page,
            description=_describe(item),
        )


def _file_entries(holder: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    files = holder.get("files")
    return () if files is None else json_document.objects_of(files, "the list of files")


def _file(id_: str, entry: Mapping[str, Any]) -> FilesetManifestFile:
    name = json_document.name(entry.get("name"), "a file")
    url = json_document.web(entry.get("downloadUri")) or json_document.web(entry.get("url"))
    places = (text(entry.get("pathOnDisk")) or "", url or "")
    published = json_document.web(entry.get("publishedS3Uri"))  # a public copy of it
    if published:
        url = published
    elif any(_ON_S3 in place for place in places):
        url = f"https://{DOMAIN}/catalog/file/get/{id_}?name={quote(name, safe='')}"
    checksum = inner(entry, "checksum")
    return FilesetManifestFile(
        path=name,
        size=json_document.size(entry.get("size")),
        mimetype=text(entry.get("contentType")),
        status=None if url else "withheld",
        platform_url=url,
        **json_document.digests(checksum.get("type"), checksum.get("value")),
    )


def _describe(item: Mapping[str, Any]) -> Description:
    dois = [row for row in entries(item.get("identifiers")) if _kind(row) == "doi"]
    days = {
        _kind(row): json_document.day(row.get("dateString")) for row in entries(item.get("dates"))
    }
    parent = text(item.get("parentId"))
    works = [(f"https://{DOMAIN}/catalog/item/{quote(parent)}", "IsPartOf")] if parent else []
    links = ((url, "References") for url in values_at(item, "webLinks.uri"))
    return Description(
        title=plain_text(item.get("title")),
        creators=tuple(_creators(entries(item.get("contacts")))),
        publisher="U.S. Geological Survey",
        published=next((day for kind in _PUBLISHED if (day := days.get(kind))), None),
        abstract=first_at(item, "body summary", plain_text),
        subjects=texts_at(item, "tags.name", plain_text),
        licences=licences(name=plain_text(item.get("rights"))),
        doi=first_at(dois, "key", json_document.doi),
        related=relate_all([*works, *links]),
    )


def _kind(entry: Mapping[str, Any]) -> str:
    return (text(entry.get("type")) or "").lower()


def _creators(contacts: Sequence[Mapping[str, Any]]) -> Iterator[Person]:
    for contact in contacts:
        if _kind(contact) not in _CREATORS:
            continue
        person = person_from_parts(
            contact.get("firstName"), contact.get("lastName"), iri=contact.get("orcId")
        )
        name = plain_text(contact.get("name"))
        group = text(contact.get("contactType")) == "organization"
        if person and person.given and not group:
            yield person
        elif name:
            yield Person(name=name, orcid=orcid(contact.get("orcId")), organisation=group)
