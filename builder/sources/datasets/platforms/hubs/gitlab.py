"""GitLab: releases by tag, with links to files and the archives of the source.

Neither sizes nor digests are known. A link without the name of a file leads to a page or a service,
and becomes a related work.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from builder.http.url import origin_of
from builder.sources.datasets.item import (
    DatasetResource,
    FilesetManifestFile,
    FilesetPlatformItem,
    Person,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.hubs.github import (
    ARCHIVES,
    ReleaseRequest,
    describe_release,
)
from builder.sources.datasets.platforms.json_document import edition, existing, part_document
from builder.sources.datasets.platforms.metadata import licences, plain_text, relate_all
from builder.sources.datasets.platforms.pages.schema_org import file_path
from builder.sources.datasets.protocols import Api, PlatformFacts, ScopeError

NAME = "gitlab"
_HOST_NAMES = """
codebase.helmholtz.cloud framagit.org git.rwth-aachen.de gitlab.com gitlab.gnome.org
gitlab.inria.fr gitlab.mpcdf.mpg.de gitlab.kitware.com jugit.fz-juelich.de salsa.debian.org
"""
_HOSTS = frozenset(_HOST_NAMES.split())
_PROJECT = re.compile(r"/(?P<path>[^/]+(?:/[^/-][^/]*)+?)(?:/-(?:/(?P<rest>.*))?)?/?")
_RELEASE = re.compile(r"releases/(?!permalink(?:/|$))(?P<tag>[^/]+)(?P<file>/downloads/.+)?/?")
_NEWEST = re.compile(r"(?:releases(?:/permalink/latest)?)?/?")
_FILE = re.compile(r"(?:archive|blob|raw|package_files|jobs)/.+")
_LINKED = frozenset((None, "other", "package"))
"""Types of links that may lead to files; `image` and `runbook` do not."""
_UPLOADED = re.compile(r"/(?:uploads|package_files|packages|releases/[^/]+/downloads)/")
"""Part of the path of a file that GitLab keeps, whatever its name."""
_NAMED = re.compile(r".*[^/.]\.(?!html?$)[A-Za-z0-9]{1,8}", re.IGNORECASE)


class GitLab:
    """GitLab, on any host."""

    facts = PlatformFacts(
        NAME,
        "known hosts, and `/-/releases` in the URL",
        "releases by tag; linked files, zip and tar.gz of source; no digests",
    )

    def match_request(self, resource: DatasetResource) -> bool:
        """Return whether it is GitLab, by host or by the form of the URL of a release."""
        match = _PROJECT.fullmatch(json_document.path(resource.url))
        is_release = match is not None and (match["rest"] or "").startswith("releases")
        return is_release or json_document.host(resource.url) in _HOSTS

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the requested release, else the newest one. Raises FilesetError."""
        request = _parse_resource(resource)
        if request.tag is None:
            none = ScopeError("the project has no release", "no-dataset")
            newest = f"{request.api}/releases/permalink/latest"
            answer = existing(api, request.api, newest, none)
        else:
            by_tag = f"{request.api}/releases/{quote(request.tag, safe='')}"
            answer = edition(api, request.api, by_tag, request.tag)
        release = json_document.mapping(answer, "the release")
        tag = request.check(release)
        about = json_document.mapping(
            part_document(api, f"{request.api}?license=true"), "the project"
        )
        path = json_document.text(about.get("path_with_namespace")) or request.path
        host = json_document.host(resource.url)
        links = json_document.entries(json_document.inner(release, "assets").get("links"))
        space, licence = (json_document.inner(about, name) for name in ("namespace", "license"))
        owner, group = plain_text(space.get("name")), json_document.text(space.get("kind"))
        return FilesetPlatformItem(
            platform_name=NAME,
            platform_domain=host,
            platform_id=path,
            version=tag,
            manifest=_files(release, links),
            web_base_url=f"{origin_of(request.api)}/{path}/-/releases/{quote(tag, safe='')}",
            description=describe_release(
                release,
                about,
                tag,
                creators=(Person(name=owner, organisation=group == "group"),) if owner else (),
                publisher=host,
                licences=licences(name=licence.get("name"), url=licence.get("html_url")),
                related=relate_all(
                    (_url(link), "References") for link in links if not _is_file(link)
                ),
            ),
        )


def _parse_resource(resource: DatasetResource) -> ReleaseRequest:
    """Return the requested release. Raises FilesetError (platform-scope) for other pages."""
    match = _PROJECT.fullmatch(json_document.path(resource.url))
    rest = (match["rest"] or "") if match else ""
    release = _RELEASE.fullmatch(rest)
    if _FILE.fullmatch(rest) or (release and release["file"]):
        raise ScopeError("it is one file of a project", "file-level")
    if match is None or not (release or _NEWEST.fullmatch(rest)):
        raise ScopeError(f"{resource.url} is not a release", "no-dataset")
    parts, path = urlsplit(resource.url), unquote(match["path"])
    api = f"{parts.scheme}://{parts.netloc}/api/v4/projects/{quote(path, safe='')}"
    return ReleaseRequest(path, api, unquote(release["tag"]) if release else None)


def _files(
    release: Mapping[str, Any], links: tuple[Mapping[str, Any], ...]
) -> tuple[FilesetManifestFile, ...]:
    files = []
    for link in filter(_is_file, links):
        url, kind = _url(link), json_document.text(link.get("link_type"))
        files.append(
            FilesetManifestFile(
                path=file_path(url or "", link.get("name")),
                extra={"link_type": kind} if kind else {},
                status=None if url else "withheld",
                platform_url=url,
            )
        )
    for source in json_document.entries(json_document.inner(release, "assets").get("sources")):
        form, url = json_document.text(source.get("format")), json_document.web(source.get("url"))
        if url and form in ARCHIVES:
            files.append(
                FilesetManifestFile(path=file_path(url), extra={"source": form}, platform_url=url)
            )
    return json_document.apart(files)


def _is_file(link: Mapping[str, Any]) -> bool:
    kind = json_document.text(link.get("link_type"))
    names = (json_document.text(link.get("name")), _url(link))
    if kind == "package" or _UPLOADED.search(json_document.path(_url(link) or "")):
        return True
    return kind in _LINKED and any(
        _NAMED.fullmatch(json_document.path(name)) for name in names if name
    )


def _url(link: Mapping[str, Any]) -> str | None:
    return json_document.web(link.get("direct_asset_url")) or json_document.web(link.get("url"))
