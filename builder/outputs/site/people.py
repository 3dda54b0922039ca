"""Pages for people as files: what the server answers for its own paths, up to a number.

They lie below `www/`, as a plain web server or bucket serves them: `/sets` is `www/sets.html`, and
links name the file. The arguments of a page become part of its path. What has no file, as search
and other languages, has no link.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from urllib.parse import quote, urlencode, urlsplit

from builder.outputs.site.site_lists import ArchiveFiles, SiteSnapshot
from builder.outputs.site.site_state import WWW
from functions.content.search import CaptureSearch
from functions.http.http_message import IN_PATH, OAI_PATH, Call
from functions.oai.provider import Provider
from functions.reading.as_of import AsOf, PointerReading
from functions.site import dcat
from functions.site.page import PageParts, SiteAddress
from functions.snapshot.dumps import read_index
from functions.snapshot.fixity import read_reports
from functions.snapshot.layout import is_key
from functions.snapshot.site_names import digest_name

_BEGIN = ("/", "/robots.txt", "/sitemap.xml", "/publishes.atom", f"/{dcat.PATH}")
_FIXED = ("/style.css", "/script.js", "/favicon.ico", "/logo.svg")
_TABLES = (".csv", ".json")
"""Ends of paths of tables; those of overviews have files, with their first rows."""
_OVERVIEWS = frozenset(
    {"", "charts", "checks", "collections", "harvest", "publishes", "sets"}
    | {path[1:] for path in _BEGIN}
)
_PAGES = _OVERVIEWS | {"record", "records", "source"}
_LONGEST = 200
"""Bytes of a part of a path, because names of files have limits."""


def is_name(name: str, extension: str) -> bool:
    """Return whether a file can have a name with an extension, beside folders with such names."""
    parts = name.split("/")
    is_short = all(len(part.encode("utf-8", "replace")) <= _LONGEST for part in parts)
    return is_short and is_key(name) and not any(part.endswith(extension) for part in parts)


@dataclass(slots=True)
class SiteLinks:
    """The pages of a site by the path of their file: each has its path and arguments at a server.

    With a `limit` there are only overviews, at most so many. `files` are other paths. With
    `archived`, pages lead to archived ones.
    """

    limit: int | None
    files: frozenset[str]
    archived: ArchiveFiles | None = None
    pages: dict[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)

    def add(self, path: str, values: Mapping[str, str]) -> str:
        """Return the path of the file of a page, or "" if the site has none."""
        if path in self.files:
            return path
        if path.endswith(_TABLES):
            return "" if values or path.startswith("/records.") else self._enter(path, path, values)
        first = path[1:].partition("/")[0]
        if first not in (_PAGES if self.limit is None else _OVERVIEWS):
            return ""
        suffix = PurePosixPath(path).suffix if path in _BEGIN else ".html"
        stem = path.removesuffix(suffix) if path in _BEGIN else path
        query = "&".join(f"{name}={value}" for name, value in values.items())
        name = f"{stem}{'-' if path in _BEGIN else '/'}{query}" if query else stem
        if first and not is_name(name[1:], suffix):
            name = f"/{first}/sha1-{digest_name(name)}"
        return self._enter(name + suffix, path, values)

    def _enter(self, place: str, path: str, values: Mapping[str, str]) -> str:
        """Return the path of the file of a page, "" if there are too many already."""
        if place not in self.pages and self.limit is not None and len(self.pages) >= self.limit:
            return ""
        self.pages.setdefault(place, (path, values))
        return place


@dataclass(frozen=True, slots=True)
class StaticAddress(SiteAddress):
    """Addresses of pages in files, which `links` gets; "" where there is none."""

    links: SiteLinks = field(default_factory=lambda: SiteLinks(None, frozenset()))

    @property
    def is_static(self) -> bool:
        """Whether the pages are files."""
        return True

    def page(self, path: str, /, **arguments: object) -> str:
        """Return a link to a page, from the host's root."""
        prefix = urlsplit(self.root).path
        if not path:
            return prefix
        values = {name: str(value) for name, value in arguments.items() if value is not None}
        place = self.links.add(path, values)
        return prefix + quote(place, safe=f"/{IN_PATH}") if place else ""

    def request(self, verb: str, /, **arguments: str) -> str:
        """Return the URL of an OAI-PMH request."""
        return SiteAddress.request(self, verb, **arguments) if self.has_endpoint else ""

    def answer(self, verb: str, /, **arguments: str) -> str:
        """Return the URL of an OAI-PMH request: there is no page that shows its answer."""
        return self.request(verb, **arguments)

    def replay(self, url: str, date: str | None, modifier: str = "") -> str | None:
        """Return the URL of a page as it was at a date; None without one, or without replay."""
        link = SiteAddress.replay(self, url, date)
        if link is None or self.links.archived is None:
            return None
        stamp = link.removeprefix(f"{self.root}/web/").partition("/")[0]
        return self.locate(self.links.archived.find(stamp, modifier, url))


