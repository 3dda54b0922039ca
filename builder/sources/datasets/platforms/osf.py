"""OSF: projects and registrations with files in folders of one or more storage providers.

All lists come in pages. Folders have neither sizes nor digests; files of providers other than OSF's
own may lack digests too.
"""

import re
from collections.abc import Iterator, Mapping
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
    first_at,
    part_document,
    read_pages,
    refusal,
    values_at,
)
from builder.sources.datasets.platforms.metadata import licences, people_of, plain_text
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

NAME = "osf"
DOMAIN = "osf.io"
_API = "api.osf.io"
_HOSTS = frozenset((DOMAIN, "www.osf.io"))
_OWN = "osfstorage"
_GUID = re.compile(r"/(?P<id>[a-z0-9]{5})(?:_v\d+)?(?:/(?P<rest>.*))?", re.I)
_FILE = re.compile(r"files/[a-z0-9]+/[0-9a-f]{24}(?:[/?].*)?")
_DOI = re.compile(r"10\.17605/osf\.io/(?P<id>[a-z0-9]{5})")
_PREPRINT = re.compile(r"/preprints(?:/.*)?")
_REGISTRY = re.compile(r"/registries/[^/]+/(?P<id>[a-z0-9]{5})/?", re.I)
_KINDS = {"nodes": "Dataset", "registrations": "Dataset"}
_CATEGORIES = {"software": "Software", "instrumentation": "Instrument"}
_OTHERS = {"files": "file-level", "preprints": "no-dataset", "users": "no-dataset"}
_EMBEDS = "embed=contributors&embed=license&embed=identifiers"
_DEPTH = 10_000
"""Most folders in a project, and most components."""


class Osf(json_document.HostedPlatform):
    """OSF."""

    facts = PlatformFacts(
        NAME,
        "host, DOI",
        "folders of all storage providers; components are below their ids",
    )
    hosts = _HOSTS
    dois = _DOI

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the project or registration with all its files. Raises FilesetError."""
        guid = _project_id(resource)
        kind, node = _node(api, guid)
        item = FilesetPlatformItem(
            platform_name=NAME,
            platform_domain=DOMAIN,
            platform_id=guid,
            web_base_url=f"https://{DOMAIN}/{guid}/",
            description=_describe(node, kind),
            **_refusal(json_document.inner(node, "attributes")),
        )
        if item.platform_status != "success":
            return item
        files = [*_walk(api, f"https://{_API}/v2/{kind}/{guid}/files/")]
        own = all(file.extra["provider"] == _OWN for file in files)
        for part in _components(api, node):
            own = False
            for file in _walk(api, f"https://{_API}/v2/{kind}/{part}/files/"):
                extra = {**file.extra, "component": part}
                files.append(replace(file, path=f"{part}/{file.path}", extra=extra))
        # OSF's zip contains only files of its own storage, and none of components.
        url = f"https://files.osf.io/v1/resources/{guid}/providers/{_OWN}/?zip="
        return replace(item, manifest=tuple(files), web_bundle_url=url if own and files else None)


def _project_id(resource: DatasetResource) -> str:
    """Return the id of the requested project. Raises FilesetError (platform-scope)."""
    path = json_document.path(resource.url)
    if json_document.host(resource.url) in _HOSTS:
        if _PREPRINT.fullmatch(path):
            raise ScopeError("it is a preprint", "no-dataset")
        match = _REGISTRY.fullmatch(path) or _GUID.fullmatch(path)
        if match and _FILE.fullmatch(match.groupdict().get("rest") or ""):
            raise ScopeError("it is one file of a project", "file-level")
        if match:
            return match["id"].lower()
    by_doi = _DOI.fullmatch(resource.doi or "")
    if by_doi is None:
        raise ScopeError(f"{resource.url} is not a project", "no-dataset")
    return by_doi["id"]


def _node(api: Api, guid: str) -> tuple[str, Mapping[str, Any]]:
    """Return the type of an id (nodes or registrations) and its document. Raises FilesetError."""
    answer = api.document(f"https://{_API}/v2/guids/{quote(guid)}/")
    kind = json_document.text(json_document.inner(answer, "data").get("type")) or ""
    if kind not in _KINDS:
        raise ScopeError(f"{guid} is of {kind or 'no kind'}", _OTHERS.get(kind, "no-dataset"))
    full = part_document(api, f"https://{_API}/v2/{kind}/{quote(guid)}/?{_EMBEDS}")
    node = json_document.inner(full, "data")
    if json_document.text(node.get("id")) != guid:
        raise FilesetError("platform-error", f"requested {guid}, received {node.get('id')}")
    return kind, node


def _refusal(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an item that say why its files are not given; empty if they are."""
    if about.get("withdrawn") is True:
        why = plain_text(about.get("withdrawal_justification")) or "withdrawn"
        return refusal("platform-gone", why)
    if about.get("embargoed") is True:
        until = json_document.day(about.get("embargo_end_date"))
        return refusal("platform-embargoed", "embargoed", until)
    if about.get("public") is False:
        return refusal("platform-restricted", "it is not public")
    return {}


