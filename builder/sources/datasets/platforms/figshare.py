"""Figshare, its portals on other hosts, and 4TU.ResearchData, which has the same API.

The file list within an article may be incomplete, and the separate list comes in pages. The size of
the article shows whether all files are there.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    Related,
    total_size,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import (
    VersionRequest,
    edition,
    first_at,
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

NAME = "figshare"
_API = "https://api.figshare.com/v2"
_SITES = {"data.4tu.nl": "https://data.4tu.nl/v2"}
"""Hosts that serve Figshare's API themselves."""
_PREFIXES = {"10.6084": _API, "10.4121": "https://data.4tu.nl/v2"}
"""DOI prefixes used for Figshare's articles only, with the API's address."""
_PORTAL_NAMES = """
bridges.monash.edu data.dtu.dk data.lib.vt.edu data.ncl.ac.uk dro.deakin.edu.au drum.um.edu.mt
figshare.com figshare.scilifelab.se hammer.purdue.edu kilthub.cmu.edu opal.latrobe.edu.au
orda.shef.ac.uk ourarchive.otago.ac.nz rdr.ucl.ac.uk repository.lboro.ac.uk
research-repository.rmit.edu.au researchdata.smu.edu.sg zivahub.uct.ac.za
"""
_PORTALS = frozenset(_PORTAL_NAMES.split())
"""Hosts of portals; hosts below figshare.com need not be listed."""

TYPES = {
    **{name: name.title() for name in ("book", "dataset", "model", "preprint", "report")},
    **{name: name.title() for name in ("software", "standard", "workflow")},
    "chapter": "BookChapter",
    "composition": "Sound",
    "conference contribution": "ConferencePaper",
    "data management plan": "OutputManagementPlan",
    "figure": "Image",
    "fileset": "Dataset",
    "journal contribution": "JournalArticle",
    "media": "Audiovisual",
    "monograph": "Book",
    "online resource": "InteractiveResource",
    "performance": "Audiovisual",
    "physical object": "PhysicalObject",
    "poster": "Text",
    "presentation": "Text",
    "thesis": "Dissertation",
}
"""Figshare's types of articles, in DataCite's terms."""

_PUBLISHER = re.compile(r"[.\s]*(?P<publisher>.+?)\.\s+[A-Z][A-Za-z ]*\.\s+https?://\S+\s*")
_KINDS = "|".join(sorted(name.replace(" ", "_") for name in TYPES))
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TAIL = rf"/(?P<id>\d{{1,12}}|{_UUID})(?:(?:/versions)?/(?P<version>\d{{1,6}}))?/?"
_ARTICLE = re.compile(
    rf"(?:/ndownloader)?/(?:articles|datasets)(?:/(?:{_KINDS})/[^/]+|/[^/]+)??{_TAIL}", re.I
)
_TYPED = re.compile(rf"/articles/(?:{_KINDS})/[^/]+{_TAIL}")
_OWN = "|".join(kind for kind in _KINDS.split("|") if "_" in kind)
_CERTAIN = re.compile(rf"/articles/(?:dataset|fileset|{_OWN})/[^/]+{_TAIL}")
_GROUP = re.compile(r"/(?:collections|projects)/")
_FILE = re.compile(r"(?:/ndownloader)?/files/\d+")
_DOI = re.compile(rf"10\.\d{{4,9}}/(?:.*[./:])?(?P<id>\d{{1,12}}|{_UUID})(?:\.v(?P<version>\d+))?")
_GROUP_DOI = re.compile(r"10\.\d{4,9}/.*\.c\.\d+(?:\.v\d+)?")
_PAGE, _PAGES = 1_000, 100
"""Files in a page, and the most pages that are requested."""


