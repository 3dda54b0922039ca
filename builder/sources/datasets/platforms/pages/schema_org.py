"""schema.org: a description of a dataset and its files, in Sheaf's terms. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from builder.sources.datasets.item import (
    Description,
    FilesetManifestFile,
    Licence,
    Person,
    Related,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import (
    first_at,
    join_url,
    text,
    texts,
    values_at,
)
from builder.sources.datasets.platforms.metadata import (
    licences,
    orcid,
    person_from_parts,
    person_from_text,
    plain_text,
    relate_all,
    texts_at,
)
from builder.sources.datasets.platforms.pages.head import doi_of, is_of, names_of
from builder.sources.datasets.platforms.pages.links import is_same, media_type

RELATIONS = {
    "citation": "References",
    "hasPart": "HasPart",
    "isBasedOn": "IsDerivedFrom",
    "isPartOf": "IsPartOf",
}
"""schema.org's relations in DataCite's terms."""
_KINDS = (
    (frozenset({"SoftwareSourceCode", "SoftwareApplication"}), "Software"),
    (frozenset({"Dataset"}), "Dataset"),
)
_GROUPS = frozenset({"Organization", "CollegeOrUniversity", "GovernmentOrganization", "Consortium"})
_BYTES = re.compile(r"(\d{1,18})\s*(?:b|bytes?)?", re.IGNORECASE)
_DOTTED = re.compile(r"[^/]*[^/.]\.[A-Za-z0-9]{1,8}")
_VERSION = re.compile(r"v?[0-9.]+", re.IGNORECASE)
_NO_LABEL = re.compile(r"[/\\\x00-\x1f\x7f]+")
_DIGESTS = ("md5", "sha1", "sha256", "sha512")


def list_files(dataset: Mapping[str, Any], page: str) -> tuple[FilesetManifestFile, ...]:
    """Return the files that a dataset's `distribution` lists; relative URLs start at `page`.

    An entry without an address, such as a member of another file, and one that is the page itself
    are left out.
    """
    downloads: dict[str, Mapping[str, Any]] = {}
    for url, entry in _addresses(dataset, page):
        downloads.setdefault(url, entry)
    return tuple(_file(entry, url) for url, entry in downloads.items())


def lists_files(dataset: Mapping[str, Any], page: str) -> bool:
    """Return whether a dataset's `distribution` lists a file."""
    return next(_addresses(dataset, page), None) is not None


def _addresses(dataset: Mapping[str, Any], page: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for download in values_at(dataset, "distribution"):
        entry = {"contentUrl": download} if isinstance(download, str) else download
        if isinstance(entry, Mapping):
            for url in texts(entry.get("contentUrl")) or texts(entry.get("url")):
                whole = join_url(page, url)
                if whole and not is_same(whole, page):
                    yield whole, entry


def _file(entry: Mapping[str, Any], url: str) -> FilesetManifestFile:
    size = text(entry.get("contentSize"))
    exact = _BYTES.fullmatch(size) if size else None
    kinds = map(media_type, texts_at(entry, "encodingFormat fileFormat"))
    digests: dict[str, Any] = {
        name: json_document.digest(entry.get(name), name) for name in _DIGESTS
    }
    return FilesetManifestFile(
        path=file_path(url, entry.get("name")),
        # A rounded size, such as 1.5 MB, verifies nothing.
        size=json_document.size(exact[1]) if exact else None,
        mimetype=next(filter(None, kinds), None),
        platform_url=url,
        **digests,
    )


def file_path(url: str, label: object = None) -> str:
    """Return the path of a file: a label that looks like one, else the end of the URL's path."""
    named = plain_text(label)
    parts = [part for part in unquote(json_document.path(url)).split("/") if part]
    if named and _DOTTED.fullmatch(named.rpartition("/")[2]):
        return named
    # Some addresses end in a verb: /files/a.csv/content
    for part in reversed(parts[-2:]):
        if _DOTTED.fullmatch(part) and not _VERSION.fullmatch(part):
            return part
    last = parts[-1] if parts else "index"
    return _NO_LABEL.sub("-", json_document.name(named or last, "a file"))


def describe(dataset: Mapping[str, Any]) -> Description:
    """Return the description of a dataset."""
    language = dataset.get("inLanguage")
    return Description(
        title=plain_text(_first(dataset.get("name"))) or plain_text(dataset.get("headline")),
        creators=tuple(creators(dataset)),
        publisher=_name(dataset.get("publisher")) or _name(dataset.get("provider")),
        published=first_at(dataset, "datePublished dateCreated", json_document.day),
        type=next((kind for types, kind in _KINDS if is_of(dataset, types)), "Other"),
        abstract=plain_text("\n".join(texts(dataset.get("description")))),
        subjects=tuple(_subjects(dataset)),
        language=_name(language, "alternateName") or _first(language),
        licences=tuple(_licences(dataset)),
        version=text(dataset.get("version")),
        doi=doi_of(dataset),
        related=relations(dataset),
    )


def creators(dataset: Mapping[str, Any]) -> Iterator[Person]:
    """Yield the creators, or else the authors, of a dataset."""
    for creator in values_at(dataset, "creator" if dataset.get("creator") else "author"):
        if isinstance(creator, Mapping):
            person = _person(creator)
        else:
            person = person_from_text(plain_text(creator))
        if person:
            yield person


def _person(node: Mapping[str, Any]) -> Person | None:
    iri = next(filter(None, map(orcid, (*names_of(node), *texts(node.get("sameAs"))))), None)
    places = values_at(node, "affiliation")
    bodies = tuple(dict.fromkeys(name for place in places if (name := _name(place))))
    person = person_from_parts(
        node.get("givenName"), node.get("familyName"), iri=iri, affiliations=bodies
    )
    if person and person.given:
        return person
    name = plain_text(node.get("name"))
    group = is_of(node, _GROUPS)
    return Person(name=name, orcid=iri, affiliations=bodies, organisation=group) if name else None


def relations(
    dataset: Mapping[str, Any], table: Mapping[str, str] = RELATIONS
) -> tuple[Related, ...]:
    """Return the works to which the properties in `table` relate a dataset."""
    return relate_all(
        ((work.get("@id") or work.get("url")) if isinstance(work, Mapping) else work, relation)
        for name, relation in table.items()
        for work in values_at(dataset, name)
    )


def _licences(dataset: Mapping[str, Any]) -> Iterator[Licence]:
    for value in values_at(dataset, "license"):
        if isinstance(value, Mapping):
            yield from licences(name=value.get("name"), url=value.get("url") or value.get("@id"))
        elif json_document.web(value):
            yield from licences(url=value)
        else:
            yield from licences(name=value)


def _subjects(dataset: Mapping[str, Any]) -> Iterator[str]:
    # One text lists several; a text of a list is one.
    apart = "" if isinstance(dataset.get("keywords"), list) else ","
    for value in values_at(dataset, "keywords"):
        if isinstance(value, Mapping):
            yield from texts(value.get("name"))
        else:
            yield from texts(value, apart=apart)


def _name(value: Any, field: str = "name") -> str | None:
    if isinstance(value, list):
        value = value[0] if value else None
    return plain_text(value.get(field) if isinstance(value, Mapping) else value)


def _first(value: Any) -> str | None:
    return next(iter(texts(value)), None)
