"""File blocks: the files that a template names, each with what it says of them."""

from typing import Any, NamedTuple

from builder.sources.redif.template import Template

_URL = "file-url"


class FileBlock(NamedTuple):
    """A file block: `url` is as written, all else in the form of `structure`, None if not said."""

    position: int
    """From 0."""
    url: str
    format: str | None
    function: str | None
    size: str | None
    restriction: str | None


def file_blocks(found: Template) -> list[FileBlock]:
    """Return the file blocks of a template in order, those without a URL left out."""
    nodes = found.structure.get("file")
    if nodes is None:  # of no known type, and so without clusters
        nodes = [{"url": [url]} for url in found.structure.get(_URL, ())]
    written = [value for name, _, value in found.attributes if name.lower() == _URL]
    if len(written) != len(nodes):  # some were misplaced
        written = [_first(node, "url") or "" for node in nodes]
    return [
        FileBlock(
            position,
            url,
            _first(node, "format"),
            _first(node, "function"),
            _first(node, "size"),
            _first(node, "restriction"),
        )
        for position, (node, url) in enumerate(zip(nodes, written, strict=True))
        if url
    ]


def _first(node: Any, name: str) -> str | None:
    values = node.get(name) if isinstance(node, dict) else None
    return values[0] if values else None