class Figshare:
    """Figshare and other platforms with its API."""

    facts = PlatformFacts(
        NAME,
        "hosts, portals, DOI, 4TU.ResearchData",
        "the article's size shows whether all files are listed",
    )

    def match_request(self, resource: DatasetResource) -> bool:
        """Return whether it is Figshare: by host, by DOI, or by the form of an article's URL."""
        path = json_document.path(resource.url)
        if _is_listed(resource):
            return True
        if resource.body is None:
            return _CERTAIN.fullmatch(path) is not None
        return _TYPED.fullmatch(path) is not None and b"figshare" in resource.body.lower()

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the article as Figshare describes it. Raises FilesetError."""
        request = _parse_resource(resource)
        whole = f"{_root(resource)}/articles/{request.id}"
        where = f"{whole}/versions/{request.version}" if request.version else whole
        article = json_document.mapping(edition(api, whole, where, request.version), "the article")
        _check(article, request)
        _check_place(article, resource)
        item = _item(article, request, resource)
        if item.platform_status != "success":
            return item
        listed = _files(api, where, article)
        # Files with the same name are put into folders named by id.
        ids = [json_document.text(file.get("id")) or "" for file in listed]
        files = json_document.apart([_file(file) for file in listed], ids)
        item = replace(item, manifest=files)
        if item.withheld and all("link_only" in file.extra for file in files):
            raise FilesetError(
                "platform-scope", "its files are links to other sites", item=item, code="link-only"
            )
        return item


def _is_listed(resource: DatasetResource) -> bool:
    """Return whether its host or the prefix of its DOI is Figshare's."""
    host, prefix = json_document.host(resource.url), (resource.doi or "").split("/")[0]
    is_host = host in _SITES or host in _PORTALS or host.endswith(".figshare.com")
    return is_host or prefix in _PREFIXES


def _check_place(article: Mapping[str, Any], resource: DatasetResource) -> None:
    """Raise FilesetError (no-platform-match) for an article that is at another site than requested.

    Many sites number their articles, and each number is also an article of Figshare.
    """
    host, doi = json_document.host(resource.url), json_document.doi(article.get("doi"))
    pages = [json_document.text(article.get(name)) for name in ("url_public_html", "figshare_url")]
    named = doi is not None and (resource.doi or "").partition(".v")[0] == doi.partition(".v")[0]
    is_there = named or host in (json_document.host(page) for page in pages if page)
    if not (is_there or _is_listed(resource)):
        detail = f"article {json_document.text(article.get('id'))} of Figshare is not at {host}"
        raise FilesetError("no-platform-match", detail)


def _root(resource: DatasetResource) -> str:
    prefix = (resource.doi or "").split("/")[0]
    return _SITES.get(json_document.host(resource.url)) or _PREFIXES.get(prefix, _API)


def _parse_resource(resource: DatasetResource) -> VersionRequest:
    """Return the requested article. Raises FilesetError (platform-scope) for other pages."""
    path = json_document.path(resource.url)
    if _GROUP.match(path) or _GROUP_DOI.fullmatch(resource.doi or ""):
        raise ScopeError("it is a collection of articles", "collection")
    if _FILE.match(path):
        raise ScopeError("it is one file of an article", "file-level")
    request = VersionRequest.of(_ARTICLE.fullmatch(path), _DOI.fullmatch(resource.doi or ""))
    if request is None:
        raise ScopeError(f"{resource.url} is not an article", "no-dataset")
    return request


def _check(article: Mapping[str, Any], request: VersionRequest) -> None:
    """Raise FilesetError unless it is the requested article and version."""
    ids = {json_document.text(article.get("id")), json_document.text(article.get("uuid"))} - {None}
    if not ids:
        raise FilesetError("platform-bad-response", "the article has no id")
    if request.id not in ids:
        raise FilesetError("platform-error", f"requested article {request.id}, received {ids}")
    request.check(json_document.text(article.get("version")))
    if article.get("status") == "draft":
        raise ScopeError("it is a draft", "draft")


