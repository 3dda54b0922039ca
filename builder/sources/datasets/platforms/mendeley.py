"""Mendeley Data: datasets with versions; files are listed by folder, each with a SHA-256."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import (
    VersionRequest,
    edition,
    part_document,
    refusal,
    values_at,
)
from builder.sources.datasets.platforms.metadata import (
    licences,
    people_of,
    plain_text,
    relate_all,
    texts_at,
)
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

NAME = "mendeley"
DOMAIN = "data.mendeley.com"
_DATASET = re.compile(r"/datasets/(?P<id>[a-z0-9]{6,20})(?:/(?P<version>\d{1,4}))?/?")
_DOI = re.compile(r"10\.17632/(?P<id>[a-z0-9]{6,20})(?:\.(?P<version>\d{1,4}))?")
_FOLDERS = 1_000
"""Most folders in a dataset; each needs a request."""


class Mendeley(json_document.HostedPlatform):
    """Mendeley Data."""

    facts = PlatformFacts(
        NAME,
        "host, DOI",
        "folders",
    )
    hosts = frozenset((DOMAIN,))
    dois = _DOI

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the requested version, or else the newest. Raises FilesetError."""
        is_here = json_document.host(resource.url) == DOMAIN
        by_url = _DATASET.fullmatch(json_document.path(resource.url)) if is_here else None
        request = VersionRequest.of(by_url, _DOI.fullmatch(resource.doi or ""))
        if request is None:
            raise ScopeError(f"{resource.url} is not a dataset", "no-dataset")
        where = f"https://{DOMAIN}/public-api/datasets/{request.id}"
        snapshot = f"{where}/snapshot/{request.version}"
        dataset = json_document.mapping(
            edition(api, where, snapshot, request.version), "the dataset"
        )
        if (id_ := json_document.text(dataset.get("id"))) != request.id:
            raise FilesetError("platform-error", f"requested {request.id}, received {id_}")
        version = json_document.text(dataset.get("version"))
        if version is None:
            raise FilesetError("platform-bad-response", "the dataset does not declare its version")
        request.check(version)
        item = FilesetPlatformItem(
            platform_name=NAME,
            platform_domain=DOMAIN,
            platform_id=request.id,
            version=version,
            web_base_url=f"https://{DOMAIN}/datasets/{request.id}/{version}",
            web_bundle_url=f"https://{DOMAIN}/public-api/zip/{request.id}/download/{version}",
            description=_describe(dataset, version),
        )
        if dataset.get("available") is False:
            return replace(item, **refusal("platform-restricted", "it is not available"))
        return replace(item, manifest=tuple(_files(api, where, version, dataset)))


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
    files = json_document.entries(dataset.get("files"))
    if lost := {json_document.text(file.get("id")) or "" for file in files} - seen:
        raise FilesetError("incomplete-manifest", f"{len(lost)} files are in no folder")


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


def _describe(dataset: Mapping[str, Any], version: str) -> Description:
    licence = json_document.inner(dataset, "data_licence")
    name = licence.get("short_name") or licence.get("full_name")
    articles = ((doi, "IsSupplementTo") for doi in values_at(dataset, "articles.doi"))
    links = ((url, "References") for url in values_at(dataset, "related_links.href"))
    return Description(
        title=plain_text(dataset.get("name")),
        creators=people_of(
            values_at(dataset, "contributors"),
            given_at="first_name",
            family_at="last_name",
            orcid_at="orcid_id",
            affiliations_at="institution.name",
        ),
        publisher="Mendeley Data",
        published=json_document.day(dataset.get("publish_date")),
        abstract=plain_text(dataset.get("description")),
        subjects=texts_at(dataset, "categories.label", plain_text),
        licences=licences(name=name, url=licence.get("url")),
        version=version,
        doi=json_document.doi(json_document.inner(dataset, "doi").get("id") or dataset.get("doi")),
        related=relate_all([*articles, *links]),
    )
