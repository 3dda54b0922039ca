"""GitHub: releases by tag, with uploaded files and the archives of the source.

An archive is made for each request, so neither its size nor its digest is known, and its bytes may
change. Digests of files exist since 2025.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    Person,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import (
    edition,
    existing,
    first_at,
    part_document,
)
from builder.sources.datasets.platforms.metadata import licences, plain_text
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

NAME = "github"
DOMAIN = "github.com"
_REPOSITORY = re.compile(r"/(?P<owner>[^/]+)/(?P<name>[^/]+?)(?:\.git)?(?:/(?P<rest>.*))?")
_RELEASE = re.compile(r"releases/tag/(?P<tag>.+?)/?")
_NEWEST = re.compile(r"(?:releases(?:/latest)?)?/?")
_FILE = re.compile(r"(?:releases/download|archive|blob|raw|zipball|tarball)/.+")
ARCHIVES = ("zip", "tar.gz")
"""Forms of the archive of the source that are kept; others have the same contents."""


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """The requested release: the repository's path, its URL in the API, and the tag if named."""

    path: str
    api: str
    tag: str | None

    def check(self, release: Mapping[str, Any]) -> str:
        """Return the tag of a release. Raises FilesetError unless it is the requested one."""
        tag = json_document.name(release.get("tag_name"), "the release")
        if self.tag is not None and tag != self.tag:
            raise FilesetError("platform-error", f"requested {self.tag}, received {tag}")
        return tag


class GitHub(json_document.HostedPlatform):
    """GitHub."""

    facts = PlatformFacts(
        NAME, "host", "releases by tag; assets with digests, zip and tar.gz of source"
    )
    hosts = frozenset((DOMAIN, "www.github.com"))

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the requested release, else the newest one. Raises FilesetError."""
        request = _parse_resource(resource)
        release = _release(request, api)
        tag = request.check(release)
        if release.get("draft") is True:
            raise ScopeError("it is a draft", "draft")
        about = json_document.mapping(part_document(api, request.api), "the repository")
        full = json_document.text(about.get("full_name")) or request.path
        owner, licence = json_document.inner(about, "owner"), json_document.inner(about, "license")
        login = json_document.text(owner.get("login"))
        group = json_document.text(owner.get("type")) == "Organization"
        spdx = json_document.text(licence.get("spdx_id"))
        url = None if spdx in (None, "NOASSERTION") else f"https://spdx.org/licenses/{spdx}.html"
        return FilesetPlatformItem(
            platform_name=NAME,
            platform_domain=DOMAIN,
            platform_id=full,
            version=tag,
            manifest=tuple(_files(release, full, tag)),
            web_base_url=f"https://{DOMAIN}/{full}/releases/tag/{quote(tag)}",
            description=describe_release(
                release,
                about,
                tag,
                creators=(Person(name=login, organisation=group),) if login else (),
                publisher="GitHub",
                licences=licences(name=licence.get("name"), url=url),
            ),
        )


def _parse_resource(resource: DatasetResource) -> ReleaseRequest:
    """Return the requested release. Raises FilesetError (platform-scope) for other pages."""
    match = _REPOSITORY.fullmatch(json_document.path(resource.url))
    rest = (match["rest"] or "") if match else ""
    if match and _FILE.fullmatch(rest):
        raise ScopeError("it is one file of a repository", "file-level")
    release = _RELEASE.fullmatch(rest)
    if match is None or not (release or _NEWEST.fullmatch(rest)):
        raise ScopeError(f"{resource.url} is not a release", "no-dataset")
    tag = unquote(release["tag"]) if release else None
    path = f"{unquote(match['owner'])}/{unquote(match['name'])}"
    return ReleaseRequest(path, f"https://api.github.com/repos/{quote(path)}", tag)


def _release(request: ReleaseRequest, api: Api) -> Mapping[str, Any]:
    """Return the release's document. Raises FilesetError, as for a repository without releases."""
    if request.tag is None:
        none = ScopeError("the repository has no release", "no-dataset")
        newest = existing(api, request.api, f"{request.api}/releases/latest", none)
        return json_document.mapping(newest, "the release")
    tag = quote(request.tag, safe="")
    try:
        release = api.document(f"{request.api}/releases/tags/{tag}")
        return json_document.mapping(release, "the release")
    except FilesetError as error:
        if error.status != "platform-404":
            raise
        # A tag without a release has a page too; it has only the source.
        edition(api, request.api, f"{request.api}/git/ref/tags/{tag}", request.tag)
        return {"tag_name": request.tag, "assets": []}


def _files(release: Mapping[str, Any], full: str, tag: str) -> Iterator[FilesetManifestFile]:
    assets = json_document.objects_of(release.get("assets"), "the list of files")
    yield from map(_asset, assets)
    taken = {asset.get("name") for asset in assets}
    for form in ARCHIVES:
        name = f"{full.rpartition('/')[2]}-{tag.replace('/', '-')}.{form}"
        yield FilesetManifestFile(
            path=f"source/{name}" if name in taken else name,
            extra={"source": form},
            platform_url=f"https://{DOMAIN}/{full}/archive/refs/tags/{quote(tag)}.{form}",
        )


def _asset(asset: Mapping[str, Any]) -> FilesetManifestFile:
    url = json_document.web(asset.get("browser_download_url"))
    algorithm, _, digest = (json_document.text(asset.get("digest")) or "").partition(":")
    complete = json_document.text(asset.get("state")) in (None, "uploaded")
    return FilesetManifestFile(
        path=json_document.name(asset.get("name"), "a file"),
        size=json_document.size(asset.get("size")),
        mimetype=json_document.text(asset.get("content_type")),
        # An upload that was broken off is listed too.
        status=None if url and complete else "withheld",
        platform_url=url,
        **json_document.digests(algorithm, digest),
    )


def describe_release(
    release: Mapping[str, Any], about: Mapping[str, Any], tag: str, **own: Any
) -> Description:
    """Return the description of a release; `about` is the repository, of GitHub or GitLab.

    `own` are the fields that each of them says in its own way.
    """
    named = (plain_text(about.get("name")), plain_text(release.get("name")) or tag)
    return Description(
        title=" ".join(filter(None, named)),
        published=first_at(release, "published_at released_at created_at", json_document.day),
        type="Software",
        abstract=plain_text(about.get("description"))
        or first_at(release, "body description", plain_text),
        subjects=json_document.texts(about.get("topics")),
        version=tag,
        **own,
    )
