"""Pages for people as files: what the server answers for its own paths, up to a number.

They lie below `www/`, as a plain web server or bucket serves them: `/sets` is `www/sets.html`. The
arguments of a page become part of its path. Search needs a server, so it is left out, and so are
pages in other languages.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from urllib.parse import quote, unquote, urlencode, urlsplit

from builder.outputs.site.site_lists import SiteSnapshot
from builder.outputs.site.site_state import WWW
from functions.http.http_message import OAI_PATH, Call
from functions.oai.provider import Provider
from functions.reading.as_of import AsOf, PointerReading
from functions.site import dcat
from functions.site.page import PageParts, SiteAddress
from functions.snapshot.layout import is_key

_BEGIN = ("/", "/robots.txt", "/sitemap.xml", "/publishes.atom", f"/{dcat.PATH}")
_FIXED = ("/style.css", "/script.js", "/favicon.ico", "/logo.svg")
_OVERVIEWS = frozenset(
    {"", "checks", "collections", "harvest", "publishes", "sets", *(p[1:] for p in _BEGIN)}
)
_PAGES = _OVERVIEWS | {"record", "records", "source"}
_LONGEST = 200
"""Bytes of a part of a path, because names of files have limits."""

Link = tuple[str, Mapping[str, str]]
"""The path of a page, and its arguments."""


@dataclass(frozen=True, slots=True)
class StaticAddress(SiteAddress):
    """Addresses of pages in files; `links` gets each of them by its path."""

    links: dict[str, Link] = field(default_factory=dict)

    @property
    def is_static(self) -> bool:
        """Whether the pages are files."""
        return True

    def page(self, path: str, /, **arguments: object) -> str:
        """Return a link to a page, from the host's root."""
        values = {name: str(value) for name, value in arguments.items() if value is not None}
        place = path
        if values:
            query = urlencode(values, quote_via=quote, safe=":")
            stem, dot, suffix = path.rpartition(".")
            place = f"{stem}-{query}.{suffix}" if dot else f"{path}/{query}"
        if path:
            self.links.setdefault(place, (path, values))
        return f"{urlsplit(self.root).path}{place}"

    def answer(self, verb: str, /, **arguments: str) -> str:
        """Return the URL of an OAI-PMH request: there is no page that shows its answer."""
        return self.request(verb, **arguments)


class SnapshotReading(AsOf):
    """A reading that is always the same."""

    def __init__(self, reading: PointerReading) -> None:
        self._reading = reading

    def reading(self, *, fresh: bool = False) -> PointerReading:
        """Return the reading."""
        return self._reading


@dataclass(frozen=True)
class PeoplePages:
    """The pages of a snapshot, at most `limit`; without pages of records if there are more."""

    snapshot: SiteSnapshot
    limit: int

    def list_pages(self) -> Iterator[tuple[str, bytes]]:
        """Yield the names of files, and their content. Raises StoreError."""
        from functions.site.site import WebSite  # loads all pages

        links: dict[str, Link] = {path: (path, {}) for path in _BEGIN}
        site = WebSite(
            self._parts, lambda root, oai, language: StaticAddress(root, oai, language, links)
        )
        base = self.snapshot.base_url.removesuffix(OAI_PATH)
        for path in _FIXED:
            if site.takes(path):
                yield WWW + path[1:], site.reply(Call("GET", base, path)).body
        is_small = sum(self.snapshot.manifest.kinds().values()) <= self.limit
        followed = _PAGES if is_small else _OVERVIEWS
        queue, count = deque(links.items()), 0
        while queue and count < self.limit:
            place, (path, arguments) = queue.popleft()
            name = unquote(place)[1:] or "index"
            is_name = is_key(name) and all(len(p.encode()) <= _LONGEST for p in name.split("/"))
            if path[1:].partition("/")[0] not in followed or not is_name:
                continue
            size = len(links)
            reply = site.reply(Call("GET", base, path, urlencode(arguments)))
            queue.extend(islice(links.items(), size, None))
            if reply.status == 200:
                count += 1
                yield WWW + name + (".html" if "html" in reply.type else ""), reply.body

    @cached_property
    def _parts(self) -> PageParts:
        snapshot = self.snapshot
        present = SnapshotReading(snapshot.reading)
        configuration, repository = snapshot.configuration, snapshot.repository
        provider = Provider(
            repository, configuration, snapshot.formats, present, fields=snapshot.fields
        )
        return PageParts(
            repository, configuration, present, provider, snapshot.formats, snapshot.renderer
        )
