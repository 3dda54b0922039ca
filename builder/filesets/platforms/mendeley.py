"""Mendeley Data: datasets with versions; files are listed by folder, each with a SHA-256."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from builder.filesets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    IngestRequest,
    Person,
    Related,
)
from builder.filesets.platforms import json_document
from builder.filesets.platforms.facts import PlatformFacts
from builder.filesets.platforms.json_document import edition, part_document
from builder.filesets.platforms.metadata import licences, person_from_parts, plain_text, relate
from builder.filesets.protocols import Api, FilesetError

NAME = "mendeley"
FACTS = PlatformFacts(
    NAME,
    "host, DOI",
    "folders",
)
DOMAIN = "data.mendeley.com"
_ROOT = f"https://{DOMAIN}/public-api/datasets"
_DATASET = re.compile(r"/datasets/(?P<id>[a-z0-9]{6,20})(?:/(?P<version>\d{1,4}))?/?")
_DOI = re.compile(r"10\.17632/(?P<id>[a-z0-9]{6,20})(?:\.(?P<version>\d{1,4}))?")
_FOLDERS = 1_000
"""Most folders in a dataset; each needs a request."""


@dataclass(frozen=True, slots=True)
class _MendeleyRequest:
    """The requested dataset, and its version if one is requested."""

    id: str
    version: str | None


class Mendeley:
    """Mendeley Data."""

    name = NAME
    facts = FACTS

    def match_request(self, request: IngestRequest, resource: DatasetResource) -> bool:
        """Return whether it is Mendeley Data, by host or DOI."""
        known = json_document.host(resource.url) == DOMAIN
        return known or _DOI.fullmatch(resource.doi or "") is not None

    def process_request(
        self, request: IngestRequest, resource: DatasetResource, api: Api
    ) -> FilesetPlatformItem:
        """Return the requested version, or else the newest. Raises FilesetError."""
        asked = _parse_resource(resource)
        where = f"{_ROOT}/{asked.id}"
        snapshot = f"{where}/snapshot/{asked.version}"
        dataset = json_document.mapping(edition(api, where, snapshot, asked.version), "the dataset")
        version = _check(dataset, asked)
        item = _item(dataset, asked, version)
        if item.platform_status != "success":
            return item
        return replace(item, manifest=tuple(_files(api, where, version, dataset)))


def _parse_resource(resource: DatasetResource) -> _MendeleyRequest:
    """Return the requested dataset. Raises FilesetError (platform-scope) for other pages."""
    by_doi = _DOI.fullmatch(resource.doi or "")
    by_url = None
    if json_document.host(resource.url) == DOMAIN:
        by_url = _DATASET.fullmatch(json_document.path(resource.url))
    found = by_url or by_doi
    if found is None:
        raise FilesetError("platform-scope", f"{resource.url} is not a dataset", code="no-dataset")
    version = found["version"]
    if version is None and by_doi and by_doi["id"] == found["id"]:
        version = by_doi["version"]
    return _MendeleyRequest(found["id"], version)


def _check(dataset: Mapping[str, Any], asked: _MendeleyRequest) -> str:
    """Return the dataset's version. Raises FilesetError unless it is the requested one."""
    told = json_document.text(dataset.get("id"))
    if told != asked.id:
        raise FilesetError("platform-error", f"requested {asked.id}, received {told}")
    version = json_document.text(dataset.get("version"))
    if version is None:
        raise FilesetError("platform-bad-response", "the dataset does not declare its version")
    if asked.version and version != asked.version:
        raise FilesetError(
            "platform-scope",
            f"requested version {asked.version}, received version {version}",
            code="wrong-version",
        )
    return version


def _item(dataset: Mapping[str, Any], asked: _MendeleyRequest, version: str) -> FilesetPlatformItem:
    closed = dataset.get("available") is False
    page = f"https://{DOMAIN}/datasets/{asked.id}/{version}"
    return FilesetPlatformItem(
        platform_name=NAME,
        platform_status="platform-restricted" if closed else "success",
        platform_domain=DOMAIN,
        platform_id=asked.id,
        version=version,
        detail="it is not available" if closed else "",
        web_base_url=page,
        web_bundle_url=f"https://{DOMAIN}/public-api/zip/{asked.id}/download/{version}",
        description=_describe(dataset, version, page),
    )