def _components(api: Api, node: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of all public components of a project, and of theirs. Raises FilesetError."""
    waiting, seen = [node], {node.get("id")}
    while waiting:
        related = json_document.inner(
            waiting.pop(), "relationships", "children", "links", "related"
        )
        if (url := json_document.text(related.get("href"))) is None:
            continue
        for child in _entries(api, url):
            guid = json_document.name(child.get("id"), "a component")
            if guid in seen:
                raise FilesetError("platform-error", f"the component {guid} is listed twice")
            if len(seen) > _DEPTH:
                raise FilesetError("platform-error", f"it has more than {_DEPTH:,} components")
            seen.add(guid)
            if not _refusal(json_document.inner(child, "attributes")):
                waiting.append(child)
                yield quote(guid, safe="")


def _walk(api: Api, first: str) -> Iterator[FilesetManifestFile]:
    """Yield the files of all folders of all providers. Raises FilesetError."""
    waiting, seen = [first], {first}
    while waiting:
        for entry in _entries(api, waiting.pop()):
            about = json_document.inner(entry, "attributes")
            if json_document.text(about.get("kind")) == "file":
                yield _file(entry, about)
                continue
            url = json_document.text(
                json_document.inner(entry, "relationships", "files", "links", "related").get("href")
            )
            if url is None or url in seen or len(seen) > _DEPTH:
                raise FilesetError("platform-error", "a folder's link is missing or is a loop")
            seen.add(url)
            waiting.append(url)


def _entries(api: Api, url: str) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of a folder. Raises FilesetError (incomplete-manifest) if some lack."""

    def following(page: Mapping[str, Any]) -> str | None:
        return json_document.text(json_document.inner(page, "links").get("next"))

    count, total = 0, None
    joint = "&" if "?" in url else "?"
    for page in read_pages(api, f"{url}{joint}page%5Bsize%5D=100", (_API,), following):
        data = json_document.objects_of(page.get("data"), "the list of files")
        count += len(data)
        yield from data
        meta = json_document.inner(page, "links", "meta") or json_document.inner(page, "meta")
        total = json_document.size(meta.get("total"))
    if total is not None and count != total:
        raise FilesetError("incomplete-manifest", f"{count} of {total} entries are listed at {url}")


def _file(entry: Mapping[str, Any], about: Mapping[str, Any]) -> FilesetManifestFile:
    provider = json_document.text(about.get("provider")) or _OWN
    place = json_document.name(about.get("materialized_path"), "a file").removeprefix("/")
    hashes = json_document.inner(about, "extra", "hashes")
    url = json_document.web(json_document.inner(entry, "links").get("download"))
    version = json_document.text(about.get("current_version"))
    return FilesetManifestFile(
        path=place if provider == _OWN else f"{provider}/{place}",
        size=json_document.size(about.get("size")),
        md5=json_document.digest(hashes.get("md5"), "md5"),
        sha256=json_document.digest(hashes.get("sha256"), "sha256"),
        extra={"provider": provider, **({"version": version} if version else {})},
        status=None if url else "withheld",
        platform_url=url,
    )


def _describe(node: Mapping[str, Any], kind: str) -> Description:
    about = json_document.inner(node, "attributes")
    licence = json_document.inner(node, "embeds", "license", "data", "attributes")
    return Description(
        title=plain_text(about.get("title")),
        creators=people_of(
            (
                person
                for person in values_at(node, "embeds.contributors.data")
                if json_document.inner(person, "attributes").get("bibliographic") is not False
            ),
            given_at="embeds.users.data.attributes.given_name",
            family_at="embeds.users.data.attributes.family_name",
            name_at="embeds.users.data.attributes.full_name attributes.unregistered_contributor",
            orcid_at="embeds.users.data.attributes.social.orcid",
        ),
        publisher="OSF",
        published=first_at(about, "date_registered date_created", json_document.day),
        type=_CATEGORIES.get(json_document.text(about.get("category")) or "", _KINDS[kind]),
        abstract=plain_text(about.get("description")),
        subjects=json_document.texts(about.get("tags")),
        licences=licences(name=licence.get("name"), url=licence.get("url")),
        doi=first_at(node, "embeds.identifiers.data.attributes.value", json_document.doi),
    )
