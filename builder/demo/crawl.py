"""Small polite crawler: breadth first, within the hosts of its seeds, into WARC/1.1."""

import base64
import hashlib
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import Any, BinaryIO
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

from warcio.warcwriter import WARCWriter

from builder.demo.fetch import Exchange, canonical, fetch, links
from functions.snapshot.instant import to_text

Clock = Callable[[], datetime]

_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class Politeness:
    """Pauses and limits of the crawler."""

    user_agent: str = "sheaf-demo-crawler"
    delay: float = 0.02
    """Seconds before each request."""
    pause: float = 1.1
    """Seconds between two visits: more than one, so that their dates differ."""
    timeout: float = 10.0
    most_urls: int = 500
    """Maximum number of URLs that one visit requests, robots.txt not counted."""
    sleep: Callable[[float], None] = time.sleep


POLITE = Politeness()


@dataclass(frozen=True)
class CrawlSummary:
    """Counts of a crawl: all captures, and the captures of each kind."""

    captures: int
    revisits: int
    redirects: int
    errors: int
    """Captures of a response with a status of 400 or more."""
    excluded: int
    """Links not followed because robots.txt forbids it; they are no captures."""


def crawl(
    seeds: Iterable[str],
    connect_to: tuple[str, int],
    out: BinaryIO,
    *,
    clock: Clock,
    visits: int = 2,
    politeness: Politeness = POLITE,
    part_of: str = "sheaf-demo",
    filename: str = "",
) -> CrawlSummary:
    """Crawl the hosts of `seeds` `visits` times and write every exchange to `out`.

    Requests to every host go to `connect_to`. A page with the same bytes as in an earlier visit is
    written as a revisit record. The same site, clock and arguments give the same bytes. Raises
    CrawlError if the server does not answer, ValueError for a seed that is no http URL.
    """
    starts = [canonical(seed) for seed in seeds]
    urls = [url for url in starts if url is not None]
    if not urls or len(urls) < len(starts):
        raise ValueError("every seed must be an http URL, and there must be one")
    archive = _Archive(out, to_text(clock()), connect_to[0], part_of, filename)
    crawler = _Crawler(archive, connect_to, clock, politeness)
    for visit in range(visits):
        if visit:
            politeness.sleep(politeness.pause)
        crawler.visit(urls)
    counts = crawler.counts
    return CrawlSummary(
        captures=counts["captures"],
        revisits=counts["revisits"],
        redirects=counts["redirects"],
        errors=counts["errors"],
        excluded=counts["excluded"],
    )


