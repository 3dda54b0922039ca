"""Typed links: the header `Link`, and sets of links as documents.

RFC 8288 defines the header and RFC 9264 the two forms of a set. The patterns take linear time,
because the texts are untrusted.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from builder.sources.datasets.platforms.json_document import entries, join_url, objects_of, text

JSON_LINKSET, TEXT_LINKSET = "application/linkset+json", "application/linkset"

_TARGET = re.compile(r"[\s,]{0,1024}<([^<>]{0,8192})>")
_PARAMETER = re.compile(
    r"\s{0,256};\s{0,256}([!#$&+.^_`|~0-9A-Za-z-]{1,64}\*?)"
    r"(?:\s{0,256}=\s{0,256}(?:\"((?:[^\"\\]|\\.){0,8192})\"|([^\s;,\"]{0,8192})))?",
    re.DOTALL,
)
_QUOTED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WebLink:
    """A link of type `relation` from `context` to `target`, both absolute URLs.

    `media_type` is that of the target, if the link declares it.
    """

    relation: str
    target: str
    context: str
    media_type: str | None = None


def parse_header(header: str, url: str) -> Iterator[WebLink]:
    """Yield the links of a header, or of a set of links in text form, at `url` (RFC 8288, 3).

    What cannot be parsed is skipped. A link with an anchor has that as its context.
    """
    at = 0
    while True:
        target = _TARGET.match(header, at)
        if target is None:
            at = header.find("<", at + 1)
            if at < 0:
                return
            continue
        at = target.end()
        parameters: dict[str, str] = {}
        while match := _PARAMETER.match(header, at):
            name, quoted, token = match.groups()
            value = _QUOTED.sub(r"\1", quoted) if quoted is not None else token
            parameters.setdefault(name.lower(), value or "")
            at = match.end()
        context = join_url(url, parameters["anchor"] or url) if "anchor" in parameters else url
        whole = join_url(url, target[1])
        for relation in parameters.get("rel", "").lower().split():
            if whole and context:
                yield WebLink(relation, whole, context, media_type(parameters.get("type")))


def parse_linkset(document: Any, url: str) -> Iterator[WebLink]:
    """Yield the links of a set in JSON form at `url` (RFC 9264, 4.2).

    Raises FilesetError (platform-bad-response) if it is not a set of links.
    """
    groups = document.get("linkset") if isinstance(document, Mapping) else None
    for group in objects_of(groups, f"the set of links at {url}"):
        context = join_url(url, group.get("anchor")) if "anchor" in group else url
        for relation, targets in group.items():
            for target in entries(targets) if relation != "anchor" else ():
                whole = join_url(url, target.get("href"))
                if whole and context:
                    yield WebLink(relation.lower(), whole, context, media_type(target.get("type")))


def media_type(value: object) -> str | None:
    """Return a media type without parameters, in lower case; None if it is none."""
    kind = (text(value) or "").partition(";")[0].strip().lower()
    return kind if kind.count("/") == 1 and kind.isascii() and " " not in kind else None


def is_same(url: str, other: str) -> bool:
    """Return whether two URLs are one page: scheme, fragment and a last slash do not count."""
    return _bare(url) == _bare(other)


def _bare(url: str) -> tuple[str, str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", "", url
    return parts.netloc.lower(), parts.path.rstrip("/"), parts.query
