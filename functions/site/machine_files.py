"""Files that browsers and crawlers request: style, icon, logo, robots.txt, sitemap, OpenSearch.

Sitemaps follow sitemaps.org: an index, and parts with the pages of records by position.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from functions.http import http_message
from functions.http.http_message import Reply
from functions.reading.repository import RecordSelection
from functions.site.page import PageError, PageRequest
from functions.snapshot.errors import ConfigurationError
from functions.snapshot.manifest import Span

_DAY = 86_400
"""Cache lifetime in seconds: a day, the limit for crawlers (RFC 9309, 2.4)."""
_PART = 10_000
"""Positions in a part of the sitemap: within Lambda's limit of bytes, and sitemaps.org's 50,000."""
_PARTS = 50_000
_FIXED: Mapping[str, str] = {
    "style.css": "text/css",
    "script.js": "text/javascript",
    "replay.js": "text/javascript",
    "favicon.ico": "image/vnd.microsoft.icon",
    "logo.svg": "image/svg+xml",
}
"""Files of `site/` with their media types; all but the logo are shipped."""


def read_files(places: tuple[Path, ...], colours: Mapping[str, str]) -> Mapping[str, Reply]:
    """Return the replies by path of files that do not change. Raises ConfigurationError."""
    replies = {}
    for name, type_ in _FIXED.items():
        paths = (place / "site" / name for place in places)
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            continue
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
        if name == "style.css":
            rules = ""
            if "light" in colours:
                rules += f":root{{--accent:{colours['light']}}}\n"
            if "dark" in colours:
                dark = f":root{{--accent:{colours['dark']}}}"
                rules += f"@media (prefers-color-scheme:dark){{{dark}}}\n"
            data += rules.encode()
        headers = {"Cache-Control": http_message.withdrawable_control(_DAY)}
        replies[f"/{name}"] = Reply(200, type_, data, headers, http_message.document_digest(data))
    return replies


def write_robots(request: PageRequest) -> Reply:
    """Return robots.txt (RFC 9309)."""
    configuration, address = request.parts.configuration, request.address
    variables = {
        "oai": address.oai if address.has_endpoint else "",
        "is_open": configuration["site.robots"] == "pages",
        "sitemap": f"{address.root}/sitemap.xml" if configuration["site.sitemap"] else "",
        "prefix": address.page(""),
    }
    return _reply(request, "robots.txt", "text/plain", variables)


def write_sitemap(request: PageRequest) -> Reply:
    """Return the index of the sitemap, or the part from the argument `first` on."""
    if not request.parts.configuration["site.sitemap"]:
        raise PageError(request.text("error.missing"), 404)
    if "first" in request.arguments:
        return _reply(request, "sitemap.xml", "application/xml", {"urls": _urls(request)})
    parts = list(_parts(request))[:_PARTS]
    return _reply(request, "sitemap_index.xml", "application/xml", {"parts": parts})


def write_search(request: PageRequest) -> Reply:
    """Return the OpenSearch description (version 1.1)."""
    variables = {
        "name": request.parts.configuration["repository.name"],
        "root": request.address.root,
    }
    return _reply(request, "opensearch.xml", "application/opensearchdescription+xml", variables)


FILES: Mapping[str, Callable[[PageRequest], Reply]] = {
    "opensearch.xml": write_search,
    "robots.txt": write_robots,
    "sitemap.xml": write_sitemap,
}
"""Files that depend on the request, by their path."""


def _reply(request: PageRequest, name: str, type_: str, variables: Mapping[str, object]) -> Reply:
    body = request.parts.renderer.page(name, variables)
    headers = {"Cache-Control": http_message.withdrawable_control(_DAY)}
    return Reply(200, type_, body, headers, http_message.document_digest(body))


def _parts(request: PageRequest) -> Iterator[tuple[str, datetime]]:
    """Yield the address of each part, with its newest datestamp."""
    kinds = request.parts.configuration["site.sitemap"]
    stamps: dict[int, datetime] = {}
    for sequence in request.manifest.sequences:
        if not any(sequence.records.get(kind) for kind in kinds):
            continue
        for span in sequence.spans(kinds):
            for part in range((span.first - 1) // _PART, (span.last - 1) // _PART + 1):
                stamps[part] = sequence.effective
    address = request.address
    for part, stamp in sorted(stamps.items()):
        yield address.locate(address.page("/sitemap.xml", first=part * _PART + 1)), stamp


def _urls(request: PageRequest) -> list[tuple[str, datetime]]:
    first = request.number("first", 1)
    kinds = tuple(request.parts.configuration["site.sitemap"])
    last = min(first + _PART - 1, request.manifest.last_position)
    if last < first:
        raise PageError(request.text("error.missing"), 404)
    selection = RecordSelection(kinds, Span(first, last))
    records = request.parts.repository.page(request.manifest, selection, _PART, headers=True)
    address = request.address
    return [
        (address.locate(address.record(r.identifier)), r.datestamp)
        for r in records
        if not r.deleted
    ]