def _files(
    api: Api, where: str, version: str, dataset: Mapping[str, Any]
) -> Iterator[FilesetManifestFile]:
    """Yield the files of all folders. Raises FilesetError (incomplete-manifest) if some lack."""
    folders = json_document.objects_of(
        part_document(api, f"{where}/folders/{version}"), "the list of folders"
    )
    if len(folders) > _FOLDERS:
        raise FilesetError("platform-error", f"it has {len(folders)} folders")
    seen: set[str] = set()
    for id_, place in (("root", ""), *_places(folders)):
        url = f"{where}/files?folder_id={quote(id_, safe='')}&version={version}"
        for file in json_document.objects_of(part_document(api, url), "the list of files"):
            seen.add(json_document.text(file.get("id")) or "")
            yield _file(file, place)
    told = {
        json_document.text(file.get("id")) or ""
        for file in json_document.entries(dataset.get("files"))
    }
    if told - seen:
        raise FilesetError("incomplete-manifest", f"{len(told - seen)} files are in no folder")


def _places(folders: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the id of each folder and its path, which ends with a slash. Raises FilesetError."""
    by_id = {json_document.text(folder.get("id")) or "": folder for folder in folders}
    for id_ in by_id:
        parts: list[str] = []
        at, passed = id_, set[str]()
        while at in by_id:
            if at in passed:
                raise FilesetError("platform-error", "a folder contains itself")
            passed.add(at)
            parts.insert(0, json_document.name(by_id[at].get("name"), "a folder"))
            folder = by_id[at]
            at = json_document.text(folder.get("parent_id") or folder.get("parent_folder_id")) or ""
        yield id_, "/".join((*parts, ""))


def _file(file: Mapping[str, Any], place: str) -> FilesetManifestFile:
    about = json_document.inner(file, "content_details")
    url = json_document.web(about.get("download_url"))
    size = json_document.size(about.get("size"))
    return FilesetManifestFile(
        path=place + json_document.name(file.get("filename"), "a file"),
        size=json_document.size(file.get("size")) if size is None else size,
        sha1=json_document.digest(about.get("sha1_hash"), "sha1"),
        sha256=json_document.digest(about.get("sha256_hash"), "sha256"),
        mimetype=json_document.text(about.get("content_type")),
        status=None if url else "withheld",
        platform_url=url,
    )


def _describe(dataset: Mapping[str, Any], version: str, page: str) -> Description:
    licence = json_document.inner(dataset, "data_licence")
    name = licence.get("short_name") or licence.get("full_name")
    titles = (
        plain_text(category.get("label"))
        for category in json_document.entries(dataset.get("categories"))
    )
    return Description(
        title=plain_text(dataset.get("name")),
        creators=tuple(_creators(dataset)),
        publisher="Mendeley Data",
        published=json_document.day(dataset.get("publish_date")),
        abstract=plain_text(dataset.get("description")),
        subjects=tuple(dict.fromkeys(title for title in titles if title)),
        licences=licences(name=name, url=licence.get("url")),
        version=version,
        doi=json_document.doi(json_document.inner(dataset, "doi").get("id") or dataset.get("doi")),
        url=page,
        related=tuple(dict.fromkeys(_relations(dataset))),
    )


def _creators(dataset: Mapping[str, Any]) -> Iterator[Person]:
    for one in json_document.entries(dataset.get("contributors")):
        institution = json_document.texts(json_document.inner(one, "institution").get("name"))
        person = person_from_parts(
            one.get("first_name"),
            one.get("last_name"),
            iri=one.get("orcid_id"),
            affiliations=institution,
        )
        if person:
            yield person


def _relations(dataset: Mapping[str, Any]) -> Iterator[Related]:
    for article in json_document.entries(dataset.get("articles")):
        found = relate(article.get("doi"), "IsSupplementTo")
        if found:
            yield found
    for link in json_document.entries(dataset.get("related_links")):
        found = relate(link.get("href"), "References")
        if found:
            yield found
