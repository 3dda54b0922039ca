"""Sitemaps (sitemaps.org): when the files of a host changed last, as the host itself says.

robots.txt names a host's sitemaps; else `/sitemap.xml` is tried. A sitemap of sitemaps is followed.
A fault ends the reading of one sitemap, and its files are requested as usual.
"""

import re
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from xml.parsers import expat

from builder.http.client import FetchRequest, HttpClient
from builder.http.errors import Deferred, FetchError
from builder.http.limits import Limits
from builder.http.responses import read_body
from builder.http.url import normalise, origin_of

_BYTES = 50_000_000  # of a sitemap, unpacked, as the protocol has it
_FILES = 20  # sitemaps of a host that are read
_GZIP = b"\x1f\x8b"
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_UNKNOWN_ZONE = timedelta(days=1, hours=12)  # from the begin of a day to its end anywhere


@dataclass(frozen=True, slots=True)
class Sitemap:
    """A sitemap: the time of the last change by URL in normal form, and further sitemaps.

    Times are in seconds since 1970. Of a day, it is the end.
    """

    url: str
    changed: dict[str, int]
    further: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SitemapReader:
    """Reads the sitemaps of hosts; with `obey`, robots.txt decides. `until` bounds waits."""

    client: HttpClient
    limits: Limits
    until: float
    obey: bool = True

    def read(self, origin: str) -> list[Sitemap]:
        """Return the sitemaps of an origin such as `https://example.org`."""
        sitemaps: list[Sitemap] = []
        request = FetchRequest(
            url=f"{origin}/sitemap.xml",
            limits=replace(self.limits, bytes=min(self.limits.bytes, _BYTES)),
            until=self.until,
        )
        named: list[str] = []
        with suppress(FetchError, Deferred):
            named = self.client.read_robots(request).sitemaps()
        left = deque(named or [request.url])
        urls: set[str] = set()
        while left and len(urls) < _FILES:
            url = normalise(left.popleft()).id
            if url is None or url in urls or not url.startswith(f"{origin}/"):
                continue
            urls.add(url)
            with suppress(FetchError, Deferred, ValueError):
                sitemaps.append(self._read(replace(request, url=url)))
                left += sitemaps[-1].further
        return sitemaps

    def _read(self, request: FetchRequest) -> Sitemap:
        if self.obey:
            self.client.obey(request)
        with self.client.fetch(request) as response:
            if response.status != 200:
                raise self.client.refusal(response)
            data = read_body(response.headers, response.body, _BYTES)
        if data.startswith(_GZIP):
            data = read_body({"content-encoding": "gzip"}, [data], _BYTES)
        sitemap, own = parse(request.url, data), f"{origin_of(request.url)}/"
        changed = {url: at for url, at in sitemap.changed.items() if url.startswith(own)}
        return replace(sitemap, changed=changed)


@dataclass(slots=True)
class _SitemapParser:
    entries: list[dict[str, str]] = field(default_factory=list)
    further: list[str] = field(default_factory=list)
    _entry: dict[str, str] = field(default_factory=dict)
    _text: list[str] = field(default_factory=list)

    def start(self, name: str, attributes: object) -> None:
        self._text = []
        if _local(name) in {"url", "sitemap"}:
            self._entry = {}

    def data(self, text: str) -> None:
        self._text.append(text)

    def end(self, name: str) -> None:
        local = _local(name)
        if local in {"loc", "lastmod"}:
            self._entry.setdefault(local, "".join(self._text).strip())
        elif local == "url":
            self.entries.append(self._entry)
        elif local == "sitemap" and "loc" in self._entry:
            self.further.append(self._entry["loc"])


def parse(url: str, data: bytes) -> Sitemap:
    """Parse a sitemap or a sitemap of sitemaps. Raises ValueError for other data."""
    reader, parser = _SitemapParser(), expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.CharacterDataHandler = reader.data
    parser.EndElementHandler = reader.end
    parser.StartDoctypeDeclHandler = _refuse  # it could declare entities
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError) as error:  # LookupError: an unknown encoding
        raise ValueError(f"{url} is no XML: {error}") from error
    changed: dict[str, int] = {}
    for entry in reader.entries:
        identifier = normalise(entry.get("loc", "")).id
        moment = _parse_moment(entry.get("lastmod", ""))
        if identifier is not None and moment is not None:
            changed[identifier] = max(moment, changed.get(identifier, 0))
    return Sitemap(url, changed, tuple(reader.further))


def _parse_moment(text: str) -> int | None:
    """Return the latest time that a date of W3C can mean; None for others, such as a year."""
    try:
        moment = datetime.fromisoformat(text)
        if _DATE.fullmatch(text) or moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC) + _UNKNOWN_ZONE
        return int(moment.timestamp())
    except (ValueError, OverflowError):
        return None


def _refuse(*declaration: object) -> None:
    raise ValueError("a sitemap has no document type")


def _local(name: str) -> str:
    return name.rpartition(":")[2]
