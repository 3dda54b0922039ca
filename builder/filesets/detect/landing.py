"""Parser for the machine-readable metadata in the head of a landing page.

Only empty elements and JSON-LD scripts are read. The patterns take linear time, because the page is
untrusted.
"""

import codecs
import contextlib
import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from builder.filesets.metadata.json_document import day, doi, join_url, texts

_READ = 4 << 20
"""Bytes of a page that are searched."""
_TAG = re.compile(
    r"<(meta|link)\b((?:[^<>\"']|\"[^\"]{0,65536}\"|'[^']{0,65536}'){0,4096})>", re.IGNORECASE
)
_ATTRIBUTE = re.compile(r"""([a-z][\w:.-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.I)
_SCRIPT = re.compile(r"<script\b[^<>]{0,1024}application/ld\+json[^<>]{0,1024}>", re.IGNORECASE)
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_CODECS = re.compile(
    r"utf-(?:8|16|16-[bl]e)|ascii|(?:iso8859|cp|mac|koi8|kz|tis|hp)[a-z0-9_-]*"
    r"|big5(?:hkscs)?|gb(?:k|2312|18030)|hz|euc_[a-z0-9_]+|shift_jis[a-z0-9_]*|iso2022_[a-z0-9_]+"
    r"|johab"
)
"""Python's names of charsets. Its other codecs are not charsets, or take quadratic time."""
_LINKED = re.compile(r"<([^<>]{1,2048})>([^,<]{0,1024})")
_REL = re.compile(r";\s*rel\s*=\s*\"?([^\";]+)", re.IGNORECASE)

_NAMES = {
    "title": ("citation_title", "dc.title", "dcterms.title", "og:title"),
    "release_date": ("citation_publication_date", "citation_date", "dc.date", "dcterms.issued"),
    "publisher": ("citation_publisher", "dc.publisher", "og:site_name"),
    "generator": ("generator", "application-name"),
}
_DOIS = ("citation_doi", "dc.identifier", "dcterms.identifier", "doi", "prism.doi")
_PEOPLE = ("citation_author", "dc.creator", "dcterms.creator")
_LINKS = ("canonical", "cite-as", "describedby", "item", "alternate", "linkset")


def biblio(body: bytes, url: str, kind: str = "", link: str = "") -> dict[str, Any]:
    """Return a page's metadata: title, doi, contrib_names, release_date, publisher, generator.

    Also: `links`, the URLs of its `link` elements and of the header `link`, by relation, and
    `json_ld`, its schema.org descriptions. Missing values are left out. `kind` is the header
    `Content-Type`, used for its charset.
    """
    page = _strip_comments(_text(body[:_READ], kind))
    metas: dict[str, list[str]] = {}
    links: dict[str, list[str]] = {}
    for tag, attributes in _tags(page):
        if tag == "meta":
            name = (attributes.get("name") or attributes.get("property") or "").lower()
            if name and (content := attributes.get("content", "").strip()):
                metas.setdefault(name, []).append(content)
        else:
            _link(links, attributes.get("rel", ""), attributes.get("href", ""), url)
    for target, rest in _LINKED.findall(link):
        rel = _REL.search(rest)
        _link(links, rel[1] if rel else "", target, url)
    described = [found for found in _json_ld(page) if _is_dataset(found)]
    return _drop_empty(_collect(metas, described) | {"links": links, "json_ld": described})


def _collect(metas: Mapping[str, list[str]], described: list[dict[str, Any]]) -> dict[str, Any]:
    first: Mapping[str, Any] = described[0] if described else {}
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
    named += [text for key in ("@id", "identifier") for text in texts(first.get(key))]
    said["doi"] = next((found for found in map(doi, named) if found), None)
    people = next((metas[name] for name in _PEOPLE if name in metas), [])
    creators = first.get("creator") or first.get("author")
    listed = creators if isinstance(creators, list) else [creators]
    said["contrib_names"] = people or [
        one["name"] for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str)
    ]
    return said


def _drop_empty(found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if value not in (None, [], {}, "")}


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


def _link(links: dict[str, list[str]], relations: str, target: str, url: str) -> None:
    whole = join_url(url, target)
    for relation in relations.lower().split():
        if whole and relation in _LINKS and whole not in links.setdefault(relation, []):
            links[relation].append(whole)


def _json_ld(page: str) -> Iterator[dict[str, Any]]:
    at = 0
    while (found := _SCRIPT.search(page, at)) and (at := page.find("</script", found.end())) >= 0:
        try:
            document = json.loads(page[found.end() : at])
        except (ValueError, RecursionError):
            continue
        graph = document.get("@graph", document) if isinstance(document, dict) else document
        for one in graph if isinstance(graph, list) else [graph]:
            if isinstance(one, dict):
                yield one


def _is_dataset(found: Mapping[str, Any]) -> bool:
    kinds = texts(found.get("@type"))
    return any(kind.rpartition("/")[2] in ("Dataset", "SoftwareSourceCode") for kind in kinds)
