"""XML fragments of a record: the contents of metadata and about, each as a document of its own.

They are cut out of the record as written there (OAI-PMH 2.0, section 2.5). Namespaces declared on
outer elements are declared on the fragment.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from builder.harvest.errors import Broken

_TAG = re.compile(rb"<([^\s/>]+)(?:[^\"'>]|\"[^\"]*\"|'[^']*')*>")
_PLAIN = re.compile(rb"<[^\s/>:!?]+[\s/>]")
_LEVEL = 3  # of the contents of metadata and about
_DEEPEST = 200
"""Levels of elements in a record: careful parsers (libxml2) accept 256 in a page."""
_CONTAINERS = frozenset({"metadata", "about"})


@dataclass(frozen=True, slots=True)
class Fragment:
    """An element: its namespace ("" without one), its local name, and its text."""

    namespace: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Fragments:
    """The contents of a record: its metadata (may be None), and the about containers in order."""

    metadata: Fragment | None
    about: tuple[Fragment, ...]


def cut(record: str) -> Fragments:
    """Return the fragments of a record element. Raises Broken if it is not XML or too deep."""
    cutter = _Cutter(record.encode("utf-8", "replace"))
    found = cutter.cut()
    metadata = [piece for container, piece in found if container == "metadata"]
    about = tuple(piece for container, piece in found if container == "about")
    return Fragments(metadata[0] if metadata else None, about)


@dataclass(slots=True)
class _Cutter:
    data: bytes
    found: list[tuple[str, Fragment]] = field(default_factory=list)
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
            raise Broken(f"no XML: {expat.errors.messages[error.code]}") from error
        return self.found

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
            self.found.append((self._container, piece))

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
                added += b" " + name + b'="' + _attribute(uri).encode() + b'"'
        at = tag.end(1) - self._begun
        return text[:at] + added + text[at:]


def _refuse(*_: object) -> None:
    raise Broken("it declares a document type")


def _attribute(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