def _refusal(article: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an item that say why its files are not given; empty if they are."""
    if article.get("is_metadata_record") is True:
        return refusal("metadata-only", plain_text(article.get("metadata_reason")))
    if article.get("is_confidential") is True:
        return refusal("platform-restricted", plain_text(article.get("confidential_reason")))
    if article.get("is_embargoed") is True:
        reason = first_at(article, "embargo_reason embargo_title", plain_text)
        return refusal("platform-embargoed", reason, json_document.day(article.get("embargo_date")))
    if article.get("is_public") is False:
        return refusal("platform-restricted", "it is not public")
    if article.get("download_disabled") is True:
        return refusal("platform-restricted", "downloads are disabled")
    return {}


def _item(
    article: Mapping[str, Any], request: VersionRequest, resource: DatasetResource
) -> FilesetPlatformItem:
    version = json_document.text(article.get("version"))
    page = first_at(article, "url_public_html figshare_url", json_document.web)
    bundle = f"https://ndownloader.figshare.com/articles/{request.id}/versions/{version}"
    return FilesetPlatformItem(
        platform_name=NAME,
        platform_domain=json_document.host(page or resource.url),
        platform_id=request.id,
        version=version,
        web_base_url=page or resource.url,
        web_bundle_url=bundle if version and _root(resource) == _API else None,
        description=_describe(article, version),
        **_refusal(article),
    )


def _files(api: Api, where: str, article: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return an article's files. Raises FilesetError (incomplete-manifest) if some are missing."""
    if article.get("files") is not None:
        files = json_document.objects_of(article["files"], "the list of files")
        if _complete(article, files):
            return files
    listed: list[Mapping[str, Any]] = []
    for page in range(1, _PAGES + 1):
        url = f"{where}/files?page={page}&page_size={_PAGE}"
        more = json_document.objects_of(part_document(api, url), "the list of files")
        listed += more
        if len(more) < _PAGE:
            break
    if not _complete(article, listed):
        raise FilesetError(
            "incomplete-manifest",
            f"{len(listed)} files with {_total(listed)} bytes are listed, but the article has "
            f"{json_document.size(article.get('size'))} bytes",
        )
    return listed


def _total(files: Sequence[Mapping[str, Any]]) -> int | None:
    return total_size(json_document.size(file.get("size")) for file in files)


def _complete(article: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the files' sizes add up to the article's, as far as known."""
    total, listed = json_document.size(article.get("size")), _total(files)
    return total is None or listed is None or listed == total


def _file(file: Mapping[str, Any]) -> FilesetManifestFile:
    """Return a file. Its MD5 is the platform's own, or else the one supplied by the depositor."""
    computed = json_document.digest(file.get("computed_md5"), "md5")
    supplied = json_document.digest(file.get("supplied_md5"), "md5")
    link, url = file.get("is_link_only") is True, json_document.web(file.get("download_url"))
    extra: dict[str, Any] = {"id": file["id"]} if json_document.text(file.get("id")) else {}
    if computed or supplied:
        extra["md5_from"] = "computed_md5" if computed else "supplied_md5"
    return FilesetManifestFile(
        path=json_document.name(file.get("name"), "a file"),
        size=None if link else json_document.size(file.get("size")),
        md5=computed or supplied,
        mimetype=json_document.text(file.get("mimetype")),
        extra={**extra, "link_only": True} if link else extra,
        status="withheld" if link or url is None else None,
        platform_url=url,
    )


def _describe(article: Mapping[str, Any], version: str | None) -> Description:
    licence = json_document.inner(article, "license")
    kind = json_document.text(article.get("defined_type_name")) or "dataset"
    title, citation = plain_text(article.get("title")), plain_text(article.get("citation")) or ""
    # No field has the publisher; in the citation it stands after the title.
    cited = _PUBLISHER.fullmatch(citation.partition(title)[2]) if title else None
    return Description(
        title=title,
        creators=people_of(
            values_at(article, "authors"),
            given_at="first_name",
            family_at="last_name",
            name_at="full_name",
            orcid_at="orcid_id",
        ),
        publisher=cited["publisher"] if cited else "figshare",
        published=first_at(article, "published_date timeline.posted", json_document.day),
        type=TYPES.get(kind.lower().replace("_", " "), "Other"),
        abstract=plain_text(article.get("description")),
        subjects=texts_at(article, "tags keywords categories.title", plain_text),
        licences=licences(name=licence.get("name"), url=licence.get("url")),
        version=version,
        doi=json_document.doi(article.get("doi")),
        related=_relate_works(article),
    )


def _relate_works(article: Mapping[str, Any]) -> tuple[Related, ...]:
    works: list[tuple[object, object]] = [
        (reference, "References") for reference in values_at(article, "references")
    ]
    works += [
        (material.get("identifier") or material.get("link"), material.get("relation"))
        for material in json_document.entries(article.get("related_materials"))
    ]
    paper = (article.get("resource_doi"), "IsSupplementTo")
    own = json_document.doi(article.get("doi"))
    return relate_all([paper, *works] if json_document.doi(paper[0]) != own else works)
