"""Fragments of a record: contents of metadata and about, and the origins in provenance.

Each fragment is a document of its own. It is cut out of the record as written there (OAI-PMH 2.0,
section 2.5). Namespaces declared on outer elements are declared on the fragment.

An origin says where the record was harvested (guidelines for provenance). A provenance container
describes the last repository, and nested in it the one before, and so on.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from builder.sources.harvest.errors import Broken
from functions.snapshot.instant import from_datestamp

_TAG = re.compile(rb"<([^\s/>]+)(?:[^\"'>]|\"[^\"]*\"|'[^']*')*>")
_PLAIN = re.compile(rb"<[^\s/>:!?]+[\s/>]")
_LEVEL = 3  # of the contents of metadata and about
_DEEPEST = 200
"""Levels of elements in a record: careful parsers (libxml2) accept 256 in a page."""
_CONTAINERS = frozenset({"metadata", "about"})
NAMESPACE = "http://www.openarchives.org/OAI/2.0/provenance"
_ORIGIN = f"{NAMESPACE} originDescription"
_FIELDS = {
    f"{NAMESPACE} baseURL": "base_url",
    f"{NAMESPACE} identifier": "identifier",
    f"{NAMESPACE} datestamp": "datestamp",
    f"{NAMESPACE} metadataNamespace": "namespace",
}
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?:[!#$&-;=?-\[\]_a-z~]|%[0-9A-Fa-f]{2})+")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_MOST_ORIGINS = 50


@dataclass(frozen=True, slots=True)
class Fragment:
    """An element: its namespace ("" without one), its local name, and its text."""

    namespace: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Fragments:
    """The contents of a record: its metadata (may be None), and the about containers in order.

    `more` counts further elements of metadata, which OAI-PMH does not allow.
    """

    metadata: Fragment | None
    about: tuple[Fragment, ...]
    more: int = 0


def cut_fragments(record: str) -> Fragments:
    """Return the fragments of a record element. Raises Broken if it is not XML or too deep."""
    cutter = _Cutter(record.encode("utf-8", "replace"))
    pieces = cutter.cut()
    metadata = [piece for container, piece in pieces if container == "metadata"]
    about = tuple(piece for container, piece in pieces if container == "about")
    return Fragments(metadata[0] if metadata else None, about, len(metadata[1:]))


@dataclass(slots=True)
class _Cutter:
    data: bytes
    pieces: list[tuple[str, Fragment]] = field(default_factory=list)
    _scopes: list[dict[str, str]] = field(default_factory=lambda: [{}])
    _container: str = ""
    _begun: int = 0
    _parser: expat.XMLParserType = field(init=False)

    def cut(self) -> list[tuple[str, Fragment]]:
        parser = self._parser = expat.ParserCreate("UTF-8")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = _refuse
        try:
            parser.Parse(self.data, True)
        except expat.ExpatError as error:
            raise Broken(f"not XML: {expat.errors.messages[error.code]}") from error
        return self.pieces

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        if len(self._scopes) > _DEEPEST:
            raise Broken(f"elements are nested more than {_DEEPEST} deep")
        if len(self._scopes) == _LEVEL - 1:
            self._container = name.rpartition(":")[2]
        if len(self._scopes) <= _LEVEL:
            self._begun = self._parser.CurrentByteIndex
        own = {
            key.partition(":")[2]: uri
            for key, uri in attributes.items()
            if key == "xmlns" or key.startswith("xmlns:")
        }
        scope = self._scopes[-1]
        self._scopes.append({**scope, **own} if own else scope)

    def _end(self, name: str) -> None:
        scope = self._scopes.pop()
        if len(self._scopes) == _LEVEL and self._container in _CONTAINERS:
            prefix, _, local = name.rpartition(":")
            piece = Fragment(scope.get(prefix, ""), local, self._text().decode())
            self.pieces.append((self._container, piece))

    def _text(self) -> bytes:
        """Return the element that ends here, with the namespaces of the elements around it."""
        tag = _TAG.match(self.data, self._begun)
        assert tag is not None  # it was parsed as a tag
        end = tag.end()
        if not tag[0].endswith(b"/>"):
            end = self.data.index(b">", self._parser.CurrentByteIndex) + 1
        text = self.data[self._begun : end]
        added = b""
        # An element without a namespace would take the default namespace of its new parent.
        for prefix, uri in {"": "", **self._scopes[-1]}.items():
            name = b"xmlns:" + prefix.encode() if prefix else b"xmlns"
            needed = prefix.encode() + b":" in text if prefix else _PLAIN.search(text)
            if needed and not re.search(rb"\s" + re.escape(name) + rb"\s*=", tag[0]):
                value = uri.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
                added += b" " + name + b'="' + value.encode() + b'"'
        at = tag.end(1) - self._begun
        return text[:at] + added + text[at:]


def _refuse(*_: object) -> None:
    raise Broken("it declares a document type")


@dataclass(frozen=True, slots=True)
class HarvestOrigin:
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
    reader = _ProvenanceReader()
    parser = expat.ParserCreate("UTF-8", " ")
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.take
    parser.Parse(piece.text.encode(), True)  # fragments were parsed before
    chain: list[HarvestOrigin] = []
    for values in reader.descriptions[:_MOST_ORIGINS]:
        if (origin := _origin(values)) is None:
            break
        chain.append(origin)
    return tuple(chain)


@dataclass(slots=True)
class _ProvenanceReader:
    """Parser of nested descriptions; it reads the first one at each level."""

    descriptions: list[dict[str, str]] = field(default_factory=list)
    _depth: int = 0
    _open: int = 0
    _field: str = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if name == _ORIGIN and self._depth == len(self.descriptions) + 2 == self._open + 2:
            self.descriptions.append(dict(attributes))
            self._open += 1
        inner = self._depth == self._open + 2 and self._open == len(self.descriptions)
        self._field = _FIELDS.get(name, "") if inner else ""

    def end(self, name: str) -> None:
        if name == _ORIGIN and self._depth == self._open + 1:
            self._open -= 1
        self._depth -= 1
        self._field = ""

    def take(self, text: str) -> None:
        if self._field:
            values = self.descriptions[-1]
            values[self._field] = values.get(self._field, "") + text


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
    """Return whether a text is an absolute URI of ASCII (RFC 3986, simplified)."""
    return _URI.fullmatch(text) is not None
