"""Records of InvenioRDM: their common form, and the parsers of its JSON and of Zenodo's older one.

Zenodo's API still answers in the older form, in three variants. Until 2023 a file had `key`, `size`
and a link `self` to its bytes. For a time it had `filename`, `filesize`, a digest without its
algorithm and a link `download`. Now it has `key` and `size` again, and `self` ends in `/content`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from builder.sources.datasets.item import Description, FilesetManifestFile, Licence, Person
from builder.sources.datasets.platforms.json_document import (
    day,
    digests,
    doi,
    entries,
    first_at,
    inner,
    join_url,
    name,
    objects_of,
    size,
    text,
    texts,
    web,
)
from builder.sources.datasets.platforms.metadata import (
    contributor_type,
    general_type,
    licences,
    orcid,
    person_from_parts,
    person_from_text,
    plain_text,
    relate_by_scheme,
    spdx,
    texts_at,
)

OPEN, EMBARGOED, RESTRICTED = "open", "embargoed", "restricted"
_ACCESS = {
    "open": OPEN,
    "embargoed": EMBARGOED,
    "restricted": RESTRICTED,
    "closed": RESTRICTED,
}
TYPES = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Deposit:
    """A parsed record.

    `parent` is the id that all versions share, if there is one. `index` is the version's number
    from 1, if given. `access` is open, embargoed (`until` a day) or restricted. `count` and `total`
    are the number and bytes of its files, if the platform gives them apart from the list. `files`
    is None if the record has no list. `keeps` is false for records that must not have files.
    """

    id: str
    parent: str | None = None
    index: int | None = None
    draft: bool = False
    access: str = OPEN
    until: str | None = None
    keeps: bool = True
    files: tuple[FilesetManifestFile, ...] | None = None
    count: int | None = None
    total: int | None = None
    page: str | None = None
    bundle: str | None = None
    description: Description = field(default_factory=Description)


def parse_file(file: Mapping[str, Any], record: str) -> FilesetManifestFile:
    """Return a file of the record at the URL `record` of its API.

    Its name is `key` or `filename`. The URL of its bytes is the link `content`, `download` or,
    unless that leads to metadata, `self`. Raises FilesetError (platform-bad-response).
    """
    path = name(file.get("key") or file.get("filename"), "a file")
    links = inner(file, "links")
    own = text(links.get("self")) or ""
    bytes_of = own if own.endswith("/content") or "/api/files/" in own else None
    link = text(links.get("content")) or text(links.get("download")) or bytes_of
    checksum = text(file.get("checksum")) or ""
    algorithm, colon, value = checksum.rpartition(":")
    verified = digests(algorithm if colon else "md5", value)
    return FilesetManifestFile(
        path=path,
        size=size(file.get("size", file.get("filesize"))),
        mimetype=text(file.get("mimetype")),
        extra={"checksum": checksum} if value and not verified else {},
        status="withheld" if inner(file, "access").get("hidden") is True else None,
        platform_url=join_url(record, link) or f"{record}/files/{quote(path, safe='/')}/content",
        **verified,
    )


def read(document: Mapping[str, Any], record: str) -> Deposit:
    """Parse a record, of either form, which is at the URL `record` of its API."""
    is_native = isinstance(document.get("files"), Mapping) or "parent" in document
    return _read_native(document, record) if is_native else _read_legacy(document, record)


def _read_native(document: Mapping[str, Any], record: str) -> Deposit:
    files = inner(document, "files")
    links = inner(document, "links")
    access, until = _access(document)
    return Deposit(
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
    listed = files.get("entries")
    if isinstance(listed, Mapping):
        listed = [
            {"key": key} | dict(file) for key, file in listed.items() if isinstance(file, Mapping)
        ]
    if not isinstance(listed, list):
        return None
    return tuple(parse_file(file, record) for file in entries(listed))


def _access(document: Mapping[str, Any]) -> tuple[str, str | None]:
    access = inner(document, "access")
    embargo = inner(access, "embargo")
    until = day(embargo.get("until"))
    if "restricted" not in (access.get("record"), access.get("files")):
        return OPEN, None
    if embargo.get("active") is True and until:
        return EMBARGOED, until
    return RESTRICTED, None


def _describe(document: Mapping[str, Any], metadata: Mapping[str, Any]) -> Description:
    kind = text(inner(metadata, "resource_type").get("id"))
    return Description(
        title=plain_text(metadata.get("title")),
        creators=tuple(_people(metadata.get("creators"))),
        contributors=tuple(_people(metadata.get("contributors"), contributors=True)),
        publisher=plain_text(metadata.get("publisher")),
        published=day(metadata.get("publication_date")),
        type=general_type(kind and kind.partition("-")[0], TYPES),
        abstract=plain_text(metadata.get("description")),
        subjects=texts(
            [row.get("subject") or row.get("title") for row in entries(metadata.get("subjects"))]
        ),
        language=first_at(metadata, "languages.id", text),
        licences=tuple(_licences(metadata.get("rights"))),
        version=text(metadata.get("version")),
        doi=doi(inner(document, "pids", "doi").get("identifier")),
        url=web(inner(document, "links").get("self_html")),
        related=tuple(
            work
            for row in entries(metadata.get("related_identifiers"))
            for work in relate_by_scheme(
                row.get("identifier"), row.get("scheme"), inner(row, "relation_type").get("id")
            )
        ),
    )


def _people(credits: object, contributors: bool = False) -> Iterator[Person]:
    for credit in entries(credits):
        who = inner(credit, "person_or_org")
        identifiers = entries(who.get("identifiers"))
        iri = next((i.get("identifier") for i in identifiers if i.get("scheme") == "orcid"), None)
        if who.get("type") == "organizational":
            name = text(who.get("name"))
            person = Person(name=name, organisation=True) if name else None
        else:
            person = person_from_parts(who.get("given_name"), who.get("family_name"), iri=iri)
            person = person or person_from_text(who.get("name"))
        if person is not None:
            yield replace(
                person,
                affiliations=texts_at(credit, "affiliations.name"),
                role=contributor_type(inner(credit, "role").get("id")) if contributors else None,
            )


def _licences(rights: object) -> Iterator[Licence]:
    for right in entries(rights):
        id = text(right.get("id"))
        titles = inner(right, "title")
        title = plain_text(titles.get("en") or next(iter(titles.values()), None))
        url = web(right.get("link")) or web(inner(right, "props").get("url"))
        if id or title or url:
            yield Licence(title or id, spdx(url) or spdx(id), url)


def _read_legacy(document: Mapping[str, Any], record: str) -> Deposit:
    metadata = inner(document, "metadata")
    links = inner(document, "links")
    versions = entries(inner(metadata, "relations").get("version"))
    index = size(versions[0].get("index")) if versions else None  # this form counts from 0
    files = document.get("files")
    access = _ACCESS.get(text(metadata.get("access_right")) or "open", RESTRICTED)
    return Deposit(
        id=text(document.get("id")) or text(document.get("recid")) or "",
        parent=text(document.get("conceptrecid")),
        index=None if index is None else index + 1,
        draft=document.get("submitted") is False,
        access=access,
        until=day(metadata.get("embargo_date")) if access == EMBARGOED else None,
        files=tuple(
            parse_file(file, record)
            for file in objects_of([] if files is None else files, "the files")
        ),
        page=web(links.get("self_html")) or web(links.get("html")),
        bundle=web(links.get("archive")),
        description=_describe_legacy(document, metadata),
    )


def _describe_legacy(document: Mapping[str, Any], metadata: Mapping[str, Any]) -> Description:
    links = inner(document, "links")
    related = [
        work
        for row in entries(metadata.get("related_identifiers"))
        for work in relate_by_scheme(row.get("identifier"), row.get("scheme"), row.get("relation"))
    ]
    related += relate_by_scheme(doi(document.get("conceptdoi")), "doi", "isVersionOf")
    return Description(
        title=plain_text(metadata.get("title")),
        creators=tuple(_legacy_people(metadata.get("creators"))),
        contributors=tuple(_legacy_people(metadata.get("contributors"), contributors=True)),
        publisher=plain_text(inner(metadata, "imprint").get("publisher")),
        published=day(metadata.get("publication_date")),
        type=general_type(inner(metadata, "resource_type").get("type"), TYPES),
        abstract=plain_text(metadata.get("description")),
        subjects=texts(metadata.get("keywords")),
        language=text(metadata.get("language")),
        licences=licences(
            name=inner(metadata, "license").get("id"), url=inner(metadata, "license").get("url")
        ),
        version=text(metadata.get("version")),
        doi=doi(document.get("doi")) or doi(metadata.get("doi")),
        url=web(links.get("self_html")) or web(links.get("html")),
        related=tuple(dict.fromkeys(related)),
    )


def _legacy_people(credits: object, contributors: bool = False) -> Iterator[Person]:
    for credit in entries(credits):
        person = person_from_text(credit.get("name"))
        if person is not None:
            yield replace(
                person,
                orcid=orcid(credit.get("orcid")),
                affiliations=texts(credit.get("affiliation")),
                role=contributor_type(credit.get("type")) if contributors else None,
            )
