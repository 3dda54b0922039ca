"""The head of a landing page: metadata, links, and the schema.org descriptions in its JSON-LD.

Only empty elements and JSON-LD scripts are read. The patterns take linear time, because the page is
untrusted. Scripts are repaired where the fault is common, and skipped where it is not. Nothing is
fetched, so contexts are not resolved: a name counts whatever its prefix.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from builder.sources.datasets.platforms.json_document import (
    day,
    doi,
    host,
    join_url,
    texts,
    values_at,
)
from builder.sources.datasets.platforms.metadata import texts_at
from builder.sources.datasets.platforms.pages.links import (
    WebLink,
    is_same,
    media_type,
    parse_header,
)

_SCRIPT = re.compile(r"<script\b[^<>]{0,1024}application/ld\+json[^<>]{0,1024}>", re.IGNORECASE)
_OPENED = re.compile(r"<!--|(?://|/\*)?\s{0,16}<!\[CDATA\[\s{0,16}(?:\*/)?")
_CLOSED = ("*/", "]]>", "//", "/*", "-->", ";")
"""Ends of wrapped scripts; several may follow one another."""
_COMMA = re.compile(r",(\s{0,256}[}\]])")
_PREFIX = re.compile(r"[/:#]")
_INTO = ("@graph", "mainEntity", "about", "dataset", "itemListElement", "item")
"""Properties of a page, a catalogue or a list that lead to the datasets that it describes."""
_REFERRED = ("author", "creator", "distribution", "license", "publisher")
"""Properties whose values may stand elsewhere in the graph."""
_DEPTH = 8
_DATASETS = 1_000
"""Most datasets of a page."""


def read_datasets(page: str) -> list[dict[str, Any]]:
    """Return the datasets that a page describes, each once, in order.

    References to other nodes of the page are replaced by these nodes.
    """
    documents = list(_read_scripts(page))
    nodes = _Nodes()
    for document in documents:
        nodes.add(document, 0)
    datasets: list[dict[str, Any]] = []
    for document in documents:
        for node in _find(document, 0):
            if len(datasets) < _DATASETS and (dataset := _embed(node, nodes)) not in datasets:
                datasets.append(dataset)
    return datasets


@dataclass(slots=True)
class _Nodes:
    """The nodes of a page by id, and the characters that references may still be replaced by.

    A node may be referred to often, so a small page could become a huge description.
    """

    by_id: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    room: int = 4 << 20

    def add(self, value: Any, depth: int) -> None:
        """Add all nodes with an id and other properties."""
        if depth > _DEPTH:
            return
        if isinstance(value, list):
            for member in value:
                self.add(member, depth + 1)
        elif isinstance(value, Mapping):
            name = value.get("@id")
            if isinstance(name, str) and len(value) > 1:
                self.by_id.setdefault(name, value)
            for member in value.values():
                self.add(member, depth + 1)

    def resolve(self, reference: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the node of a reference; the reference itself if there is none, or no room."""
        name = str(reference["@id"])
        node = self.by_id.get(name)
        if node is None:
            return reference
        if name not in self.sizes:
            self.sizes[name] = len(json.dumps(node))
        if self.sizes[name] > self.room:
            return reference
        self.room -= self.sizes[name]
        return node


def is_of(node: Mapping[str, Any], kinds: frozenset[str]) -> bool:
    """Return whether a node has one of the types."""
    return any(_PREFIX.split(kind)[-1] in kinds for kind in texts(node.get("@type")))


def _read_scripts(page: str) -> Iterator[Any]:
    at = 0
    while (tag := _SCRIPT.search(page, at)) and (at := page.find("</script", tag.end())) >= 0:
        written = page[tag.end() : at]
        # The repaired script lacks the marks of a comment or of CDATA around it.
        bare = written.strip()
        if opened := _OPENED.match(bare):
            bare = bare[opened.end() :]
        for closed in (*_CLOSED, *_CLOSED):
            bare = bare.removesuffix(closed).rstrip()
        # The second of the same texts is left out.
        for repaired in dict.fromkeys((written, _COMMA.sub(r"\1", bare))):
            try:
                # Raw line breaks in texts are common, and no danger.
                yield json.loads(repaired, strict=False)
                break
            except (ValueError, RecursionError):
                continue


