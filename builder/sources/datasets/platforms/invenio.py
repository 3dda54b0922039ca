"""InvenioRDM: many installations with one API, among them Zenodo.

Zenodo's records have had four JSON forms. All are requested here and described as datasets.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlsplit

from builder.sources.datasets.download.api import parse_document
from builder.sources.datasets.item import (
    DatasetResource,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.sources.datasets.platforms import invenio_record, json_document
from builder.sources.datasets.platforms.hosted import HostedPlatform
from builder.sources.datasets.platforms.invenio_record import Deposit
from builder.sources.datasets.platforms.json_document import host, inner, mapping, text
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

_CLOSED = {
    invenio_record.EMBARGOED: "platform-embargoed",
    invenio_record.RESTRICTED: "platform-restricted",
}
_GONE = frozenset({410})
_INVENIO_RECORD = re.compile(
    r"/(?:api/)?records?/(?P<id>[A-Za-z0-9-]+)(?P<file>/files/.+)?"
    r"(?P<latest>(?:/versions)?/latest)?(?:/.*)?"
)
_INVENIO_DRAFT = re.compile(r"/uploads/[A-Za-z0-9-]+")
_ZENODO_RECORD = re.compile(
    r"/(?:api/)?records?/(?P<id>[0-9]+)(?P<file>/(?:preview|files/.+))?"
    r"(?P<latest>(?:/versions)?/latest)?(?:/.*)?"
)
_ZENODO_DOI = re.compile(r"10\.5281/zenodo\.(?P<id>[0-9]+)", re.IGNORECASE)
_IN_URL = re.compile(
    r"/(?:doi|badge/doi)/10\.[0-9]+/zenodo\.(?P<id>[0-9]+)(?:\.svg)?", re.IGNORECASE
)
_ZENODO_DRAFT = re.compile(r"/(?:deposit|uploads|api/deposit/depositions)/[0-9]+(?:/.*)?")
_COLLECTION = re.compile(r"/communities/.+")


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
    deposit = invenio_record.read(document, request.record)
    _check(request, deposit)
    is_ours = api.shows_token(urlsplit(request.base).netloc)
    if is_ours and deposit.files and deposit.access == invenio_record.RESTRICTED:
        deposit = replace(deposit, access=invenio_record.OPEN)  # it lists them for our account
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
    if deposit.access != invenio_record.OPEN or not deposit.keeps:
        return deposit.files or ()
    files = deposit.files
    if files is None or (deposit.count is not None and len(files) < deposit.count):
        files = invenio_record.list_files(_listing(request, api), request.record)
        if files is None:
            raise FilesetError("platform-bad-response", "the list of files has no entries")
    sizes = [file.size for file in files if file.size is not None]
    short = deposit.count is not None and len(files) < deposit.count
    if short or (deposit.total and len(sizes) == len(files) and sum(sizes) < deposit.total):
        detail = f"{len(files)} of {deposit.count} files with {deposit.total} bytes are listed"
        raise FilesetError("incomplete-manifest", detail)
    return files


def _listing(request: InvenioRequest, api: Api) -> Mapping[str, Any]:
    try:
        return mapping(api.document(f"{request.record}/files"), "the list of files")
    except FilesetError as error:
        if error.status != "platform-404":  # the record itself was found
            raise
        raise FilesetError("platform-error", "the record has no list of its files") from error


def _item(
    request: InvenioRequest, deposit: Deposit, files: tuple[FilesetManifestFile, ...]
) -> FilesetPlatformItem:
    status = _CLOSED.get(deposit.access, "success")
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
    answer, document = api.answer(request.record, statuses=_GONE), None
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


class InvenioRDM(HostedPlatform):
    """The platform; a probe of the API finds its other hosts."""

    hosts = json_document.INVENIORDM
    facts = PlatformFacts(
        "inveniordm",
        "known hosts, else the host's API",
        "restricted and embargoed records",
    )

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the record, which is one version; `/latest` behind it requests the newest."""
        path = urlsplit(resource.url).path
        if _INVENIO_DRAFT.fullmatch(path):
            raise ScopeError(f"{resource.url} is a draft", "draft")
        record = _INVENIO_RECORD.fullmatch(path)
        if record is None:
            raise FilesetError("platform-404", f"{resource.url} does not name a record")
        if record["file"]:
            raise ScopeError(f"{path} is one file", "file-level")
        base, latest = json_document.base_url(resource.url), bool(record["latest"])
        return read_item(InvenioRequest(self.facts.name, base, record["id"], latest=latest), api)


class Zenodo(HostedPlatform):
    """The platform."""

    hosts = json_document.ZENODO
    dois = _ZENODO_DOI
    facts = PlatformFacts(
        "zenodo",
        "host, DOI",
        "a DOI of all versions is `work-level`",
    )

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the record, which is one version; `/latest` behind it requests the newest."""
        path = urlsplit(resource.url).path if host(resource.url) in json_document.ZENODO else ""
        record = _ZENODO_RECORD.fullmatch(path) or _IN_URL.fullmatch(path)
        if _ZENODO_DRAFT.fullmatch(path):
            raise ScopeError(f"{resource.url} is a draft", "draft")
        if _COLLECTION.fullmatch(path):
            raise ScopeError("it is a community", "collection")
        if record is not None and record.groupdict().get("file"):
            raise ScopeError(f"{path} is one file", "file-level")
        named = record or _ZENODO_DOI.fullmatch(resource.doi or "")
        if named is None:
            raise FilesetError("platform-404", f"{resource.url} does not name a record")
        domain = host(resource.url) if path else "zenodo.org"
        base = f"https://{domain.removeprefix('www.')}"
        latest = bool(named.groupdict().get("latest"))
        return read_item(InvenioRequest(self.facts.name, base, named["id"], "Zenodo", latest), api)
