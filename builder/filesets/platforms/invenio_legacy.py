"""Parser for Zenodo's older form of a record, still used by its API, in three variants.

Until 2023 a file had `key`, `size` and a link `self` to its bytes. For a time it had `filename`,
`filesize`, a digest without its algorithm and a link `download`. Now it has `key` and `size` again,
and `self` ends in `/content`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from builder.filesets.item import Description, Person, Related
from builder.filesets.metadata.json_document import (
    day,
    doi,
    entries,
    inner,
    objects_of,
    size,
    text,
    texts,
    web,
)
from builder.filesets.metadata.licence import licences
from builder.filesets.metadata.person import from_text, orcid
from builder.filesets.metadata.prose import plain
from builder.filesets.metadata.term import general, relate, role
from builder.filesets.platforms import invenio_deposit

_ACCESS = {
    "open": invenio_deposit.OPEN,
    "embargoed": invenio_deposit.EMBARGOED,
    "restricted": invenio_deposit.RESTRICTED,
    "closed": invenio_deposit.RESTRICTED,
}
_TYPES = {
    "dataset": "Dataset",
    "image": "Image",
    "lesson": "InteractiveResource",
    "physicalobject": "PhysicalObject",
    "poster": "Text",
    "presentation": "Text",
    "publication": "Text",
    "software": "Software",
    "video": "Audiovisual",
    "workflow": "Workflow",
}


def read(document: Mapping[str, Any], record: str) -> invenio_deposit.Deposit:
    """Parse a record, which is at the URL `record` of its API."""
    metadata = inner(document, "metadata")
    links = inner(document, "links")
    given = document.get("files")
    files = objects_of(given, "the files") if given is not None else ()
    access = _ACCESS.get(text(metadata.get("access_right")) or "open", invenio_deposit.RESTRICTED)
    return invenio_deposit.Deposit(
        id=text(document.get("id")) or text(document.get("recid")) or "",
        parent=text(document.get("conceptrecid")),
        index=_index(metadata),
        draft=document.get("submitted") is False,
        access=access,
        until=day(metadata.get("embargo_date")) if access == invenio_deposit.EMBARGOED else None,
        files=tuple(invenio_deposit.file(file, record) for file in files),
        page=web(links.get("self_html")) or web(links.get("html")),
        bundle=web(links.get("archive")),
        description=_describe(document, metadata),
    )


def _index(metadata: Mapping[str, Any]) -> int | None:
    """Return the version's number from 1; this form counts from 0."""
    versions = entries(inner(metadata, "relations").get("version"))
    told = size(versions[0].get("index")) if versions else None
    return None if told is None else told + 1


def _describe(document: Mapping[str, Any], metadata: Mapping[str, Any]) -> Description:
    links = inner(document, "links")
    return Description(
        title=plain(metadata.get("title")),
        creators=tuple(_people(metadata.get("creators"))),
        contributors=tuple(_people(metadata.get("contributors"), contributors=True)),
        publisher=plain(inner(metadata, "imprint").get("publisher")),
        published=day(metadata.get("publication_date")),
        type=general(inner(metadata, "resource_type").get("type"), _TYPES),
        abstract=plain(metadata.get("description")),
        subjects=texts(metadata.get("keywords")),
        language=text(metadata.get("language")),
        licences=licences(
            name=inner(metadata, "license").get("id"), url=inner(metadata, "license").get("url")
        ),
        version=text(metadata.get("version")),
        doi=doi(document.get("doi")) or doi(metadata.get("doi")),
        url=web(links.get("self_html")) or web(links.get("html")),
        related=tuple(dict.fromkeys(_relations(document, metadata))),
    )


def _people(given: object, contributors: bool = False) -> Iterator[Person]:
    for one in entries(given):
        person = from_text(one.get("name"))
        if person is not None:
            yield replace(
                person,
                orcid=orcid(one.get("orcid")),
                affiliations=texts(one.get("affiliation")),
                role=role(one.get("type")) if contributors else None,
            )


def _relations(document: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterator[Related]:
    for one in entries(metadata.get("related_identifiers")):
        yield from relate(one.get("identifier"), one.get("scheme"), one.get("relation"))
    yield from relate(doi(document.get("conceptdoi")), "doi", "isVersionOf")
