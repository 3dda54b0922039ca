"""Hugging Face: datasets whose versions are commits, with files listed in pages.

A large file (LFS) has the SHA-256 of its bytes. A small one has only the digest of git.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

from builder.sources.datasets.download.api import parse_document
from builder.sources.datasets.item import (
    GIT,
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    Person,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import (
    first_at,
    walk_pages,
    wrap_part_errors,
)
from builder.sources.datasets.platforms.metadata import licences, plain_text, relate_all
from builder.sources.datasets.platforms.pages.links import parse_header
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

NAME = "huggingface"
DOMAIN = "huggingface.co"
_DATASET = re.compile(
    r"(?:/api)?/datasets/(?P<id>[^/]+(?:/(?!(?:tree|blob|resolve|raw|viewer|discussions|commit|"
    r"commits|revision)(?:/|$))[^/]+)?)(?:/(?P<view>[a-z]+)(?:/(?P<rest>.*))?)?/?"
)
_REVISIONS = frozenset(("tree", "commit", "revision"))
_COMMIT = re.compile(r"[0-9a-f]{40}")


class HuggingFace(json_document.HostedPlatform):
    """Hugging Face."""

    facts = PlatformFacts(
        NAME,
        "host",
        "datasets; a version is a commit; SHA-256 of large files (LFS), git's of others",
    )
    hosts = frozenset((DOMAIN, "www.huggingface.co", "hf.co"))

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the dataset at the requested revision, else at the newest. Raises FilesetError."""
        id_, revision = _parse_resource(resource)
        about = _about(api, id_, revision)
        commit = json_document.text(about.get("sha")) or ""
        if not _COMMIT.fullmatch(commit):
            raise FilesetError("platform-bad-response", f"{id_} names no commit")
        item = _item(id_, commit, about)
        if item.platform_status != "success":
            return item
        first = f"https://{DOMAIN}/api/datasets/{quote(id_)}/tree/{commit}?recursive=true"
        files = tuple(
            _file(id_, commit, entry)
            for page in read_linked_pages(api, first, (DOMAIN,))
            for entry in json_document.objects_of(page, "the list of files")
            if json_document.text(entry.get("type")) != "directory"
        )
        item = replace(item, manifest=files)
        if about.get("gated") in (None, False) or api.shows_token(DOMAIN):
            return item
        detail = f"its users must accept terms, and fileset.tokens has no token for {DOMAIN}"
        return item.withhold("needs-token", detail)


def _parse_resource(resource: DatasetResource) -> tuple[str, str | None]:
    """Return the id of the requested dataset and its revision, if one is named.

    Raises FilesetError (platform-scope).
    """
    match = _DATASET.fullmatch(json_document.path(resource.url))
    if match is None:
        raise ScopeError(f"{resource.url} is not a dataset", "no-dataset")
    if match["view"] in {"blob", "raw", "resolve"}:
        raise ScopeError("it is one file of a dataset", "file-level")
    # A name of a branch has its slashes escaped, so the rest is a folder.
    revision = (match["rest"] or "").partition("/")[0] if match["view"] in _REVISIONS else ""
    return unquote(match["id"]).rstrip("/"), unquote(revision) or None


def _about(api: Api, id_: str, revision: str | None) -> Mapping[str, Any]:
    """Return the dataset's document. Raises FilesetError, as for a version that does not exist."""
    whole = f"https://{DOMAIN}/api/datasets/{quote(id_)}"
    url = f"{whole}/revision/{quote(revision or '', safe='')}"
    about = json_document.mapping(json_document.edition(api, whole, url, revision), "the dataset")
    # A renamed dataset is found by its old name, and is the one that was requested.
    if "/" in id_ and not json_document.text(about.get("id")):
        raise FilesetError("platform-bad-response", "the dataset has no id")
    commit = json_document.text(about.get("sha")) or ""
    if revision and _COMMIT.fullmatch(revision) and commit != revision:
        raise ScopeError(f"requested revision {revision}, received {commit}", "wrong-version")
    return about


def _item(id_: str, commit: str, about: Mapping[str, Any]) -> FilesetPlatformItem:
    named = json_document.text(about.get("id")) or id_
    page = f"https://{DOMAIN}/datasets/{quote(named)}"
    status, detail = "success", ""
    if about.get("private") is True:
        status, detail = "platform-restricted", "it is private"
    if about.get("disabled") is True:
        status, detail = "platform-restricted", "Hugging Face disabled it"
    return FilesetPlatformItem(
        platform_name=NAME,
        platform_status=status,
        platform_domain=DOMAIN,
        platform_id=named,
        version=commit,
        web_base_url=f"{page}/tree/{commit}",
        detail=detail,
        description=_describe(named, about, commit, page),
    )


def read_linked_pages(api: Api, first: str, hosts: Sequence[str]) -> Iterator[Any]:
    """Yield the JSON documents of a list whose header `Link` names the next page.

    Only `hosts` are asked. Raises FilesetError as `part_document` and `walk_pages` do.
    """

    def read(url: str) -> tuple[Any, str | None]:
        with wrap_part_errors():
            answer = api.answer(url, hosts=hosts)
        links = parse_header(answer.headers.get("link", ""), answer.url)
        following = next((link.target for link in links if link.relation == "next"), None)
        return parse_document(answer), following

    return walk_pages(first, read)


def _file(id_: str, commit: str, entry: Mapping[str, Any]) -> FilesetManifestFile:
    path = json_document.name(entry.get("path"), "a file")
    large = json_document.inner(entry, "lfs")
    # Git's digest of a large file is that of its pointer.
    git = None if large else json_document.digest(entry.get("oid"), "sha1")
    return FilesetManifestFile(
        path=path,
        size=json_document.size(large.get("size", entry.get("size"))),
        sha256=json_document.digest(large.get("oid"), "sha256"),
        extra={GIT: git} if git else {},
        platform_url=f"https://{DOMAIN}/datasets/{quote(id_)}/resolve/{commit}/{quote(path)}",
    )


def _describe(id_: str, about: Mapping[str, Any], commit: str, page: str) -> Description:
    card = json_document.inner(about, "cardData")
    tags = json_document.texts(about.get("tags"))
    author = json_document.text(about.get("author")) or id_.partition("/")[0]
    return Description(
        title=plain_text(card.get("pretty_name")) or id_,
        creators=(Person(name=author),),
        publisher="Hugging Face",
        published=first_at(about, "createdAt lastModified", json_document.day),
        abstract=plain_text(about.get("description")),
        subjects=tuple(tag for tag in tags if ":" not in tag),
        language=next(iter(json_document.texts(card.get("language"))), None),
        licences=tuple(
            licence
            for name in json_document.texts(card.get("license"))
            for licence in licences(name=name, url=card.get("license_link"))
        ),
        version=commit,
        doi=next(filter(None, (json_document.doi(t) for t in tags if t.startswith("doi:"))), None),
        url=page,
        related=relate_all((tag, "References") for tag in tags if tag.startswith("arxiv:")),
    )
