"""Dataverse: many installations with one API, and the URLs of their datasets."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import parse_qsl, quote, urlsplit

from builder.filesets.item import (
    DatasetResource,
    FilesetManifestFile,
    FilesetPlatformItem,
    IngestRequest,
)
from builder.filesets.platforms import json_document
from builder.filesets.platforms.dataverse_metadata import describe, manifest
from builder.filesets.platforms.facts import PlatformFacts
from builder.filesets.platforms.json_document import host, inner, mapping, text
from builder.filesets.platforms.landing import handle_of
from builder.filesets.protocols import Api, FilesetError
from builder.runtime import Clock

FACTS = PlatformFacts(
    "dataverse",
    "known hosts, else the host's API",
    "the original of an ingested table; restricted, embargoed, deaccessioned",
)
_SETS = (
    r"dataset\.xhtml|citation|datasets?|api/(?:access/dataset|datasets)/:persistentId"
    r"(?:/versions/(?P<version>[^/]+))?"
)
_FILES = r"file\.xhtml|files?|api/(?:files|access/datafile)/(?::persistentId|(?P<number>[0-9]+))"
_PAGE = re.compile(rf"(?P<base>.*?)(?:/spa)?/(?:{_SETS}|(?P<file>{_FILES}))(?:/metadata)?/?")
_PERSISTENT = re.compile(r"(?:doi:10\.[0-9.]+/|hdl:[0-9A-Za-z.]+/|perma:|ark:)\S+", re.IGNORECASE)
_LATEST = frozenset({":latest", ":latest-published"})
_DRAFTS = frozenset({"draft", ":draft"})
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Persistent:
    """The target of a URL. `base` is the start of the installation's URLs.

    `id` is a persistent id such as doi:10.5072/FK2/ABC. `number` is an id in the database, used if
    there is no persistent id. `version` is the requested one, None for the newest. `file`: the
    target is a file of a dataset. `named`: the URL itself has an id, in Dataverse's form.
    """

    base: str
    id: str | None
    number: str | None
    version: str | None
    file: bool
    named: bool

    @property
    def is_draft(self) -> bool:
        """Return whether an unpublished version is requested."""
        return (self.version or "").lower() in _DRAFTS

    @property
    def api(self) -> str:
        """The start of URLs of the API."""
        return f"{self.base}/api"

    def url(self, kind: str, rest: str = "", **query: str) -> str:
        """Return the URL in the API of a dataset or file, by persistent id or number."""
        given = {"persistentId": self.id} | query if self.id is not None else query
        called = ":persistentId" if self.id is not None else self.number
        asked = "&".join(f"{name}={quote(value, safe=':/')}" for name, value in given.items())
        return f"{self.api}/{kind}/{called}/{rest}" + (f"?{asked}" if asked else "")


def persistent(resource: DatasetResource) -> Persistent | None:
    """Return the target of a resource's URL, or of its DOI at the URL's host, or None."""
    parts = urlsplit(resource.url)
    query = dict(parse_qsl(parts.query))
    shape = _PAGE.fullmatch(parts.path)
    given = _persistent_id(query.get("persistentId", ""))
    number = query.get("fileId") or query.get("id") or (shape and shape["number"])
    counts = bool(shape and number and number.isdigit())
    if given is None and not counts and resource.doi is None:
        return None
    asked = query.get("version") or (shape["version"] if shape else None)
    return Persistent(
        base=json_document.base_url(resource.url) + (shape["base"] if shape else ""),
        id=given or (None if counts or resource.doi is None else f"doi:{resource.doi.upper()}"),
        number=number if counts else None,
        version=None if (asked or "").lower() in _LATEST else asked,
        file=bool(shape and shape["file"]),
        named=shape is not None and given is not None,
    )


def _persistent_id(given: str) -> str | None:
    handle = handle_of(given)
    if handle is not None and not given.startswith(("doi:", "hdl:")):
        return f"{'doi' if handle.startswith('10.') else 'hdl'}:{handle}"
    return given if _PERSISTENT.fullmatch(given) else None


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Dataverse:
    """The platform. `clock` gives the day to which embargoes are compared."""

    clock: Clock = _now
    name: str = "dataverse"
    facts: ClassVar[PlatformFacts] = FACTS

    def match_request(self, request: IngestRequest, resource: DatasetResource) -> bool:
        """Return whether the URL has a persistent id in Dataverse's form, or its host is listed."""
        asked = persistent(resource)
        return host(resource.url) in json_document.DATAVERSE or (asked is not None and asked.named)

    def process_request(
        self, request: IngestRequest, resource: DatasetResource, api: Api
    ) -> FilesetPlatformItem:
        """Return the requested version of the dataset, or else the newest one."""
        asked = persistent(resource)
        if asked is None:
            if "/dataverse/" in urlsplit(resource.url).path:
                raise FilesetError("platform-scope", "it is a collection", code="collection")
            raise FilesetError("platform-404", f"{resource.url} does not name a dataset")
        if asked.is_draft:
            raise FilesetError("platform-scope", f"{resource.url} is a draft", code="draft")
        if asked.file:
            raise _file(asked, api)
        dataset = _dataset(asked, api)
        version = _version(asked, dataset, api)
        files = manifest(version, asked.api, self.clock().date().isoformat())
        return _item(asked, dataset, version, files)


