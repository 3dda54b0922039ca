"""Dryad: datasets by DOI, whose versions share it, with files listed in pages.

A version is requested by its URL in the API, because its page always shows the newest one.

Without a token, metadata can be read but nothing can be downloaded. The item then has its files as
withheld (needs-token).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    Related,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import (
    first_at,
    read_pages,
    refusal,
    values_at,
)
from builder.sources.datasets.platforms.metadata import (
    licences,
    people_of,
    plain_text,
    relate_all,
)
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

NAME = "dryad"
DOMAIN = "datadryad.org"
_HOSTS = frozenset((DOMAIN, "www.datadryad.org"))
_ROOT = f"https://{DOMAIN}/api/v2/"
_DATASET = re.compile(r"(?:/stash)?/(?:dataset|downloads/zip_assembly_info)/doi:(?P<doi>10\..+?)/?")
_FILE = re.compile(r"(?:/stash)?(?:/api/v2)?/(?:downloads/file_stream|files|downloads)/\d+.*")
_VERSION = re.compile(r"(?:/stash)?/api/v2/versions/(?P<id>\d{1,12})(?:/files)?/?")
_PER_PAGE = 100
_RELATIONS = {
    "article": "IsCitedBy",
    "dataset": "IsSupplementedBy",
    "preprint": "IsCitedBy",
    "primary_article": "IsSupplementTo",
    "software": "IsDerivedFrom",
    "supplemental_information": "IsSupplementedBy",
    "data_management_plan": "IsDocumentedBy",
}
"""Dryad's relations in DataCite's terms. Dryad's other relations have no equivalent."""
_VERSION_FIELDS = """
abstract authors keywords publicationDate relatedWorks title versionNumber visibility
"""
_OF_VERSION = frozenset(_VERSION_FIELDS.split())
"""What a version says of itself; the rest, such as the licence, is of the dataset."""


class Dryad(json_document.HostedPlatform):
    """Dryad."""

    facts = PlatformFacts(
        NAME,
        "host, DOI",
        "needs a token in `fileset.tokens`, else `needs-token`; "
        "other versions by `/api/v2/versions/N`",
    )
    hosts = _HOSTS
    dois = re.compile(r"10\.5061/dryad\..+")

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the requested version, by the URL of its API, else the newest one.

        The others are related. Raises FilesetError.
        """
        match = _VERSION.fullmatch(json_document.path(resource.url))
        version: Mapping[str, Any] = {}
        version_url = doi = None
        if match and json_document.host(resource.url) in _HOSTS:
            version_url = f"{_ROOT}versions/{match['id']}"
            version = json_document.mapping(api.document(version_url), "the version")
            named = unquote(_link(version, "stash:dataset") or "").rpartition("/datasets/")[2]
            if (doi := json_document.doi(named)) is None:
                raise FilesetError("platform-bad-response", "the version names no dataset")
        doi = doi or _dataset_doi(resource)
        url = f"{_ROOT}datasets/{quote(f'doi:{doi}', safe='')}"
        dataset = json_document.mapping(api.document(url), "the dataset")
        own = {name: value for name, value in version.items() if name in _OF_VERSION}
        item = _item(doi, {**dataset, **own})
        if item.platform_status != "success":
            return item
        version_url = version_url or _link(dataset, "stash:version")
        if version_url is None:
            raise FilesetError("platform-bad-response", "the dataset names no version")
        related = (*item.description.related, *_other_versions(api, dataset, item.version))
        described = replace(item.description, related=related)
        item = replace(item, description=described, manifest=tuple(_files(api, version_url)))
        if api.shows_token(DOMAIN):
            return item
        return item.withhold("needs-token", f"fileset.tokens has no token for {DOMAIN}")


def _other_versions(api: Api, dataset: Mapping[str, Any], own: str | None) -> Iterator[Related]:
    """Yield the other public versions by their URLs; they are asked for only if there are some."""
    first, at = _link(dataset, "stash:versions"), json_document.size(own)
    if first is None or at is None or json_document.size(dataset.get("versionNumber")) == 1:
        return
    for page in read_pages(
        api, f"{first}?per_page={_PER_PAGE}", (DOMAIN,), partial(_link, name="next")
    ):
        embedded = json_document.inner(page, "_embedded").get("stash:versions")
        for version in json_document.objects_of(embedded, "the list of versions"):
            number = json_document.size(version.get("versionNumber"))
            hidden = json_document.text(version.get("visibility")) == "restricted"
            if number is None or number == at or hidden:
                continue
            relation = "IsNewVersionOf" if number < at else "IsPreviousVersionOf"
            yield from relate_all([(_link(version, "self"), relation)])


def _dataset_doi(resource: DatasetResource) -> str:
    """Return the DOI of the dataset. Raises FilesetError (platform-scope)."""
    path = unquote(json_document.path(resource.url))
    match = _DATASET.fullmatch(path) if json_document.host(resource.url) in _HOSTS else None
    doi = json_document.doi(match["doi"]) if match else resource.doi
    if doi:
        return doi
    if _FILE.fullmatch(path):
        raise ScopeError("it is one file of a dataset", "file-level")
    raise ScopeError(f"{resource.url} is not a dataset", "no-dataset")


def _link(holder: Mapping[str, Any], name: str) -> str | None:
    return json_document.join_url(_ROOT, json_document.inner(holder, "_links", name).get("href"))


def _refusal(dataset: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an item that say why its files are not given; empty if they are."""
    curation = (json_document.text(dataset.get("curationStatus")) or "").lower()
    if curation == "withdrawn":
        return refusal("platform-gone", "it was withdrawn")
    if curation == "embargoed":
        until = first_at(dataset, "embargoEndDate publicationDate", json_document.day)
        return refusal("platform-embargoed", "embargoed", until)
    message = plain_text(dataset.get("message"))
    if message and json_document.text(dataset.get("title")) is None:
        return refusal("platform-restricted", message)
    if json_document.text(dataset.get("visibility")) == "restricted":
        return refusal("platform-restricted", f"it is restricted: {curation or 'not published'}")
    return {}