def _find(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        for member in value:
            yield from _find(member, depth + 1)
    elif isinstance(value, Mapping):
        if is_of(value, frozenset({"Dataset", "SoftwareSourceCode"})):
            yield value
            return
        for name in _INTO:
            yield from _find(value.get(name), depth + 1)


def _embed(dataset: Mapping[str, Any], nodes: _Nodes) -> dict[str, Any]:
    def node_of(value: Any) -> Any:
        if isinstance(value, list):
            return [node_of(member) for member in value]
        alone = isinstance(value, Mapping) and value.keys() == {"@id"}
        return nodes.resolve(value) if alone else value

    return {name: node_of(value) if name in _REFERRED else value for name, value in dataset.items()}


_READ = 4 << 20
"""Bytes of a page that are searched."""
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
"""A comment; an unclosed one hides the rest, as in browsers."""
_TAG = re.compile(
    r"<(meta|link)\b((?:[^<>\"']|\"[^\"]{0,65536}\"|'[^']{0,65536}'){0,4096})>", re.IGNORECASE
)
_ATTRIBUTE = re.compile(r"""([a-z][\w:.-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.I)

_NAMES = {
    "title": ("citation_title", "dc.title", "dcterms.title", "og:title"),
    "release_date": ("citation_publication_date", "citation_date", "dc.date", "dcterms.issued"),
    "publisher": ("citation_publisher", "dc.publisher", "og:site_name"),
    "generator": ("generator", "application-name"),
}
_DOIS = ("citation_doi", "dc.identifier", "dcterms.identifier", "doi", "prism.doi")
_PEOPLE = ("citation_author", "dc.creator", "dcterms.creator")
_LINK_TYPES = """
alternate author canonical cite-as describedby item license linkset type
"""
_LINKS = frozenset(_LINK_TYPES.split())
"""Types of links that are kept: those of FAIR Signposting, and some that lead to the dataset."""


def read_biblio(body: bytes, url: str, kind: str = "", link: str = "") -> dict[str, Any]:
    """Return a page's metadata: title, doi, contrib_names, release_date, publisher, generator.

    Also: `links`, the URLs of its `link` elements and of the header `link`, by relation;
    `link_types`, the media types that they declare, by URL; and `json_ld`, its schema.org
    descriptions. Missing values are left out. `kind` is the header `Content-Type`, used for its
    charset.
    """
    page = _COMMENT.sub("", _decode(body[:_READ], kind, host(url)))
    metas: dict[str, list[str]] = {}
    links: list[WebLink] = []
    for element in _TAG.finditer(page):
        # Of an attribute that is repeated, the first counts.
        attributes = {
            name.lower(): html.unescape(double or single or bare)
            for name, double, single, bare in reversed(_ATTRIBUTE.findall(element[2]))
        }
        if element[1].lower() == "meta":
            name = (attributes.get("name") or attributes.get("property") or "").lower()
            if name and (content := attributes.get("content", "").strip()):
                metas.setdefault(name, []).append(content)
        else:
            target = join_url(url, attributes.get("href", ""))
            relations = attributes.get("rel", "").lower().split() if target else ()
            declared = media_type(attributes.get("type"))
            links += [WebLink(relation, target or "", url, declared) for relation in relations]
    links += [field for field in parse_header(link, url) if is_same(field.context, url)]
    datasets = read_datasets(page)
    biblio = _collect(metas, datasets) | _links(links) | {"json_ld": datasets}
    return {key: value for key, value in biblio.items() if value not in (None, [], {}, "")}


def _decode(head: bytes, kind: str, site: str) -> str:
    # Commands begin without these, and with few files of their own.
    from functions.archive.charset import decoder, detect_bom, html_charset, whatwg_name
    from functions.archive.message import charset_of

    declared = whatwg_name(charset_of(kind.encode("latin-1", "replace")))
    charset = detect_bom(head) or declared or html_charset(head, site).name
    return decoder(charset).decode(head)


def _collect(metas: Mapping[str, list[str]], datasets: list[dict[str, Any]]) -> dict[str, Any]:
    # Several datasets are a catalogue, unless they have the same DOI.
    dois = {doi_of(dataset) for dataset in datasets}
    alone = len(datasets) == 1 or (len(dois) == 1 and None not in dois)
    first: Mapping[str, Any] = datasets[0] if alone else {}
    biblio: dict[str, Any] = {
        key: next((metas[name][0] for name in names if name in metas), None)
        for key, names in _NAMES.items()
    }
    biblio["release_date"] = day((biblio["release_date"] or "").replace("/", "-")) or day(
        first.get("datePublished")
    )
    if biblio["title"] is None and isinstance(first.get("name"), str):
        biblio["title"] = first["name"]
    named = [text for name in _DOIS for text in metas.get(name, ())]
    biblio["doi"] = next(filter(None, map(doi, named)), None) or doi_of(first)
    people = next((metas[name] for name in _PEOPLE if name in metas), [])
    names = values_at(first, "creator.name" if first.get("creator") else "author.name")
    biblio["contrib_names"] = people or [name for name in names if isinstance(name, str)]
    return biblio


def names_of(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the identifiers and URLs by which a dataset or a person names itself."""
    return texts_at(
        node, "@id url url.@id identifier identifier.value identifier.url identifier.@id"
    )


def doi_of(dataset: Mapping[str, Any]) -> str | None:
    """Return the dataset's DOI, or None."""
    return next(filter(None, map(doi, names_of(dataset))), None)


def _links(links: list[WebLink]) -> dict[str, Any]:
    """Return the targets of links by relation, and the media types of targets."""
    targets: dict[str, dict[str, None]] = {}
    kinds: dict[str, str] = {}
    for link in links:
        if link.relation in _LINKS:
            targets.setdefault(link.relation, {})[link.target] = None
            if link.media_type:
                kinds.setdefault(link.target, link.media_type)
    return {"links": {name: list(urls) for name, urls in targets.items()}, "link_types": kinds}
