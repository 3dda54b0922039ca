"""Parser for InvenioRDM's own form of a record."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from builder.filesets.item import Description, FilesetManifestFile, Licence, Person, Related
from builder.filesets.metadata.json_document import day, doi, entries, inner, size, text, texts, web
from builder.filesets.metadata.licence import spdx
from builder.filesets.metadata.person import from_parts, from_text
from builder.filesets.metadata.prose import plain
from builder.filesets.metadata.term import general, relate, role
from builder.filesets.platforms import invenio_deposit

_TYPES = {
    "dataset": "Dataset",
    "event": "Event",
    "image": "Image",
    "lesson": "InteractiveResource",
    "model": "Model",
    "physicalobject": "PhysicalObject",
    "poster": "Text",
    "presentation": "Text",
    "publication": "Text",
    "software": "Software",
    "video": "Audiovisual",
    "workflow": "Workflow",
}
"""DataCite's term by the part before the hyphen of InvenioRDM's resource types."""


def is_native(document: Mapping[str, Any]) -> bool:
    """Return whether a record has this form."""
    return isinstance(document.get("files"), Mapping) or "parent" in document


def read(document: Mapping[str, Any], record: str) -> invenio_deposit.Deposit:
    """Parse a record, which is at the URL `record` of its API."""
    files = inner(document, "files")
    links = inner(document, "links")
    access, until = _access(document)
    return invenio_deposit.Deposit(
        id=text(document.get("id")) or "",
        parent=text(inner(document, "parent").get("id")),
        index=size(inner(document, "versions").get("index")),
        draft=document.get("is_draft") is True or document.get("is_published") is False,
        access=access,
        until=until,
        keeps=files.get("enabled") is not False,
        files=list_files(files, record),
        count=size(files.get("count")),
        total=size(files.get("total_bytes")),
        page=web(links.get("self_html")),
        bundle=web(links.get("archive")),
        description=_describe(document, inner(document, "metadata")),
    )


def list_files(files: Mapping[str, Any], record: str) -> tuple[FilesetManifestFile, ...] | None:
    """Return the files of a list, whose entries are an array or an object by name."""
    given = files.get("entries")
    if isinstance(given, Mapping):
        given = [
            {"key": key} | dict(entry) for key, entry in given.items() if isinstance(entry, Mapping)
        ]
    if not isinstance(given, list):
        return None
    return tuple(invenio_deposit.file(entry, record) for entry in entries(given))


def _access(document: Mapping[str, Any]) -> tuple[str, str | None]:
    access = inner(document, "access")
    embargo = inner(access, "embargo")
    until = day(embargo.get("until"))
    if "restricted" not in (access.get("record"), access.get("files")):
        return invenio_deposit.OPEN, None
    if embargo.get("active") is True and until:
        return invenio_deposit.EMBARGOED, until
    return invenio_deposit.RESTRICTED, None


def _describe(document: Mapping[str, Any], metadata: Mapping[str, Any]) -> Description:
    kind = text(inner(metadata, "resource_type").get("id"))
    return Description(
        title=plain(metadata.get("title")),
        creators=tuple(_people(metadata.get("creators"))),
        contributors=tuple(_people(metadata.get("contributors"), contributors=True)),
        publisher=plain(metadata.get("publisher")),
        published=day(metadata.get("publication_date")),
        type=general(kind and kind.partition("-")[0], _TYPES),
        abstract=plain(metadata.get("description")),
        subjects=texts(
            [one.get("subject") or one.get("title") for one in entries(metadata.get("subjects"))]
        ),
        language=next((text(one.get("id")) for one in entries(metadata.get("languages"))), None),
        licences=tuple(_licences(metadata.get("rights"))),
        version=text(metadata.get("version")),
        doi=doi(inner(document, "pids", "doi").get("identifier")),
        url=web(inner(document, "links").get("self_html")),
        related=tuple(_relations(metadata.get("related_identifiers"))),
    )


def _people(given: object, contributors: bool = False) -> Iterator[Person]:
    for one in entries(given):
        who = inner(one, "person_or_org")
        identifiers = entries(who.get("identifiers"))
        orcids = [i.get("identifier") for i in identifiers if i.get("scheme") == "orcid"]
        affiliations = texts([a.get("name") for a in entries(one.get("affiliations"))])
        organisation = who.get("type") == "organizational"
        found = None
        if not organisation:
            found = from_parts(
                who.get("given_name"),
                who.get("family_name"),
                iri=orcids[0] if orcids else None,
                affiliations=affiliations,
            )
        found = found or _whole(who.get("name"), organisation, affiliations)
        if found is not None:
            kind = role(inner(one, "role").get("id")) if contributors else None
            yield replace(found, role=kind)


def _whole(name: object, organisation: bool, affiliations: tuple[str, ...]) -> Person | None:
    """Return a person whose name is a single text."""
    person = from_text(name)
    if person is None:
        return None
    if organisation:
        return Person(name=text(name) or "", affiliations=affiliations, organisation=True)
    return replace(person, affiliations=affiliations)


def _licences(given: object) -> Iterator[Licence]:
    for one in entries(given):
        id = text(one.get("id"))
        titles = inner(one, "title")
        title = plain(titles.get("en") or next(iter(titles.values()), None))
        url = web(one.get("link")) or web(inner(one, "props").get("url"))
        if id or title or url:
            yield Licence(title or id, spdx(url) or spdx(id), url)


def _relations(given: object) -> Iterator[Related]:
    for one in entries(given):
        relation = inner(one, "relation_type").get("id")
        yield from relate(one.get("identifier"), one.get("scheme"), relation)