def _file(asked: Persistent, api: Api) -> FilesetError:
    """Return the error for a request for one file; it names the dataset."""
    url = asked.url("files", returnDatasetVersion="true")
    found = inner(mapping(api.document(url), "the file"), "data")
    parent = text(inner(found, "datasetVersion").get("datasetPersistentId"))
    name = text(found.get("label")) or asked.id or asked.number
    of = f" of the dataset {parent}" if parent else ""
    return FilesetError("platform-scope", f"{name} is one file{of}", code="file-level")


def _dataset(asked: Persistent, api: Api) -> Mapping[str, Any]:
    """Return a dataset with its newest version. Raises FilesetError."""
    try:
        answer = api.document(asked.url("datasets"))
    except FilesetError as error:
        if error.status != "platform-404" or asked.id is None:
            raise
        try:  # most persistent ids are those of files
            refusal = _file(asked, api)
        except FilesetError:
            raise error from None
        raise refusal from error
    return mapping(mapping(answer, "the dataset").get("data"), "the dataset")


def _version(asked: Persistent, dataset: Mapping[str, Any], api: Api) -> Mapping[str, Any]:
    """Return the requested version; empty if the dataset has none any more.

    A whole number requests the newest of its minor versions.
    """
    newest = inner(dataset, "latestVersion")
    wanted = asked.version
    if wanted is None or not newest or _is(newest, wanted):
        return newest
    detail = f"it has no version {wanted}"
    if not _VERSION.fullmatch(wanted):
        raise FilesetError("platform-scope", detail, code="wrong-version")
    try:
        answer = mapping(api.document(asked.url("datasets", f"versions/{wanted}")), "the version")
    except FilesetError as error:
        if error.status != "platform-404":
            raise
        raise FilesetError("platform-scope", detail, code="wrong-version") from error
    found = mapping(answer.get("data"), "the version")
    if not _is(found, wanted):
        detail = f"requested version {wanted}, received {_number(found)}"
        raise FilesetError("platform-scope", detail, code="wrong-version")
    return found


def _number(version: Mapping[str, Any]) -> str | None:
    major = text(version.get("versionNumber"))
    return major and f"{major}.{text(version.get('versionMinorNumber')) or 0}"


def _is(version: Mapping[str, Any], wanted: str) -> bool:
    number = _number(version) or ""
    return number == wanted or ("." not in wanted and number.partition(".")[0] == wanted)


def _item(
    asked: Persistent,
    dataset: Mapping[str, Any],
    version: Mapping[str, Any],
    files: tuple[FilesetManifestFile, ...],
) -> FilesetPlatformItem:
    days = [day for file in files if (day := file.extra.get("until"))]
    until = min(days, default=None)
    status, detail = _status(version, files, until)
    if status == "platform-gone":
        files = ()
    id, number = _id(dataset, version), _number(version)
    page = f"{asked.base}/dataset.xhtml?persistentId={quote(id, safe=':/')}"
    of_version = f"/versions/{number}" if number else "/"
    bundle = f"{asked.api}/access/dataset/:persistentId{of_version}?persistentId={quote(id, ':/')}"
    return FilesetPlatformItem(
        platform_name="dataverse",
        platform_status=status,
        platform_domain=host(asked.base),
        platform_id=id,
        version=number,
        manifest=files,
        until=until,
        web_base_url=page + (f"&version={number}" if number else ""),
        web_bundle_url=f"{bundle}&format=original" if status == "success" else None,
        detail=detail,
        description=replace(describe(dataset, version, id), version=number),
    )


def _status(
    version: Mapping[str, Any], files: tuple[FilesetManifestFile, ...], until: str | None
) -> tuple[str, str]:
    """Return an item's status and a detail. Raises FilesetError for a draft."""
    state = (text(version.get("versionState")) or "").upper()
    if state == "DRAFT":
        raise FilesetError("platform-scope", "it is a draft", code="draft")
    if not version or state == "DEACCESSIONED":
        return "platform-gone", text(version.get("versionNote")) or "it was deaccessioned"
    if not files:
        return "empty-manifest", ""
    if all(file.status == "withheld" for file in files):
        return ("platform-embargoed", "") if until else ("platform-restricted", "")
    return "success", ""


def _id(dataset: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    """Return the persistent id, which is the same for all versions."""
    whole = text(version.get("datasetPersistentId"))
    parts = [text(dataset.get(name)) for name in ("protocol", "authority", "identifier")]
    if whole is None and all(parts):
        apart = dataset.get("separator")  # an empty one is the usual one of perma
        whole = f"{parts[0]}:{parts[1]}{apart if isinstance(apart, str) else '/'}{parts[2]}"
    if whole is None:
        raise FilesetError("platform-bad-response", "the dataset has no persistent id")
    return whole
