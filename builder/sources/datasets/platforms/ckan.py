"""CKAN: datasets whose resources are hosted files, or links to other sites.

CKAN's sizes and digests are used only for hosted files, because the target of a link may have
changed since. A link to a page or to a service is not a file.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    Person,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import first_at, refusal, values_at
from builder.sources.datasets.platforms.metadata import (
    licences,
    person_from_text,
    plain_text,
    relate_all,
)
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

NAME = "ckan"
_HOST_NAMES = """
catalog.data.gov data.boston.gov data.ca.gov data.gov.au data.gov.ie data.gov.uk
data.humdata.org data.nhm.ac.uk demo.ckan.org open.canada.ca opendata.swiss www.data.gov.uk
"""
_HOSTS = frozenset(_HOST_NAMES.split())
_DATASET = re.compile(
    r"(?P<root>(?:/[^/]+)*?)/dataset/(?P<id>[a-z0-9_-]{2,100})(?:/(?P<rest>.*))?", re.I
)
_GENERATOR = re.compile(rb"<meta[^>]{0,100}\bgenerator\b[^>]{0,100}\bckan\b", re.I)
_RESOURCE = re.compile(r"resource/[^/]+(?:/.*)?")
_NO_FILES = frozenset(
    (
        "api",
        "arcgis geoservices rest api",
        "csw",
        "esri rest",
        "geonode",
        "htm",
        "html",
        "link",
        "ogc wfs",
        "ogc wms",
        "rest",
        "sparql",
        "url",
        "wcs",
        "web",
        "website",
        "wfs",
        "wms",
        "wmts",
    )
)
"""Formats, in lower case, of pages and services, for resources that CKAN does not host."""
_DOTTED = re.compile(r".*\.[A-Za-z0-9]{1,8}")
_FORMAT = re.compile(r"[A-Za-z0-9]{1,8}")
_NO_LABEL = re.compile(r"[/\\\x00-\x1f\x7f]+")
_BY_LENGTH = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}


class Ckan:
    """CKAN."""

    facts = PlatformFacts(
        NAME,
        "known hosts, landing page",
        "files it holds, without links to pages and services",
    )

    def match_request(self, resource: DatasetResource) -> bool:
        """Return whether it is CKAN, by host or by the page's generator."""
        if not _DATASET.fullmatch(json_document.path(resource.url)):
            return False
        is_host = json_document.host(resource.url) in _HOSTS
        return is_host or _GENERATOR.search(resource.body or b"") is not None

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the dataset as CKAN describes it. Raises FilesetError."""
        match = _DATASET.fullmatch(json_document.path(resource.url))
        if match is None:
            raise ScopeError(f"{resource.url} is not a dataset", "no-dataset")
        if _RESOURCE.fullmatch(match["rest"] or ""):
            raise ScopeError("it is one file of a dataset", "file-level")
        parts = urlsplit(resource.url)
        root = f"{parts.scheme}://{parts.netloc}{match['root']}"
        url = f"{root}/api/3/action/package_show?id={quote(match['id'], safe='')}"
        answer = json_document.mapping(api.document(url), "the answer")
        if answer.get("success") is not True:
            raise FilesetError("platform-error", "CKAN reports no success")
        return _item(json_document.mapping(answer.get("result"), "the dataset"), root, match["id"])


def _item(dataset: Mapping[str, Any], root: str, name: str) -> FilesetPlatformItem:
    """Return the dataset of a CKAN at `root`, where `name` is its id or its name."""
    id_ = json_document.text(dataset.get("id"))
    if id_ is None:
        raise FilesetError("platform-bad-response", "the dataset has no id")
    if name.lower() not in (id_, (json_document.text(dataset.get("name")) or "").lower()):
        raise FilesetError("platform-error", f"requested {name}, received {id_}")
    refused = _refusal(dataset)
    listed = json_document.objects_of(dataset.get("resources"), "the list of resources")
    count = json_document.size(dataset.get("num_resources"))
    if count is not None and len(listed) < count:
        raise FilesetError("incomplete-manifest", f"{len(listed)} of {count} resources are listed")
    resources = [row for row in listed if json_document.text(row.get("state")) in (None, "active")]
    files = [resource for resource in resources if _is_file(resource)]
    links = [resource for resource in resources if not _is_file(resource)]
    if not refused and links and not files:
        refused = refusal("metadata-only", "it only links to pages and services")
    host = json_document.host(root)
    ids = [json_document.text(file.get("id")) or str(at) for at, file in enumerate(files)]
    return FilesetPlatformItem(
        platform_name=NAME,
        platform_domain=host,
        platform_id=id_,
        manifest=json_document.apart([_file(file) for file in files], ids),
        web_base_url=f"{root}/dataset/{json_document.text(dataset.get('name')) or id_}",
        version=json_document.text(dataset.get("version")),
        description=_describe(dataset, links, host),
        **refused,
    )


def _refusal(dataset: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an item that say why its files are not given. Raises FilesetError."""
    state, kind = json_document.text(dataset.get("state")), json_document.text(dataset.get("type"))
    if kind in {"harvest", "showcase"}:
        raise ScopeError(f"it is a {kind}", "no-dataset")
    if state == "draft":
        raise ScopeError("it is a draft", "draft")
    if state == "deleted":
        return refusal("platform-gone", "it was deleted")
    if dataset.get("private") is True:
        return refusal("platform-restricted", "it is private")
    return {}