class _Crawler:
    """Visits a site and counts the captures."""

    def __init__(
        self,
        archive: "_Archive",
        connect_to: tuple[str, int],
        clock: Clock,
        politeness: Politeness,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._archive = archive
        self._connect_to = connect_to
        self._clock = clock
        self._politeness = politeness

    def visit(self, seeds: list[str]) -> None:
        """Record everything reachable from `seeds` on their hosts, once each."""
        hosts = list(dict.fromkeys(urlsplit(seed).netloc for seed in seeds))
        robots = {host: self._robots(host) for host in hosts}
        seen = {f"http://{host}/robots.txt" for host in hosts}
        queue: deque[str] = deque()
        asked = 0
        found = seeds
        while True:
            for url in found:
                host = urlsplit(url).netloc
                if host not in robots or url in seen:
                    continue
                seen.add(url)
                if robots[host].can_fetch(self._politeness.user_agent, url):
                    queue.append(url)
                else:
                    self.counts["excluded"] += 1
            if not queue or asked == self._politeness.most_urls:
                return
            asked += 1
            url = queue.popleft()
            found = _references(url, self._exchange(url))

    def _robots(self, host: str) -> RobotFileParser:
        """Return the host's rules: empty without robots.txt, everything forbidden on a 5xx."""
        exchange = self._exchange(f"http://{host}/robots.txt")
        rules = RobotFileParser()
        if exchange.status == 200:
            rules.parse(exchange.content.decode("utf-8", "replace").splitlines())
        elif exchange.status >= 500:
            rules.parse(["User-agent: *", "Disallow: /"])
        else:
            rules.parse([])
        return rules

    def _exchange(self, url: str) -> Exchange:
        self._politeness.sleep(self._politeness.delay)
        date = to_text(self._clock())
        exchange = fetch(
            url, self._connect_to, self._politeness.user_agent, self._politeness.timeout
        )
        revisit = self._archive.add(url, date, exchange)
        self.counts["captures"] += 1
        self.counts["revisits"] += revisit
        self.counts["redirects"] += exchange.status in _REDIRECTIONS
        self.counts["errors"] += exchange.status >= 400
        return exchange


def _references(url: str, exchange: Exchange) -> list[str]:
    """Return the links of `exchange`: a redirect's target or an HTML page's links."""
    if exchange.status in _REDIRECTIONS:
        target = canonical(exchange.headers.get("Location", ""), url)
        return [target] if target else []
    if exchange.status == 200 and exchange.headers.get_content_type() == "text/html":
        return links(exchange.content, url, exchange.headers.get_content_charset())
    return []


class _Head:
    """An HTTP head for warcio that stays as received: warcio would rewrite it."""

    def __init__(self, head: bytes) -> None:
        self.headers_buff = head

    def compute_headers_buffer(self, header_filter: object = None) -> None:
        """Keep the bytes."""


class _Archive:
    """Writes exchanges as WARC records, and revisit records for known payloads."""

    def __init__(self, out: BinaryIO, date: str, address: str, part_of: str, filename: str) -> None:
        self._writer: Any = WARCWriter(out, gzip=True, warc_version="1.1")
        self._address = address
        self._ordinal = 0
        self._known: dict[tuple[str, str], tuple[str, str]] = {}
        self._info = self._id("warcinfo", part_of, date)
        fields = {
            "software": "sheaf-demo-crawler",
            "format": "WARC File Format 1.1",
            "isPartOf": part_of,
            "description": "The web site of a library that does not exist",
            "robots": "obey",
        }
        payload = "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode()
        headers = {"WARC-Record-ID": self._info, "WARC-Date": date}
        if filename:
            headers["WARC-Filename"] = filename
        self._writer.write_record(
            self._writer.create_warc_record(
                "",
                "warcinfo",
                payload=BytesIO(payload),
                length=len(payload),
                warc_headers_dict=headers,
            )
        )

    def add(self, url: str, date: str, exchange: Exchange) -> bool:
        """Write one exchange; return whether it became a revisit."""
        digest = "sha1:" + base64.b32encode(hashlib.sha1(exchange.body).digest()).decode("ascii")
        earlier = self._known.get((url, digest)) if exchange.status == 200 else None
        if earlier is None:
            headers = self._headers("response", url, date)
            headers["WARC-Payload-Digest"] = digest
            record = self._record("response", url, headers, exchange.head, exchange.body)
            self._known[url, digest] = (date, headers["WARC-Record-ID"])
        else:
            headers = self._headers("revisit", url, date)
            headers["WARC-Refers-To"] = earlier[1]
            record = self._writer.create_revisit_record(
                url, digest, url, earlier[0], _Head(exchange.head), headers
            )
        request = self._headers("request", url, date)
        self._writer.write_request_response_pair(
            self._record("request", url, request, exchange.request, b""), record
        )
        return earlier is not None

    def _headers(self, kind: str, url: str, date: str) -> dict[str, str]:
        headers = {
            "WARC-Record-ID": self._id(kind, url, date),
            "WARC-Date": date,
            "WARC-Warcinfo-ID": self._info,
        }
        if kind != "request":
            headers["WARC-IP-Address"] = self._address
        return headers

    def _id(self, kind: str, url: str, date: str) -> str:
        """Return a record's ID, derived from its content and its ordinal in the file."""
        self._ordinal += 1
        name = f"{kind} {date} {self._ordinal} {url}"
        return f"<{uuid.uuid5(uuid.NAMESPACE_URL, name).urn}>"

    def _record(
        self, kind: str, url: str, headers: dict[str, str], head: bytes, body: bytes
    ) -> Any:
        return self._writer.create_warc_record(
            url,
            kind,
            payload=BytesIO(body),
            length=len(body),
            warc_headers_dict=headers,
            http_headers=_Head(head),
        )