class SnapshotReading(AsOf):
    """A reading that is always the same."""

    def __init__(self, reading: PointerReading) -> None:
        self._reading = reading

    def reading(self, *, fresh: bool = False) -> PointerReading:
        """Return the reading."""
        return self._reading


@dataclass(frozen=True)
class PeoplePages:
    """The pages of a snapshot; at most `limit` overviews if it has more records than that.

    `files` are the paths of other files that pages may link to.
    """

    snapshot: SiteSnapshot
    limit: int
    files: frozenset[str]

    def list_pages(self) -> Iterator[tuple[str, bytes]]:
        """Yield the names of files, and their content. Raises StoreError."""
        from functions.site.site import WebSite  # loads all pages

        is_small = sum(self.snapshot.manifest.kinds().values()) <= self.limit
        links = SiteLinks(None if is_small else self.limit, self.files.union(_FIXED))
        has_endpoint = self.snapshot.configuration["site.endpoint"]
        site = WebSite(
            self._parts(is_small=is_small),
            lambda root, oai, language: StaticAddress(root, oai, language, has_endpoint, links),
        )
        base = self.snapshot.base_url.removesuffix(OAI_PATH)
        if is_small and self.snapshot.archive is not None:
            own = StaticAddress(base, self.snapshot.base_url, "", has_endpoint, links)
            links.archived = self.snapshot.archive(self.snapshot, own)
        for path in _FIXED:
            if site.takes(path):
                yield WWW + path[1:], site.reply(Call("GET", base, path)).body
        for path in _BEGIN:
            links.add(path, {})
        count = 0
        while batch := [*links.pages.items()][count:]:
            count += len(batch)
            for place, (path, arguments) in batch:
                reply = site.reply(Call("GET", base, path, urlencode(arguments)))
                if reply.status == 200 or path not in _BEGIN:  # else it has no sitemap
                    # Where no file is, no link is.
                    name = "index.html" if place == "/" else place[1:]
                    yield WWW + name, reply.body.replace(b' href=""', b"")
            for place, body in links.archived.list_files() if links.archived else ():
                yield WWW + place[1:], body

    def _parts(self, *, is_small: bool) -> PageParts:
        snapshot = self.snapshot
        present = SnapshotReading(snapshot.reading)
        configuration, repository = snapshot.configuration, snapshot.repository
        configuration = configuration.having("content.serve", False)
        if not is_small:
            configuration = configuration.having("site.sitemap", [])
        provider = Provider(
            repository, configuration, snapshot.formats, present, fields=snapshot.fields
        )
        reader = repository.catalogue.reader
        return PageParts(
            repository,
            configuration,
            present,
            provider,
            snapshot.formats,
            snapshot.renderer,
            search=CaptureSearch(repository.catalogue, repository.files),
            dumps=partial(read_index, reader),
            checks=partial(read_reports, reader),
        )