def _is_hosted(resource: Mapping[str, Any]) -> bool:
    """Return whether CKAN hosts the resource itself."""
    return json_document.text(resource.get("url_type")) == "upload"


def _is_file(resource: Mapping[str, Any]) -> bool:
    kind = (json_document.text(resource.get("format")) or "").lower()
    return _is_hosted(resource) or kind not in _NO_FILES


def _file(resource: Mapping[str, Any]) -> FilesetManifestFile:
    url = json_document.web(resource.get("url"))
    file = FilesetManifestFile(
        path=_path(resource, url),
        mimetype=json_document.text(resource.get("mimetype")),
        extra={
            field: resource[field]
            for field in ("id", "name", "format")
            if json_document.text(resource.get(field))
        },
        status=None if url else "withheld",
        platform_url=url,
    )
    if not _is_hosted(resource):
        return file
    digest = (json_document.text(resource.get("hash")) or "").rpartition(":")[2]
    digests = json_document.digests(_BY_LENGTH.get(len(digest)), digest)
    return replace(file, size=json_document.size(resource.get("size")), **digests)


def _path(resource: Mapping[str, Any], url: str | None) -> str:
    """Return the file name in the URL if it looks like one, else the label and the format.

    A label may be any text, so characters that would form a path become hyphens.
    """
    leaf = unquote(json_document.path(url or "").rpartition("/")[2])
    if _DOTTED.fullmatch(leaf):
        return leaf
    title = plain_text(resource.get("name")) or json_document.text(resource.get("id"))
    label = _NO_LABEL.sub("-", json_document.name(title, "a resource"))
    kind = (json_document.text(resource.get("format")) or "").removeprefix(".").lower()
    if not _FORMAT.fullmatch(kind) or label.lower().endswith(f".{kind}"):
        return label
    return f"{label}.{kind}"


def _describe(
    dataset: Mapping[str, Any], links: Sequence[Mapping[str, Any]], host: str
) -> Description:
    extras = {
        json_document.text(extra.get("key")) or "": extra.get("value")
        for extra in json_document.entries(dataset.get("extras"))
    }
    body = plain_text(json_document.inner(dataset, "organization").get("title"))
    group = Person(name=body, organisation=True) if body else None
    creator = person_from_text(plain_text(dataset.get("author"))) or group
    tags = (
        first_at(tag, "display_name name", json_document.text) for tag in values_at(dataset, "tags")
    )
    return Description(
        title=plain_text(dataset.get("title")) or json_document.text(dataset.get("name")),
        creators=(creator,) if creator else (),
        publisher=body or plain_text(dataset.get("maintainer")) or host,
        published=json_document.day(extras.get("issued"))
        or json_document.day(dataset.get("metadata_created")),
        abstract=plain_text(dataset.get("notes")),
        subjects=tuple(dict.fromkeys(tag for tag in tags if tag)),
        language=json_document.text(dataset.get("language"))
        or json_document.text(extras.get("language")),
        licences=licences(name=dataset.get("license_title"), url=dataset.get("license_url")),
        version=json_document.text(dataset.get("version")),
        doi=json_document.doi(dataset.get("doi")) or json_document.doi(extras.get("doi")),
        related=relate_all((link.get("url"), "References") for link in links),
    )