def _item(doi: str, dataset: Mapping[str, Any]) -> FilesetPlatformItem:
    identifier = json_document.doi(dataset.get("identifier"))
    if identifier != doi:
        raise FilesetError("platform-error", f"requested {doi}, received {identifier}")
    version = json_document.text(dataset.get("versionNumber"))
    return FilesetPlatformItem(
        platform_name=NAME,
        platform_domain=DOMAIN,
        platform_id=doi,
        version=version,
        web_base_url=json_document.web(dataset.get("sharingLink"))
        or f"https://{DOMAIN}/dataset/doi:{doi}",
        description=_describe(dataset, doi, version),
        **_refusal(dataset),
    )


def _files(api: Api, version: str) -> Iterator[FilesetManifestFile]:
    """Yield the files of a version. Raises FilesetError (incomplete-manifest) if some lack."""
    files: list[Mapping[str, Any]] = []
    total: int | None = None
    first = f"{version.rstrip('/')}/files?per_page={_PER_PAGE}"
    for page in read_pages(api, first, (DOMAIN,), partial(_link, name="next")):
        embedded = json_document.inner(page, "_embedded").get("stash:files")
        files += json_document.objects_of(embedded, "the list of files")
        total = json_document.size(page.get("total"))
    if total is None:
        raise FilesetError("platform-bad-response", "the list of files does not declare its length")
    if len(files) != total:
        raise FilesetError("incomplete-manifest", f"{len(files)} of {total} files are listed")
    for file in files:
        if json_document.text(file.get("status")) != "deleted":
            yield _file(file)


def _file(file: Mapping[str, Any]) -> FilesetManifestFile:
    url = _link(file, "stash:download")
    return FilesetManifestFile(
        path=json_document.name(file.get("path"), "a file"),
        size=json_document.size(file.get("size")),
        mimetype=json_document.text(file.get("mimeType")),
        # A file without this link is listed but cannot be downloaded.
        status=None if url else "withheld",
        platform_url=url,
        **json_document.digests(file.get("digestType"), file.get("digest")),
    )


def _describe(dataset: Mapping[str, Any], doi: str, version: str | None) -> Description:
    return Description(
        title=plain_text(dataset.get("title")),
        creators=people_of(
            values_at(dataset, "authors"),
            given_at="firstName",
            family_at="lastName",
            orcid_at="orcid",
            affiliations_at="affiliation affiliations.name",
        ),
        publisher="Dryad",
        published=json_document.day(dataset.get("publicationDate")),
        abstract=plain_text(dataset.get("abstract")),
        subjects=json_document.texts(dataset.get("keywords")),
        licences=licences(url=dataset.get("license")),
        version=version,
        doi=doi,
        related=relate_all(
            (work.get("identifier"), _RELATIONS.get(str(work.get("relationship")).strip().lower()))
            for work in json_document.entries(dataset.get("relatedWorks"))
        ),
    )
