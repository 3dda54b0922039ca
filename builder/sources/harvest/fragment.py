"""Fragments of a record: contents of metadata and about, and the origins in provenance.

Each fragment is a document of its own. It is cut out of the record as written there (OAI-PMH 2.0,
section 2.5). Namespaces declared on outer elements are declared on the fragment.

An origin says where the record was harvested (guidelines for provenance). A provenance container
describes the last repository, and nested in it the one before, and so on.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree
from xml.parsers import expat

from builder.sources.harvest.errors import Broken
from builder.sources.harvest.page import spans
from functions.snapshot import oai_name
from functions.snapshot.instant import from_datestamp

_MARKUP = re.compile(
    rb"<(?:(?P<end>/)|!--.*?-->|!\[CDATA\[.*?\]\]>|\?.*?\?>"
    rb"|(?P<name>[^\s/>!?]++)(?:[^\"'>]++|\"[^\"]*\"|'[^']*')*+>)",
    re.DOTALL,
)
_UNPREFIXED = re.compile(rb"<[^\s/>:!?]++[\s/>]")
_DEEPEST = 200
"""Levels of elements in a record: careful parsers (libxml2) accept 256 in a page."""
NAMESPACE = "http://www.openarchives.org/OAI/2.0/provenance"
_ORIGIN = f"{{{NAMESPACE}}}originDescription"
_FIELDS = {
    f"{{{NAMESPACE}}}baseURL": "base_url",
    f"{{{NAMESPACE}}}identifier": "identifier",
    f"{{{NAMESPACE}}}datestamp": "datestamp",
    f"{{{NAMESPACE}}}metadataNamespace": "namespace",
}
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?:[!#$&-;=?-\[\]_a-z~]++|%[0-9A-Fa-f]{2})+")
_SAFE = "!#$&'()*+,/:;=?@[]~", "!$&'()*+,/:;=?@~"
"""Characters that stay in a URI: at first all, then without those that have a place of their own.
"""
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_MOST_ORIGINS = 50


class Fragment(NamedTuple):
    """An element: its namespace ("" without one), its local name, and its text."""

    namespace: str
    name: str
    text: str


class Fragments(NamedTuple):
    """The contents of a record: its metadata (may be None), and the about containers in order.

    `more` counts further elements of metadata, which OAI-PMH does not allow.
    """

    metadata: Fragment | None
    about: tuple[Fragment, ...]
    more: int = 0


class Place(NamedTuple):
    """The local name and the namespace of an element, and the namespaces declared around it alone.

    Each of these has the bytes by which it is used, none without a prefix, and its declaration.
    Declarations belong at the offset `at`.
    """

    name: str
    namespace: str
    declarations: tuple[tuple[bytes, bytes], ...]
    at: int

    def cut(self, text: bytes) -> Fragment:
        """Return the element with that text, with the namespaces around it that it uses."""
        added = [
            declaration
            for use, declaration in self.declarations
            if (use in text if use else _UNPREFIXED.search(text))
        ]
        whole = b"".join((text[: self.at], *added, text[self.at :]))
        return Fragment(self.namespace, self.name, whole.decode())


def cut_fragments(record: str) -> Fragments:
    """Return the fragments of a record element. Raises Broken if it is not XML or too deep."""
    data = record.encode("utf-8", "replace")
    _check(data)
    root = next(mark for mark in _MARKUP.finditer(data) if mark["name"])
    pieces: dict[bytes, list[Fragment]] = {b"metadata": [], b"about": []}
    for container, _ in _list_elements(data, root):
        within = pieces.get(container["name"].rpartition(b":")[2])
        if within is not None:
            for element, end in _list_elements(data, container):
                place = read_place(root[0], container[0], *element.group(0, "name"))
                within.append(place.cut(data[element.start() : end]))
    first, *more = pieces[b"metadata"] or (None,)
    return Fragments(first, tuple(pieces[b"about"]), len(more))


def _check(data: bytes) -> None:
    """Raise Broken if a record is not XML, or too deep."""

    def refuse(*_: object) -> None:
        raise Broken("it declares a document type")

    parser, depth = expat.ParserCreate("UTF-8"), 0
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise Broken(f"not XML: {expat.errors.messages[error.code]}") from error
    for mark in _MARKUP.finditer(data) if data.count(b"</") >= _DEEPEST else ():
        depth += bool(mark["name"]) - bool(mark["end"])
        if depth > _DEEPEST:
            raise Broken(f"elements are nested more than {_DEEPEST} deep")
        depth -= bool(mark["name"]) and mark[0].endswith(b"/>")


def _list_elements(data: bytes, outer: re.Match[bytes]) -> Iterator[tuple[re.Match[bytes], int]]:
    """Yield the tags of the elements in an element of well-formed XML, and their ends."""
    at = outer.end()
    while not outer[0].endswith(b"/>"):
        mark = _MARKUP.search(data, at)
        if mark is None or mark["end"]:
            return
        at = mark.end()
        if mark["name"]:
            _, at = next(spans(data, re.escape(mark["name"]), mark.start()))
            yield mark, at


@lru_cache(maxsize=256)
def read_place(root: bytes, container: bytes, tag: bytes, name: bytes) -> Place:
    """Return the place of an element by the tags of its record and container, and its own."""
    outer, own = _namespaces(root) | _namespaces(container), _namespaces(tag)
    declarations = []
    # An element without a namespace would take the default namespace of its new parent.
    for prefix, uri in ({"": ""} | outer).items():
        if prefix not in own:
            value = uri.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
            use, declared = (f"{prefix}:", f"xmlns:{prefix}") if prefix else ("", "xmlns")
            declarations.append((use.encode(), f' {declared}="{value}"'.encode()))
    prefix, _, local = name.decode().rpartition(":")
    return Place(local, (outer | own).get(prefix, ""), tuple(declarations), len(name) + 1)


def _namespaces(tag: bytes) -> dict[str, str]:
    """Return the namespaces that a tag declares, by prefix."""
    attributes: dict[str, str] = {}
    parser = expat.ParserCreate("UTF-8")
    parser.StartElementHandler = lambda _, declared: attributes.update(declared)
    parser.Parse(tag.removesuffix(b"/>").removesuffix(b">") + b"/>", True)
    names = {key: key.partition(":")[2] for key in attributes if re.match("xmlns(:|$)", key)}
    return {prefix: attributes[key] for key, prefix in names.items()}


class HarvestOrigin(NamedTuple):
    """Where and when a record was harvested; `altered` says whether it was changed since.

    `harvested` and `datestamp` are days or seconds of UTC.
    """

    harvested: str
    altered: bool
    base_url: str
    identifier: str
    datestamp: str
    namespace: str


def is_provenance(piece: Fragment) -> bool:
    """Return whether the content of an about container is a provenance."""
    return (piece.namespace, piece.name) == (NAMESPACE, "provenance")


def origins(piece: Fragment) -> tuple[HarvestOrigin, ...]:
    """Return the origins in a provenance container, the last first, up to the first fault."""
    chain: list[HarvestOrigin] = []
    outer = ElementTree.fromstring(piece.text)  # it was parsed before
    while len(chain) < _MOST_ORIGINS and (element := outer.find(_ORIGIN)) is not None:
        values = dict(element.attrib)
        for child in takewhile(lambda child: child.tag != _ORIGIN, element):
            if name := _FIELDS.get(child.tag):
                values[name] = values.get(name, "") + (child.text or "")
        if (origin := _origin(values)) is None:
            break
        chain.append(origin)
        outer = element
    return tuple(chain)


def _origin(values: Mapping[str, str]) -> HarvestOrigin | None:
    """Return the origin with these values; None if one is missing or invalid."""
    texts = {name: text.strip() for name, text in values.items()}
    harvested, altered = texts.get("harvestDate", ""), _BOOLEANS.get(texts.get("altered", ""))
    base_url, identifier = texts.get("base_url", ""), texts.get("identifier", "")
    datestamp, namespace = texts.get("datestamp", ""), texts.get("namespace", "")
    dated = from_datestamp(harvested) is not None and from_datestamp(datestamp) is not None
    if altered is None or not dated or not all(map(is_uri, (base_url, identifier, namespace))):
        return None
    return HarvestOrigin(harvested, altered, base_url, identifier, datestamp, namespace)


def is_uri(text: str) -> bool:
    """Return whether a text is an absolute URI of ASCII (RFC 3986), valid for the schema."""
    return _URI.fullmatch(text) is not None and oai_name.is_uri(text)


def to_uri(text: str) -> str:
    """Return a URI for a text: itself if it is one, else with as few escapes as are needed."""
    parts = (text if is_uri(text) else "", *(quote(text, safe=safe) for safe in _SAFE))
    return next(filter(oai_name.is_uri, parts), "none")
