"""JSON-LD of a page: the schema.org descriptions of datasets in its scripts.

Scripts are repaired where the fault is common, and skipped where it is not. Nothing is fetched, so
contexts are not resolved: a name counts whatever its prefix.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from builder.filesets.platforms.json_document import texts

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
    nodes: dict[str, Mapping[str, Any]] = {}
    for document in documents:
        _index(document, nodes, 0)
    found: list[dict[str, Any]] = []
    for document in documents:
        for one in _find(document, 0):
            if len(found) < _DATASETS and (whole := _embed(one, nodes)) not in found:
                found.append(whole)
    return found


def is_of(node: Mapping[str, Any], kinds: frozenset[str]) -> bool:
    """Return whether a node has one of the types."""
    return any(_PREFIX.split(kind)[-1] in kinds for kind in texts(node.get("@type")))


def _read_scripts(page: str) -> Iterator[Any]:
    at = 0
    while (found := _SCRIPT.search(page, at)) and (at := page.find("</script", found.end())) >= 0:
        written = page[found.end() : at]
        for repaired in (written, _COMMA.sub(r"\1", _unwrap(written))):
            try:
                # Raw line breaks in texts are common, and no danger.
                yield json.loads(repaired, strict=False)
                break
            except (ValueError, RecursionError):
                continue


def _unwrap(written: str) -> str:
    """Return a script without the marks of a comment or of CDATA around it."""
    bare = written.strip()
    if opened := _OPENED.match(bare):
        bare = bare[opened.end() :]
    for closed in (*_CLOSED, *_CLOSED):
        bare = bare.removesuffix(closed).rstrip()
    return bare


def _index(value: Any, nodes: dict[str, Mapping[str, Any]], depth: int) -> None:
    """Add all nodes with an id and other properties."""
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        for one in value:
            _index(one, nodes, depth + 1)
    elif isinstance(value, Mapping):
        name = value.get("@id")
        if isinstance(name, str) and len(value) > 1:
            nodes.setdefault(name, value)
        for one in value.values():
            if isinstance(one, dict | list):
                _index(one, nodes, depth + 1)


def _find(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if depth > _DEPTH:
        return
    if isinstance(value, list):
        for one in value:
            yield from _find(one, depth + 1)
    elif isinstance(value, Mapping):
        if is_of(value, _KINDS):
            yield value
            return
        for name in _INTO:
            yield from _find(value.get(name), depth + 1)


def _embed(dataset: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    def node_of(value: Any) -> Any:
        if isinstance(value, list):
            return [node_of(one) for one in value]
        alone = isinstance(value, Mapping) and value.keys() == {"@id"}
        return nodes.get(str(value["@id"]), value) if alone else value

    return {name: node_of(value) if name in _REFERRED else value for name, value in dataset.items()}
