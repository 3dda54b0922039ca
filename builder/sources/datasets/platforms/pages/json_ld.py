"""JSON-LD of a page: the schema.org descriptions of datasets in its scripts.

Scripts are repaired where the fault is common, and skipped where it is not. Nothing is fetched, so
contexts are not resolved: a name counts whatever its prefix.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from builder.sources.datasets.platforms.json_document import texts

_SCRIPT = re.compile(r"<script\b[^<>]{0,1024}application/ld\+json[^<>]{0,1024}>", re.IGNORECASE)
_OPENED = re.compile(r"<!--|(?://|/\*)?\s{0,16}<!\[CDATA\[\s{0,16}(?:\*/)?")
_CLOSED = ("*/", "]]>", "//", "/*", "-->", ";")
"""Ends of wrapped scripts; several may follow one another."""
_COMMA = re.compile(r",(\s{0,256}[}\]])")
_PREFIX = re.compile(r"[/:#]")
_KINDS = frozenset({"Dataset", "SoftwareSourceCode"})
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
        if is_of(value, _KINDS):
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
