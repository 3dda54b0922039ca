"""The head of a landing page: its metadata, links and JSON-LD.

Only empty elements and JSON-LD scripts are read. The patterns take linear time, because the page is
untrusted.
"""

import codecs
import contextlib
import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from builder.filesets.platforms.json_document import day, doi, join_url, texts
from builder.filesets.platforms.pages.json_ld import read_datasets
from builder.filesets.platforms.pages.links import WebLink, is_same, media_type, parse_header

_READ = 4 << 20
"""Bytes of a page that are searched."""
_TAG = re.compile(
    r"<(meta|link)\b((?:[^<>\"']|\"[^\"]{0,65536}\"|'[^']{0,65536}'){0,4096})>", re.IGNORECASE
)
_ATTRIBUTE = re.compile(r"""([a-z][\w:.-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.I)
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_CODECS = re.compile(
    r"utf-(?:8|16|16-[bl]e)|ascii|(?:iso8859|cp|mac|koi8|kz|tis|hp)[a-z0-9_-]*"
    r"|big5(?:hkscs)?|gb(?:k|2312|18030)|hz|euc_[a-z0-9_]+|shift_jis[a-z0-9_]*|iso2022_[a-z0-9_]+"
    r"|johab"
)
"""Python's names of charsets. Its other codecs are not charsets, or take quadratic time."""

_NAMES = {
    "title": ("citation_title", "dc.title", "dcterms.title", "og:title"),
    "release_date": ("citation_publication_date", "citation_date", "dc.date", "dcterms.issued"),
    "publisher": ("citation_publisher", "dc.publisher", "og:site_name"),
    "generator": ("generator", "application-name"),
}
_DOIS = ("citation_doi", "dc.identifier", "dcterms.identifier", "doi", "prism.doi")
_PEOPLE = ("citation_author", "dc.creator", "dcterms.creator")
_LINKS = frozenset(
    (
        "alternate",
        "author",
        "canonical",
        "cite-as",
        "describedby",
        "item",
        "license",
        "linkset",
        "type",
    )
)
"""Types of links that are kept: those of FAIR Signposting, and some that lead to the dataset."""


def read_biblio(body: bytes, url: str, kind: str = "", link: str = "") -> dict[str, Any]:
    """Return a page's metadata: title, doi, contrib_names, release_date, publisher, generator.

    Also: `links`, the URLs of its `link` elements and of the header `link`, by relation;
    `link_types`, the media types that they declare, by URL; and `json_ld`, its schema.org
    descriptions. Missing values are left out. `kind` is the header `Content-Type`, used for its
    charset.
    """
    page = _strip_comments(_text(body[:_READ], kind))
    metas: dict[str, list[str]] = {}
    links: list[WebLink] = []
    for tag, attributes in _tags(page):
        if tag == "meta":
            name = (attributes.get("name") or attributes.get("property") or "").lower()
            if name and (content := attributes.get("content", "").strip()):
                metas.setdefault(name, []).append(content)
        else:
            links += _element_links(attributes, url)
    links += [one for one in parse_header(link, url) if is_same(one.context, url)]
    described = read_datasets(page)
    found = _collect(metas, described) | _links(links) | {"json_ld": described}
    return {key: value for key, value in found.items() if value not in (None, [], {}, "")}


def _collect(metas: Mapping[str, list[str]], described: list[dict[str, Any]]) -> dict[str, Any]:
    # Several datasets are a catalogue, unless they have the same DOI.
    dois = {_doi_of(one) for one in described}
    alone = len(described) == 1 or (len(dois) == 1 and None not in dois)
    first: Mapping[str, Any] = described[0] if alone else {}
    said: dict[str, Any] = {
        key: next((metas[name][0] for name in names if name in metas), None)
        for key, names in _NAMES.items()
    }
    said["release_date"] = day((said["release_date"] or "").replace("/", "-")) or day(
        first.get("datePublished")
    )
    if said["title"] is None and isinstance(first.get("name"), str):
        said["title"] = first["name"]
    named = [text for name in _DOIS for text in metas.get(name, ())]
    said["doi"] = next((found for found in map(doi, named) if found), None) or _doi_of(first)
    people = next((metas[name] for name in _PEOPLE if name in metas), [])
    creators = first.get("creator") or first.get("author")
    listed = creators if isinstance(creators, list) else [creators]
    said["contrib_names"] = people or [
        one["name"] for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str)
    ]
    return said


def _doi_of(described: Mapping[str, Any]) -> str | None:
    named = [text for key in ("@id", "identifier") for text in texts(described.get(key))]
    return next((found for found in map(doi, named) if found), None)


def _text(body: bytes, kind: str) -> str:
    for said in (kind.encode("ascii", "replace"), body[:2048]):
        if declared := _CHARSET.search(said):
            with contextlib.suppress(LookupError):
                codec = codecs.lookup(declared[1].decode("ascii")).name
                if _CODECS.fullmatch(codec):
                    return body.decode(codec, "replace")
    return body.decode("utf-8", "replace")


def _strip_comments(page: str) -> str:
    """Return a page without comments; an unclosed comment hides the rest, as in browsers."""
    shown = []
    at = 0
    while (start := page.find("<!--", at)) >= 0:
        shown.append(page[at:start])
        end = page.find("-->", start + 4)
        if end < 0:
            return "".join(shown)
        at = end + 3
    return "".join([*shown, page[at:]])


def _tags(page: str) -> Iterator[tuple[str, dict[str, str]]]:
    for found in _TAG.finditer(page):
        attributes: dict[str, str] = {}
        for name, double, single, bare in _ATTRIBUTE.findall(found[2]):
            attributes.setdefault(name.lower(), html.unescape(double or single or bare))
        yield found[1].lower(), attributes


def _element_links(attributes: Mapping[str, str], url: str) -> Iterator[WebLink]:
    whole = join_url(url, attributes.get("href", ""))
    for relation in attributes.get("rel", "").lower().split() if whole else ():
        yield WebLink(relation, whole or "", url, media_type(attributes.get("type")))


def _links(links: list[WebLink]) -> dict[str, Any]:
    """Return the targets of links by relation, and the media types of targets."""
    targets: dict[str, dict[str, None]] = {}
    kinds: dict[str, str] = {}
    for one in links:
        if one.relation in _LINKS:
            targets.setdefault(one.relation, {})[one.target] = None
            if one.media_type:
                kinds.setdefault(one.target, one.media_type)
    return {"links": {name: list(urls) for name, urls in targets.items()}, "link_types": kinds}
