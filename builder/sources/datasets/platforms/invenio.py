"""InvenioRDM: many installations with one API, among them Zenodo.

Zenodo's records have had four JSON forms. All are requested here and described as datasets. Its API
still answers in the older form, in three variants. Until 2023 a file had `key`, `size` and a link
`self` to its bytes. For a time it had `filename`, `filesize`, a digest without its algorithm and a
link `download`. Now it has `key` and `size` again, and `self` ends in `/content`.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from builder.sources.datasets.download.api import parse_document
from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    Licence,
    Person,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import (
    day,
    digests,
    doi,
    entries,
    first_at,
    host,
    inner,
    join_url,
    mapping,
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
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

OPEN, EMBARGOED, RESTRICTED = "open", "embargoed", "restricted"
TYPES = {
    **{n: n.title() for n in ("dataset", "event", "image", "model", "software", "workflow")},
    **dict.fromkeys(("poster", "presentation", "publication"), "Text"),
    "lesson": "InteractiveResource",
    "physicalobject": "PhysicalObject",
    "video": "Audiovisual",
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


def _read_native(document: Mapping[str, Any], record: str) -> Deposit:
    files = inner(document, "files")
    links = inner(document, "links")
    rights = inner(document, "access")
    embargo = inner(rights, "embargo")
    access, until = RESTRICTED, day(embargo.get("until"))
    if "restricted" not in (rights.get("record"), rights.get("files")):
        access = OPEN
    elif embargo.get("active") is True and until:
        access = EMBARGOED
    return Deposit(
        id=text(document.get("id")) or "",
        parent=text(inner(document, "parent").get("id")),
        index=size(inner(document, "versions").get("index")),
        draft=document.get("is_draft") is True or document.get("is_published") is False,
        access=access,
        until=until if access == EMBARGOED else None,
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
    access = text(metadata.get("access_right")) or OPEN
    access = access if access in (OPEN, EMBARGOED) else RESTRICTED
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
        related=tuple(dict.fromkeys(related)),
    )


def _legacy_people(credits: object, contributors: bool = False) -> Iterator[Person]:
    for credit in entries(credits):
        if (person := person_from_text(credit.get("name"))) is not None:
            yield replace(
                person,
                orcid=orcid(credit.get("orcid")),
                affiliations=texts(credit.get("affiliation")),
                role=contributor_type(credit.get("type")) if contributors else None,
            )


_RECORD = re.compile(
    r"/(?:api/)?records?/(?P<id>[A-Za-z0-9-]+)(?P<file>/(?:preview|files/.+))?"
    r"(?P<latest>(?:/versions)?/latest)?(?:/.*)?"
)
_DRAFT = re.compile(r"/(?:deposit|uploads|api/deposit/depositions)/[A-Za-z0-9-]+(?:/.*)?")
_COMMUNITY = re.compile(r"/communities/.+")
_ZENODO_DOI = re.compile(r"10\.5281/zenodo\.(?P<id>[0-9]+)", re.IGNORECASE)
_IN_URL = re.compile(
    r"/(?:doi|badge/doi)/10\.[0-9]+/zenodo\.(?P<id>[0-9]+)(?:\.svg)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class InvenioRequest:
    """The requested record: its id at the platform `name`, at `base`.

    `base` is the start of the installation's URLs. `publisher` is used if the record names none.
    `latest` requests the newest version of the dataset that the record belongs to.
    """

    name: str
    base: str
    id: str
    publisher: str | None = None
    latest: bool = False

    @property
    def record(self) -> str:
        """The URL of the record's API."""
        return f"{self.base}/api/records/{quote(self.id, safe='')}"


def read_item(request: InvenioRequest, api: Api) -> FilesetPlatformItem:
    """Return a record as a dataset. Raises FilesetError.

    The platform's id is the one that all versions share; the version is the record's own id.
    """
    if request.latest:
        url = f"{request.record}/versions/latest"
        newest = text(mapping(api.document(url), "the newest version").get("id"))
        if newest is None:
            raise FilesetError("platform-bad-response", f"{url} has no record")
        request = replace(request, id=newest, latest=False)
    try:
        document = mapping(api.document(request.record), "the record")
    except FilesetError as error:
        if error.status != "platform-gone":
            raise
        return _read_tombstone(request, api)
    if "metadata" not in document:
        raise FilesetError("platform-bad-response", f"{request.record} has no record")
    is_native = isinstance(document.get("files"), Mapping) or "parent" in document
    deposit = (_read_native if is_native else _read_legacy)(document, request.record)
    _check(request, deposit)
    is_ours = api.shows_token(urlsplit(request.base).netloc)
    if is_ours and deposit.files and deposit.access == RESTRICTED:
        deposit = replace(deposit, access=OPEN)  # it lists them for our account
    return _item(request, deposit, _files(request, deposit, api))


def _check(request: InvenioRequest, deposit: Deposit) -> None:
    """Raise FilesetError (platform-scope) unless it is the requested record, and published."""
    if deposit.draft:
        raise ScopeError(f"{request.id} is a draft", "draft")
    if deposit.id == request.id:
        return
    if request.id == deposit.parent:
        detail = (
            f"{request.id} stands for all versions of a dataset, of which the newest is "
            f"{deposit.id}; request {request.base}/records/{request.id}/latest to follow the newest"
        )
        raise ScopeError(detail, "work-level")
    raise ScopeError(f"requested {request.id}, received {deposit.id}", "wrong-version")


