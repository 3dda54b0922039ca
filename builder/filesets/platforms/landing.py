"""Landing pages: a dataset's name, the registry that gives its page, and the page's head.

A name is a URL, a DOI or another handle, in any form. In the head of a landing page, only empty
elements and JSON-LD scripts are read. The patterns take linear time, because the page is untrusted.
"""

import codecs
import contextlib
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from builder.filesets.platforms.json_document import day, doi, inner, join_url, texts, web
from builder.filesets.platforms.pages.json_ld import read_datasets
from builder.filesets.platforms.pages.links import WebLink, is_same, media_type, parse_header
from builder.filesets.protocols import Api, FilesetError
from builder.http import url as address

DOI_RESOLVER = "https://doi.org/"
HANDLE_RESOLVER = "https://hdl.handle.net/"

_RESOLVED = re.compile(
    r"(?:https?://)?(?:www\.)?(dx\.doi\.org|doi\.org|hdl\.handle\.net)/(.+)", re.I
)
_PREFIXED = re.compile(r"(doi|hdl|info:doi/|info:hdl/)(?::\s*|(?<=/))(.+)", re.I)
_DOI = re.compile(r"10\.[0-9]{2,9}(?:\.[0-9]+)*/[^\s]+")
_HANDLE = re.compile(r"[0-9]+(?:\.[0-9A-Za-z]+)*/[^\s]+")
_VIEW = re.compile(r"#/?view/[!-~]+\Z")
"""A fragment that names the dataset, because the page is an application in the browser."""
_DATACITE = "https://api.datacite.org/dois/"
_SAFE = "/:;()"
ENDS = frozenset({"cancelled", "deadline-exceeded"})
"""Statuses caused by the run itself; they say nothing about the request."""
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
        "alternate", "author", "canonical", "cite-as", "describedby", "item", "license", "linkset",
        "type",
    )
)  # fmt: skip
"""Types of links that are kept: those of FAIR Signposting, and some that lead to the dataset."""


@dataclass(frozen=True, slots=True)
class DatasetName:
    """The name of a dataset. `url` can be requested; for a handle it is the resolver's URL.

    `handle` is a DOI or another handle as written, without a resolver's URL.
    """

    url: str
    handle: str | None = None

    @property
    def doi(self) -> str | None:
        """The DOI in lower case, or None."""
        return self.handle.lower() if self.handle and self.handle.startswith("10.") else None


def parse_name(given: str) -> DatasetName:
    """Parse the name in a request. Raises FilesetError (bad-identifier)."""
    text = given.strip()
    if text and text.isprintable():
        handle = handle_of(text)
        if handle is not None:
            resolver = DOI_RESOLVER if handle.startswith("10.") else HANDLE_RESOLVER
            return DatasetName(resolver + quote(handle, safe="/:;()~+@!$,="), handle)
        found = address.normalise(text)
        if found.id is not None and not found.spaced and found.id.startswith("http"):
            view = _VIEW.search(text)
            return DatasetName(found.id + view[0] if view else found.id)
    shown = text if len(text) <= 200 else text[:200] + "..."
    raise FilesetError("bad-identifier", f"not a URL or DOI: {shown!r}")


def handle_of(text: str) -> str | None:
    """Return the DOI or handle in a text, in its original case, or None.

    Without a prefix only DOIs are recognised, because many texts look like handles.
    """
    resolved = _RESOLVED.fullmatch(text)
    if resolved:
        path = unquote(re.split(r"[?#]", resolved[2], maxsplit=1)[0])
        doi = resolved[1].lower() != "hdl.handle.net"
        return path if (_DOI if doi else _HANDLE).fullmatch(path) else None
    prefixed = _PREFIXED.fullmatch(text)
    if prefixed:
        doi = "doi" in prefixed[1].lower()
        return prefixed[2] if (_DOI if doi else _HANDLE).fullmatch(prefixed[2]) else None
    return text if _DOI.fullmatch(text) else None


def find_target(handle: str, api: Api) -> str:
    """Return the URL that a DOI or another handle is registered for.

    The handle system is asked first, then, for a DOI, DataCite. If neither has a
    URL, raises FilesetError: an error of the API, or no-platform-match if both responded.
    """
    doi = handle.startswith("10.")
    name = quote(handle, safe=_SAFE)
    base = DOI_RESOLVER if doi else HANDLE_RESOLVER
    asked = [(f"{base}api/handles/{name}", _of_handle)]
    if doi:
        asked.append((_DATACITE + name, _of_datacite))
    failed: FilesetError | None = None
    for url, read in asked:
        try:
            found = read(api.document(url))
        except FilesetError as error:
            if error.status in ENDS:
                raise
            if error.status != "platform-404":
                failed = failed or error
        else:
            if found is not None:
                return found
    if failed is not None:
        raise FilesetError(failed.status, failed.detail, code=failed.code) from failed
    raise FilesetError("no-platform-match", f"{handle} is not registered, or has no URL")


def _of_handle(document: Any) -> str | None:
    """Return the first URL among a handle's values."""
    values = inner({"of": document}, "of").get("values")
    listed = [v for v in values if isinstance(v, dict)] if isinstance(values, list) else []
    listed.sort(key=lambda v: v["index"] if isinstance(v.get("index"), int) else 0)
    for value in listed:
        if value.get("type") == "URL" and (found := web(inner(value, "data").get("value"))):
            return found
    return None


def _of_datacite(document: Any) -> str | None:
    attributes = inner(document, "data", "attributes") or inner(document, "attributes")
    return web(attributes.get("url"))


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
    return _drop_empty(_collect(metas, described) | _links(links) | {"json_ld": described})


def _collect(metas: Mapping[str, list[str]], described: list[dict[str, Any]]) -> dict[str, Any]:
    # Several datasets are a catalogue: none of them is what the page is about.
    first: Mapping[str, Any] = described[0] if len(described) == 1 else {}
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
