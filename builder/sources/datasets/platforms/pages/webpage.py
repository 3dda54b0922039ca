"""Datasets of unknown platforms: landing pages that list their files.

FAIR Signposting lists them by links (`item`), in the page or in a set of links (`linkset`).
schema.org does so by `distribution` in JSON-LD. If a page has both, the links decide which files
there are, and the JSON-LD adds sizes and digests.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from builder.http.secrets import strip_secrets
from builder.sources.datasets.download.api import parse_document
from builder.sources.datasets.item import (
    DatasetResource,
    Description,
    FilesetManifestFile,
    FilesetPlatformItem,
    Person,
)
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import wrap_part_errors
from builder.sources.datasets.platforms.metadata import (
    licences,
    orcid,
    people_from_texts,
    relate_all,
)
from builder.sources.datasets.platforms.pages import schema_org
from builder.sources.datasets.platforms.pages.head import doi_of, names_of
from builder.sources.datasets.platforms.pages.links import (
    JSON_LINKSET,
    TEXT_LINKSET,
    WebLink,
    is_same,
    parse_header,
    parse_linkset,
)
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

NAME = "webpage"
SIGNPOSTING, LINKSET, SCHEMA_ORG = "signposting", "linkset", "schema.org"
"""The ways in which a page lists files; in `extra.listed_by` of each."""
_WAYS = {
    SIGNPOSTING: "links of the page (FAIR Signposting) list its files",
    LINKSET: "a set of links (FAIR Signposting) lists its files",
    SCHEMA_ORG: "JSON-LD of the page (schema.org) lists its files",
}
_FORMS = (JSON_LINKSET, None, TEXT_LINKSET)
"""Forms of a set of links, best first; None for an undeclared form."""
_SETS = 20
"""Most sets of links of a page."""
_LARGEST_SET = 8 << 20
"""Bytes of a set; a hundred thousand links need less."""
_TYPES = {
    "article": "Text",
    "audioobject": "Sound",
    "collection": "Collection",
    "creativework": "Other",
    "dataset": "Dataset",
    "imageobject": "Image",
    "report": "Report",
    "scholarlyarticle": "JournalArticle",
    "softwareapplication": "Software",
    "softwaresourcecode": "Software",
    "thesis": "Dissertation",
    "videoobject": "Audiovisual",
}
"""DataCite's types by schema.org's names in lower case."""


@dataclass(frozen=True, slots=True)
class _Signposts:
    """The links of a page, and the way in which they list files."""

    links: tuple[WebLink, ...]
    way: str

    def targets(self, relation: str) -> tuple[str, ...]:
        """Return the targets of a type of links, each once."""
        return tuple(dict.fromkeys(ln.target for ln in self.links if ln.relation == relation))


class Webpage:
    """A landing page that lists the files of a dataset."""

    facts = PlatformFacts(
        NAME,
        "landing page, if no other platform is known",
        "FAIR Signposting (`item`, `linkset`), else schema.org `distribution`; `extra.listed_by` "
        "says which",
    )

    def match_request(self, resource: DatasetResource) -> bool:
        """Return whether the landing page was fetched, and lists files or a set of links."""
        links = resource.html_biblio.get("links", {})
        return bool(
            links.get("item")
            or links.get("linkset")
            or any(schema_org.lists_files(node, resource.url) for node in _datasets(resource))
        )

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        """Return the dataset as its page describes it. Raises FilesetError."""
        posts = _read_signposts(resource, api)
        dataset = _choose(resource, posts)
        described = schema_org.list_files(dataset, resource.url)
        files = tuple(_items(posts, resource.url, described))
        way = posts.way
        if not files:
            files, way = described, SCHEMA_ORG
        description = _describe(resource, posts, dataset)
        # A URL without scheme, host and fragment names the page on its host.
        address = strip_secrets(resource.url.partition("#")[0])
        free = dataset.get("isAccessibleForFree")
        item = FilesetPlatformItem(
            platform_name=NAME,
            platform_domain=json_document.host(resource.url),
            platform_id=description.doi or address.partition("://")[2].partition("/")[2] or "/",
            version=description.version,
            manifest=json_document.apart(
                [replace(file, extra={"listed_by": way}) for file in files]
            ),
            web_base_url=strip_secrets(resource.url),
            detail=_WAYS[way],
            description=description,
        )
        if free is False or (json_document.text(free) or "").lower().endswith("false"):
            return item.withhold("platform-restricted", "its page says that it is not free")
        return item


def _datasets(resource: DatasetResource) -> tuple[Mapping[str, Any], ...]:
    return json_document.entries(resource.html_biblio.get("json_ld"))


def _read_signposts(resource: DatasetResource, api: Api) -> _Signposts:
    """Return the links of the page and of its sets of links. Raises FilesetError."""
    kinds = resource.html_biblio.get("link_types", {})
    page = tuple(
        WebLink(relation, target, resource.url, kinds.get(target))
        for relation, targets in resource.html_biblio.get("links", {}).items()
        for target in targets
    )
    linksets = [link for link in page if link.relation == "linkset"]
    # The same set is often there in several forms.
    by_form = ([link for link in linksets if link.media_type == form] for form in _FORMS)
    sets = next(filter(None, by_form), [])
    if len(sets) > _SETS:
        raise FilesetError("platform-error", f"the page has more than {_SETS} sets of links")
    listed = tuple(
        link
        for linkset in sets
        for link in _read_set(api, linkset.target)
        if any(is_same(link.context, url) for url in (resource.url, *resource.hops))
    )
    way = LINKSET if any(link.relation == "item" for link in listed) else SIGNPOSTING
    return _Signposts((*listed, *page), way)


def _read_set(api: Api, url: str) -> tuple[WebLink, ...]:
    """Return the links of a set. Raises FilesetError."""
    with wrap_part_errors():
        answer = api.answer(url, accept=f"{JSON_LINKSET}, {TEXT_LINKSET};q=0.9")
    if len(answer.body) > _LARGEST_SET:
        detail = f"{url}: a set of links of {len(answer.body):,} bytes"
        raise FilesetError("platform-bad-response", detail)
    if answer.media_type == TEXT_LINKSET:
        # It has the syntax of the header, with line breaks (RFC 9264, 4.1).
        return tuple(parse_header(answer.body.decode("utf-8", "replace"), answer.url))
    return tuple(parse_linkset(parse_document(answer), answer.url))


def _items(
    posts: _Signposts, page: str, described: Sequence[FilesetManifestFile]
) -> Iterator[FilesetManifestFile]:
    """Yield the files that links list. Raises FilesetError for a list of other pages."""
    kinds = {link.target: link.media_type for link in reversed(posts.links) if link.media_type}
    by_url = {file.platform_url: file for file in described}
    targets = [url for url in posts.targets("item") if not is_same(url, page)]
    if targets and all(kinds.get(url) in {"text/html", "application/xhtml+xml"} for url in targets):
        raise ScopeError("its items are pages", "collection")
    for url in targets:
        file = by_url.get(url) or FilesetManifestFile(
            path=schema_org.file_path(url), platform_url=url
        )
        yield replace(file, mimetype=kinds.get(url) or file.mimetype)


def _choose(resource: DatasetResource, posts: _Signposts) -> Mapping[str, Any]:
    """Return the description of the page's own dataset; empty if there is none.

    Raises FilesetError (platform-scope) for a catalogue: several datasets, none of them named.
    """
    datasets = _datasets(resource)
    if len(datasets) <= 1:
        return datasets[0] if datasets else {}
    own = (resource.url, *resource.hops, *posts.targets("canonical"), *posts.targets("cite-as"))
    dois = {resource.doi, *map(json_document.doi, own)} - {None}
    named = [
        dataset
        for dataset in datasets
        if doi_of(dataset) in dois
        or any(is_same(name, url) for name in names_of(dataset) for url in own)
    ]
    if named:
        return max(named, key=lambda node: len(schema_org.list_files(node, resource.url)))
    if posts.targets("item"):
        return {}
    raise ScopeError(f"the page describes {len(datasets)} datasets", "collection")


def _describe(
    resource: DatasetResource, posts: _Signposts, dataset: Mapping[str, Any]
) -> Description:
    """Return the description by JSON-LD, completed by links and by the page's other metadata."""
    own, biblio = schema_org.describe(dataset), resource.html_biblio
    metadata = relate_all((url, "HasMetadata") for url in posts.targets("describedby"))
    cited = next(filter(None, map(json_document.doi, posts.targets("cite-as"))), None)
    people = people_from_texts(biblio.get("contrib_names", ()))
    licensed = tuple(lc for url in posts.targets("license") for lc in licences(url=url))
    names = (url.rpartition("/")[2].lower() for url in posts.targets("type"))
    kind = next((_TYPES[name] for name in names if name in _TYPES), None)
    # Authors are named by their links if nothing says their names.
    authors = tuple(Person(name=url, orcid=orcid(url)) for url in posts.targets("author"))
    return replace(
        own,
        title=own.title or biblio.get("title"),
        creators=own.creators or people or authors,
        publisher=own.publisher or biblio.get("publisher") or json_document.host(resource.url),
        published=own.published or biblio.get("release_date"),
        licences=own.licences or licensed,
        doi=cited or resource.doi or own.doi,
        type=kind or (own.type if dataset else "Dataset"),
        related=tuple(dict.fromkeys((*own.related, *metadata))),
    )