def _files(request: InvenioRequest, deposit: Deposit, api: Api) -> tuple[FilesetManifestFile, ...]:
    """Return all files; if the record's list is incomplete or missing, request the separate list.

    Raises FilesetError: incomplete-manifest if both lists are incomplete.
    """
    if deposit.access != OPEN or not deposit.keeps:
        return deposit.files or ()
    files = deposit.files
    if files is None or (deposit.count is not None and len(files) < deposit.count):
        try:
            document = api.document(f"{request.record}/files")
        except FilesetError as error:
            if error.status != "platform-404":  # the record itself was found
                raise
            raise FilesetError("platform-error", "the record has no list of its files") from error
        files = list_files(mapping(document, "the list of files"), request.record)
        if files is None:
            raise FilesetError("platform-bad-response", "the list of files has no entries")
    sizes = [file.size for file in files if file.size is not None]
    short = deposit.count is not None and len(files) < deposit.count
    if short or (deposit.total and len(sizes) == len(files) and sum(sizes) < deposit.total):
        detail = f"{len(files)} of {deposit.count} files with {deposit.total} bytes are listed"
        raise FilesetError("incomplete-manifest", detail)
    return files


def _item(
    request: InvenioRequest, deposit: Deposit, files: tuple[FilesetManifestFile, ...]
) -> FilesetPlatformItem:
    status = "success" if deposit.access == OPEN else f"platform-{deposit.access}"
    if status != "success":
        files = tuple(replace(file, status="withheld") for file in files)
    elif not deposit.keeps:
        status = "metadata-only"
    elif not files:
        status = "empty-manifest"
    elif all(file.status == "withheld" for file in files):
        status = "platform-restricted"
    publisher = deposit.description.publisher or request.publisher
    return FilesetPlatformItem(
        platform_name=request.name,
        platform_status=status,
        platform_domain=host(request.base),
        platform_id=deposit.parent or deposit.id,
        version=deposit.id,
        index=deposit.index,
        manifest=files,
        until=deposit.until,
        web_base_url=deposit.page or f"{request.base}/records/{deposit.id}",
        web_bundle_url=deposit.bundle if status == "success" else None,
        description=replace(deposit.description, publisher=publisher),
    )


def _read_tombstone(request: InvenioRequest, api: Api) -> FilesetPlatformItem:
    """Return a deleted record by its tombstone, which lacks the id that all versions share."""
    answer, document = api.answer(request.record, statuses=frozenset({410})), None
    with suppress(FilesetError):
        document = parse_document(answer)
    tombstone = inner(document, "tombstone")
    reason = text(tombstone.get("note")) or text(inner(tombstone, "removal_reason").get("id"))
    return FilesetPlatformItem(
        platform_name=request.name,
        platform_status="platform-gone",
        platform_domain=host(request.base),
        version=request.id,
        manifest=(),
        web_base_url=f"{request.base}/records/{request.id}",
        detail=reason or text(inner(document).get("message")) or "the record was deleted",
    )


class InvenioRDM(json_document.HostedPlatform):
    """The platform; a probe of the API finds its other hosts."""

    hosts = json_document.INVENIORDM
    facts = PlatformFacts(
        "inveniordm",
        "known hosts, else the host's API",
        "restricted and embargoed records",
    )
    publisher: ClassVar[str | None] = None
    """Publisher of records that name none."""

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the record, which is one version; `/latest` behind it requests the newest."""
        path = urlsplit(resource.url).path
        if _DRAFT.fullmatch(path):
            raise ScopeError(f"{resource.url} is a draft", "draft")
        if _COMMUNITY.fullmatch(path):
            raise ScopeError("it is a community", "collection")
        record = _RECORD.fullmatch(path)
        if record is None:
            raise FilesetError("platform-404", f"{resource.url} does not name a record")
        if record["file"]:
            raise ScopeError(f"{path} is one file", "file-level")
        base, latest = json_document.base_url(resource.url), bool(record["latest"])
        request = InvenioRequest(self.facts.name, base, record["id"], self.publisher, latest)
        return read_item(request, api)


class Zenodo(InvenioRDM):
    """Zenodo, whose records are named by their DOIs too."""

    hosts = json_document.ZENODO
    dois = _ZENODO_DOI
    facts = PlatformFacts(
        "zenodo",
        "host, DOI",
        "a DOI of all versions is `work-level`",
    )
    publisher = "Zenodo"

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the record of the URL, or of the DOI in it or beside it."""
        domain, path = host(resource.url), urlsplit(resource.url).path
        named = _IN_URL.fullmatch(path)
        if domain not in self.hosts:
            domain, named = "zenodo.org", _ZENODO_DOI.fullmatch(resource.doi or "")
        path = f"/records/{named['id']}" if named else path
        url = f"https://{domain.removeprefix('www.')}{path}"
        return super().process_request(replace(resource, url=url), api)
