"""Dataverse: many installations with one API."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from builder.filesets.item import (
    DatasetResource,
    FilesetManifestFile,
    FilesetPlatformItem,
    IngestRequest,
)
from builder.filesets.metadata import origin
from builder.filesets.metadata.json_document import host, inner, mapping, text
from builder.filesets.platforms.dataverse_citation import describe
from builder.filesets.platforms.dataverse_datafile import manifest
from builder.filesets.platforms.dataverse_persistent import Persistent, persistent
from builder.filesets.protocols import Api, FilesetError
from builder.runtime import Clock

_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Dataverse:
    """The platform. `clock` gives the day to which embargoes are compared."""

    clock: Clock = _now
    name: str = "dataverse"

    def match_request(self, request: IngestRequest, resource: DatasetResource) -> bool:
        """Return whether the URL has a persistent id in Dataverse's form, or its host is listed."""
        asked = persistent(resource)
        return host(resource.url) in origin.DATAVERSE or (asked is not None and asked.named)

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
        apart = text(dataset.get("separator")) or "/"
        whole = f"{parts[0]}:{parts[1]}{apart}{parts[2]}"
    if whole is None:
        raise FilesetError("platform-bad-response", "the dataset has no persistent id")
    return whole
