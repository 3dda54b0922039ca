"""Origin of a record: where it was harvested, as its provenance says (guidelines for provenance).

A provenance container describes the last repository, and nested in it the one before, and so on.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from builder.harvest.fragment import Fragment
from builder.harvest.window import moment

NAMESPACE = "http://www.openarchives.org/OAI/2.0/provenance"
_ORIGIN = f"{NAMESPACE} originDescription"
_FIELDS = {
    f"{NAMESPACE} baseURL": "base_url",
    f"{NAMESPACE} identifier": "identifier",
    f"{NAMESPACE} datestamp": "datestamp",
    f"{NAMESPACE} metadataNamespace": "namespace",
}
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[!#$&-;=?-\[\]_a-z~%]+")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_DEEPEST = 50


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
    found: list[HarvestOrigin] = []
    for values in reader.found[:_DEEPEST]:
        if (origin := _origin(values)) is None:
            break
        found.append(origin)
    return tuple(found)


@dataclass(slots=True)
class _ProvenanceReader:
    """Parser of nested descriptions; it reads the first one at each level."""

    found: list[dict[str, str]] = field(default_factory=list)
    _depth: int = 0
    _open: int = 0
    _field: str = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if name == _ORIGIN and self._depth == len(self.found) + 2 == self._open + 2:
            self.found.append(dict(attributes))
            self._open += 1
        inner = self._depth == self._open + 2 and self._open == len(self.found)
        self._field = _FIELDS.get(name, "") if inner else ""

    def end(self, name: str) -> None:
        if name == _ORIGIN and self._depth == self._open + 1:
            self._open -= 1
        self._depth -= 1
        self._field = ""

    def take(self, text: str) -> None:
        if self._field:
            values = self.found[-1]
            values[self._field] = values.get(self._field, "") + text


def _origin(values: Mapping[str, str]) -> HarvestOrigin | None:
    """Return the origin with these values; None if one is missing or invalid."""
    said = {name: text.strip() for name, text in values.items()}
    harvested, altered = said.get("harvestDate", ""), _BOOLEANS.get(said.get("altered", ""))
    base_url, identifier = said.get("base_url", ""), said.get("identifier", "")
    datestamp, namespace = said.get("datestamp", ""), said.get("namespace", "")
    dated = moment(harvested) is not None and moment(datestamp) is not None
    if altered is None or not dated or not all(map(is_uri, (base_url, identifier, namespace))):
        return None
    return HarvestOrigin(harvested, altered, base_url, identifier, datestamp, namespace)


def is_uri(text: str) -> bool:
    """Return whether a text is an absolute URI of ASCII (RFC 3986, simplified)."""
    return _URI.fullmatch(text) is not None
