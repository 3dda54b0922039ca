"""Parser for Zenodo's older form of a record, still used by its API, in three variants.

Until 2023 a file had `key`, `size` and a link `self` to its bytes. For a time it had `filename`,
`filesize`, a digest without its algorithm and a link `download`. Now it has `key` and `size` again,
and `self` ends in `/content`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from builder.filesets.item import Description, Person, Related
from builder.filesets.platforms import invenio_record
from builder.filesets.platforms.json_document import (
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
from builder.filesets.platforms.metadata import (
    contributor_type,
    general_type,
    licences,
    orcid,
    person_from_text,
    plain_text,
    relate_by_scheme,
)

_ACCESS = {
    "open": invenio_record.OPEN,
    "embargoed": invenio_record.EMBARGOED,
    "restricted": invenio_record.RESTRICTED,
    "closed": invenio_record.RESTRICTED,
}


def read(document: Mapping[str, Any], record: str) -> invenio_record.Deposit:
    """Parse a record, which is at the URL `record` of its API."""
    metadata = inner(document, "metadata")
    links = inner(document, "links")
    given = document.get("files")
    files = objects_of(given, "the files") if given is not None else ()
    access = _ACCESS.get(text(metadata.get("access_right")) or "open", invenio_record.RESTRICTED)
    return invenio_record.Deposit(
        id=text(document.get("id")) or text(document.get("recid")) or "",
        parent=text(document.get("conceptrecid")),
        index=_index(metadata),
        draft=document.get("submitted") is False,
        access=access,
        until=day(metadata.get("embargo_date")) if access == invenio_record.EMBARGOED else None,
        files=tuple(invenio_record.parse_file(file, record) for file in files),
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
        title=plain_text(metadata.get("title")),
        creators=tuple(_people(metadata.get("creators"))),
        contributors=tuple(_people(metadata.get("contributors"), contributors=True)),
        publisher=plain_text(inner(metadata, "imprint").get("publisher")),
        published=day(metadata.get("publication_date")),
        type=general_type(inner(metadata, "resource_type").get("type"), invenio_record.TYPES),
        abstract=plain_text(metadata.get("description")),
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
        person = person_from_text(one.get("name"))
        if person is not None:
            yield replace(
                person,
                orcid=orcid(one.get("orcid")),
                affiliations=texts(one.get("affiliation")),
                role=contributor_type(one.get("type")) if contributors else None,
            )


def _relations(document: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterator[Related]:
    for one in entries(metadata.get("related_identifiers")):
        yield from relate_by_scheme(one.get("identifier"), one.get("scheme"), one.get("relation"))
    yield from relate_by_scheme(doi(document.get("conceptdoi")), "doi", "isVersionOf")
