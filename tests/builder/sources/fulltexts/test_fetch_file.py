"""Fetching from a real web server."""

import gzip
import hashlib
import socket
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from builder.http.addresses import PublicAddresses, networks
from builder.http.client import HttpClient
from builder.http.errors import Deferred, FetchError
from builder.http.limits import Limits
from builder.http.politeness import HostPolicy, HostQueue
from builder.sources.fulltexts.fetch_file import FileFetcher, Once, Validators
from builder.sources.fulltexts.results import Fetched, FileContent, Moved, Result, Unchanged
from tests.builder.http import site as web
from tests.builder.http.site import Site
from tests.memory import at_most
from tests.patience import in_real_time

LIMITS = Limits(connect=10, first_byte=10, total=20, rate=100, bytes=1_000_000)
IMPATIENT = replace(LIMITS, first_byte=0.6, total=5)
AGENT = "Sheaf/0.1 (+http://archive.example.org; mailto:a@example.org)"


@pytest.fixture
def fetcher(site: Site, tmp_path: Path) -> FileFetcher:
    stop = threading.Event()
    guard = PublicAddresses(frozenset({site.port}), networks(["127.0.0.0/8"]))
    hosts = HostQueue(HostPolicy(concurrent=4), stop)
    client = HttpClient(agent=AGENT, addresses=guard, hosts=hosts, stop=stop)
    return FileFetcher(client=client, limits=LIMITS, scratch=tmp_path)


def guarded(
    fetcher: FileFetcher, ports: set[int] | None = None, allowed: Sequence[str] = ("127.0.0.0/8",)
) -> FileFetcher:
    """Return a fetcher that may ask other ports and networks."""
    own = fetcher.client.addresses
    assert isinstance(own, PublicAddresses)
    guard = PublicAddresses(frozenset(own.ports if ports is None else ports), networks(allowed))
    return replace(fetcher, client=replace(fetcher.client, addresses=guard))


def paced(fetcher: FileFetcher, policy: HostPolicy) -> FileFetcher:
    """Return a fetcher with a policy of its own for hosts."""
    hosts = HostQueue(policy, fetcher.client.stop)
    return replace(fetcher, client=replace(fetcher.client, hosts=hosts))


def ask(
    fetcher: FileFetcher, url: str, validators: Validators | None = None, seconds: float = 30
) -> Result:
    return fetcher.fetch(url, validators or Validators(), time.monotonic() + seconds)


def code(result: Result) -> str:
    assert isinstance(result, FetchError), result
    return result.code


def chain(fetcher: FileFetcher, url: str) -> Fetched:
    return Once(lambda u, _: ask(fetcher, u)).follow(url)


def test_a_file(site: Site, fetcher: FileFetcher) -> None:
    body = b"%PDF-1.4 " + bytes(range(256)) * 900
    site.pages["/a.pdf"] = web.text(body, ETag='"1"', Last_Modified="Fri, 09 Nov 2012 17:13:50 GMT")
    result = ask(fetcher, site.url("/a.pdf"))
    assert isinstance(result, FileContent)
    assert result.path.read_bytes() == body
    assert result.size == len(body)
    assert result.md5 == hashlib.md5(body).hexdigest()
    assert result.sha256 == hashlib.sha256(body).hexdigest()
    assert (result.media_type, result.etag) == ("application/pdf", '"1"')
    assert result.modified == 1352481230
    assert result.head == body[:1024]
    sent = site.asked("/a.pdf")[0].headers
    assert sent["user-agent"] == AGENT
    assert sent["accept-encoding"] == "identity"
    assert sent["host"] == f"127.0.0.1:{site.port}"
    assert "if-none-match" not in sent


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
BODIES = {
    "chunked": (CHUNKED, b"abcde"),
    "old server": (b"HTTP/1.0 200\r\nContent-Type: text/plain\r\n\r\nto the end", b"to the end"),
    "longer than promised": (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", b"abc"),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_of_other_forms(site: Site, fetcher: FileFetcher, name: str) -> None:
    answer, body = BODIES[name]
    site.pages["/a"] = web.raw(answer)
    result = ask(fetcher, site.url("/a"))
    assert isinstance(result, FileContent)
    assert result.path.read_bytes() == body


def test_the_query_is_sent_as_it_is(site: Site, fetcher: FileFetcher) -> None:
    site.pages["/a%20b?x=%2F&&y"] = web.text("q")
    site.pages["/a?"] = web.text("e")
    assert isinstance(ask(fetcher, site.url("/a%20b?x=%2F&&y")), FileContent)
    assert isinstance(ask(fetcher, site.url("/a?")), FileContent)


def test_conditional_requests(site: Site, fetcher: FileFetcher) -> None:
    site.pages["/a"] = web.conditional(b"x", '"e"')
    result = ask(fetcher, site.url("/a"), Validators('"e"', "Fri, 09 Nov 2012 17:13:50 GMT"))
    assert result == Unchanged('"e"', None)
    sent = site.asked("/a")[0].headers
    assert sent["if-modified-since"] == "Fri, 09 Nov 2012 17:13:50 GMT"
    # Validators that cannot be sent are not.
    site.pages["/b"] = web.text("x", ETag="\u00e9", Last_Modified="x" * 5000)
    result = ask(fetcher, site.url("/b"), Validators('"\u00e9"', "a\nb"))
    assert isinstance(result, FileContent)
    assert (result.etag, result.last_modified) == ("\u00e9", None)
    assert not {"if-none-match", "if-modified-since"} & set(site.asked("/b")[0].headers)


STATUSES = {
    404: "not-found",
    410: "gone",
    401: "forbidden",
    403: "forbidden",
    451: "forbidden",
    429: "too-many-requests",
    500: "server-error",
    503: "server-error",
    400: "http-status",
    204: "http-status",
    206: "http-status",
    300: "http-status",
}


@pytest.mark.parametrize(("status", "expected"), STATUSES.items())
def test_statuses(site: Site, fetcher: FileFetcher, status: int, expected: str) -> None:
    site.pages["/a"] = web.status(status)
    result = ask(fetcher, site.url("/a"))
    assert code(result) == expected
    assert isinstance(result, FetchError)
    assert result.status == status


OK = b"HTTP/1.1 200 OK\r\n"
BROKEN = {
    "fewer bytes than promised": (web.raw(OK + b"Content-Length: 9\r\n\r\nabc"), "cut-short"),
    "chunk cut off": (web.raw(OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\nabc"), "cut-short"),
    "chunk size not hexadecimal": (
        web.raw(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n"),
        "cut-short",
    ),
    "no HTTP": (web.raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "bad-answer"),
    "nothing": (web.raw(b"\r\n"), "bad-answer"),
    "two lengths": (
        web.raw(OK + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde"),
        "bad-answer",
    ),
    "length that is none": (web.raw(OK + b"Content-Length: many\r\n\r\nabc"), "bad-answer"),
    "head without end": (web.raw(OK + b"X: " + b"y" * 200_000), "bad-answer"),
    "head cut off": (web.raw(OK + b"Content-Le"), "bad-answer"),
    "head cut off behind a field": (web.raw(OK + b"Content-Type: text/plain\r\n"), "bad-answer"),
    "field without a name": (web.raw(OK + b"Set Cookie: a\r\nX: y\r\n\r\nabc"), "bad-answer"),
    "unknown transfer coding": (
        web.raw(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\nabc"),
        "bad-answer",
    ),
    "silence": (web.silent(1.2), "no-answer"),
    "head that trickles": (web.raw(OK + b"X: " + b"y" * 300, 0.05, 100), "no-answer"),
    "body that trickles": (
        web.raw(b"x" * 60, 0.05, 40, OK + b"Content-Length: 60\r\n\r\n"),
        "too-slow",
    ),
    "body that stops": (
        web.raw(OK + b"Content-Length: 900000\r\n\r\n" + b"x" * 300_000, 1.5),
        "too-slow",
    ),
    "promised too large": (web.raw(OK + b"Content-Length: 1000001\r\n\r\n"), "too-large"),
    "too large, unannounced": (web.raw(OK + b"\r\n" + b"x" * 1_000_001), "too-large"),
    "gzip although identity was asked for": (
        web.text(b"\x1f\x8b", Content_Encoding="gzip"),
        "content-coding",
    ),
    "redirect to nowhere": (web.status(302), "bad-redirect"),
    "304 to who did not ask for it": (
        web.raw(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
        "http-status",
    ),
}


@in_real_time
@pytest.mark.parametrize("name", BROKEN)
def test_what_servers_do_wrong(site: Site, fetcher: FileFetcher, name: str, tmp_path: Path) -> None:
    answer, expected = BROKEN[name]
    site.pages["/a"] = answer
    fetcher = replace(fetcher, limits=IMPATIENT)
    began = time.monotonic()
    assert code(ask(fetcher, site.url("/a"))) == expected
    assert time.monotonic() - began < IMPATIENT.total
    assert list(tmp_path.iterdir()) == []  # nothing is left of what came


def test_a_file_that_is_kept_compressed(site: Site, fetcher: FileFetcher) -> None:
    site.pages["/a.ps.gz"] = web.text(
        b"\x1f\x8b", "application/postscript", Content_Encoding="x-gzip"
    )
    result = ask(fetcher, site.url("/a.ps.gz"))
    assert isinstance(result, FileContent)
    assert result.coding == "gzip"


def test_the_whole_may_not_take_too_long(site: Site, fetcher: FileFetcher) -> None:
    fetcher = replace(fetcher, limits=replace(LIMITS, total=1.2))
    site.pages["/a"] = web.raw(OK + b"Content-Length: 9000\r\n\r\n" + b"x" * 9000, 0.1, 30)
    assert code(ask(fetcher, site.url("/a"))) == "too-long"


def test_a_large_file_takes_little_memory(site: Site, fetcher: FileFetcher) -> None:
    fetcher = replace(fetcher, limits=replace(LIMITS, bytes=10**9, total=60))
    size = 60_000_000
    block = b"x" * 1_000_000

    def answer(handler: web.BaseHTTPRequestHandler) -> None:
        handler.wfile.write(OK + b"Content-Length: %d\r\n\r\n" % size)
        for _ in range(size // len(block)):
            handler.wfile.write(block)

    site.pages["/a"] = answer
    with at_most(8_000_000):
        result = ask(fetcher, site.url("/a"))
    assert isinstance(result, FileContent)
    assert result.path.stat().st_size == size


def test_hosts_that_are_not_there(fetcher: FileFetcher, site: Site) -> None:
    """Each is given up after three requests."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        port = taken.getsockname()[1]
        fetcher = guarded(fetcher, {port, site.port, 80})
        assert code(ask(fetcher, f"http://127.0.0.1:{port}/a")) == "connect"
    assert code(ask(fetcher, site.url("/a").replace("http:", "https:"))) == "tls"
    for _ in range(3):
        result = ask(fetcher, "http://no-such-host.invalid/a")
        assert code(result) == "dns"
        assert "not requested" not in str(result)
    assert "not requested" in str(ask(fetcher, "http://no-such-host.invalid/b"))
    result = ask(fetcher, "http://127.0.0.1:0/")  # it is no other port
    assert isinstance(result, FetchError)
    assert (result.code, result.detail) == ("port-refused", "127.0.0.1:0")


def test_a_server_that_takes_no_connection_in_time(fetcher: FileFetcher) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        limits = replace(LIMITS, connect=0.5)
        fetcher = replace(guarded(fetcher, {port}), obey=False, limits=limits)
        with socket.create_connection(("127.0.0.1", port)), socket.socket() as second:
            second.setblocking(False)
            second.connect_ex(("127.0.0.1", port))
            assert code(ask(fetcher, f"http://127.0.0.1:{port}/a")) == "connect-timeout"


def test_addresses_within_are_refused_at_every_hop(site: Site, fetcher: FileFetcher) -> None:
    closed = guarded(fetcher, allowed=())
    assert code(ask(closed, site.url("/a"))) == "address-refused"
    assert site.requests == []
    with web.serving("127.0.0.2") as inner:
        site.pages["/a"] = web.redirect(inner.url("/secret", "127.0.0.2"))
        inner.pages["/secret"] = web.text("secret")
        found = chain(guarded(fetcher, {site.port, inner.port}, ["127.0.0.1/32"]), site.url("/a"))
        assert code(found.final) == "address-refused"
        assert inner.requests == []


def test_no_proxy_of_the_environment_is_used(
    site: Site, fetcher: FileFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    site.pages["/a"] = web.text("x")
    assert isinstance(ask(fetcher, site.url("/a")), FileContent)


def test_redirects(site: Site, fetcher: FileFetcher) -> None:
    site.pages |= {
        "/a": web.redirect("b?x=1", 301),
        "/b?x=1": web.redirect(site.url("/c/../d e#part", "localhost"), 308),
        "/d%20e": web.text("there"),
    }
    moved = ask(fetcher, site.url("/a"))
    assert isinstance(moved, Moved)
    assert (moved.location, moved.status) == ("b?x=1", 301)
    assert moved.exchange is not None
    assert "Location: b?x=1" in moved.exchange.headers
    found = chain(fetcher, site.url("/a"))
    last = site.url("/d%20e", "localhost")
    assert [(h.origin, h.target, h.status) for h in found.hops] == [
        (site.url("/a"), site.url("/b?x=1"), 301),
        (site.url("/b?x=1"), last, 308),
    ]
    assert found.last == last
    assert isinstance(found.final, FileContent)


ASTRAY = {
    "/loop": "redirect-loop",
    "/round": "redirect-loop",
    "ftp://ftp.example.org/a": "unsupported-scheme",
    "http://user:secret@example.org/": "userinfo",
    "http://[::1": "bad-redirect",
}


@pytest.mark.parametrize("target", ASTRAY)
def test_redirects_that_lead_astray(site: Site, fetcher: FileFetcher, target: str) -> None:
    site.pages |= {"/loop": web.redirect(target), "/round": web.redirect("/loop")}
    assert code(chain(fetcher, site.url("/loop")).final) == ASTRAY[target]


def test_ten_redirects_and_no_more(site: Site, fetcher: FileFetcher) -> None:
    for n in range(20):
        site.pages[f"/{n}"] = web.redirect(f"/{n + 1}")
    site.pages["/10"] = web.text("x")
    assert isinstance(chain(fetcher, site.url("/0")).final, FileContent)
    site.pages["/10"] = web.redirect("/11")
    found = chain(fetcher, site.url("/0"))
    assert code(found.final) == "too-many-hops"
    assert len(found.hops) == 10


def test_a_url_is_asked_for_once(site: Site, fetcher: FileFetcher) -> None:
    site.pages |= {f"/{n}": web.redirect("/end") for n in range(8)}
    site.pages["/end"] = web.text("x")
    once = Once(lambda url, _: ask(fetcher, url))
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(once.follow, [site.url(f"/{n}") for n in range(8)])]
    assert len({id(f.final) for f in found}) == 1
    assert len(site.asked("/end")) == 1


def test_robots(site: Site, fetcher: FileFetcher) -> None:
    site.pages["/robots.txt"] = web.text(
        "User-agent: *\nDisallow: /\n\nUser-agent: sheaf\nDisallow: /private/\n", "text/plain"
    )
    site.pages |= {"/a": web.text("x"), "/private/b": web.text("x")}
    assert isinstance(ask(fetcher, site.url("/a")), FileContent)
    assert code(ask(fetcher, site.url("/private/b"))) == "robots-disallowed"
    assert isinstance(ask(replace(fetcher, obey=False), site.url("/private/b")), FileContent)
    assert len(site.asked("/robots.txt")) == 1


NO = b"User-agent: *\nDisallow: /a"
ROBOTS: dict[str, tuple[web.Answer, str]] = {
    # what robots.txt is, and what comes of a file; "" where that is fetched
    **{str(status): (web.status(status), "") for status in (401, 403, 404, 410)},
    "503": (web.status(503), "robots-unreachable"),
    "silence": (web.silent(1.2), "robots-unreachable"),
    "no HTTP": (web.raw(b"SSH-2.0\r\n"), "robots-unreachable"),
    "refused address": (web.redirect("http://10.0.0.1:80/r"), "robots-unreachable"),
    "redirected": (web.redirect("/r"), "robots-disallowed"),
    "gzip": (
        web.text(gzip.compress(NO), "text/plain", Content_Encoding="gzip"),
        "robots-disallowed",
    ),
    "deflate": (
        web.text(zlib.compress(NO), "text/plain", Content_Encoding="deflate"),
        "robots-disallowed",
    ),
    "without end": (
        web.raw(OK + b"\r\n" + NO + b"\n" + b"# and so on\n" * 100_000),
        "robots-disallowed",
    ),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_of_every_kind(site: Site, fetcher: FileFetcher, name: str) -> None:
    answer, expected = ROBOTS[name]
    site.pages |= {"/robots.txt": answer, "/r": web.text(NO, "text/plain"), "/a": web.text("x")}
    fetcher = guarded(fetcher, {site.port, 80})
    for _ in range(2):
        result = ask(fetcher, site.url("/a"))
        if not expected:
            assert isinstance(result, FileContent)
            continue
        assert code(result) == expected
        assert "robots.txt" in str(result)
        assert site.paths().count("/robots.txt") == 1
        assert "/a" not in site.paths()
    if name == "refused address":
        assert fetcher.client.hosts.resting(time.monotonic()) == []


def test_the_pace_of_a_host(site: Site, fetcher: FileFetcher) -> None:
    fetcher = paced(fetcher, HostPolicy(interval=0.25))
    for n in range(4):
        site.pages[f"/{n}"] = web.text("x")
    begun = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        pool.map(partial(ask, fetcher), [site.url(f"/{n}") for n in range(4)])
    times = sorted(r.at for r in site.requests)
    assert len(times) == 5  # robots.txt is one of them
    # One that is late on its way comes closer to the next: none comes sooner than it may be sent.
    assert all(at - begun >= 0.25 * n for n, at in enumerate(times))
    assert site.most == 1


def test_crawl_delay(site: Site, fetcher: FileFetcher) -> None:
    site.pages["/robots.txt"] = web.text("User-agent: *\nCrawl-delay: 0.4\n", "text/plain")
    site.pages["/a"] = web.text("x")
    begun = time.monotonic()
    for _ in range(3):
        ask(fetcher, site.url("/a"))
    times = [r.at for r in site.asked("/a")]
    assert len(times) == 3
    assert all(at - begun >= 0.4 * n for n, at in enumerate(times))


def in_seconds(many: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=many), usegmt=True)


@in_real_time
@pytest.mark.parametrize("wait", [lambda: "2", lambda: in_seconds(3)])
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after(
    site: Site, fetcher: FileFetcher, status: int, wait: Callable[[], str]
) -> None:
    site.pages["/a"] = web.status(status, Retry_After=wait())
    ask(fetcher, site.url("/a"))
    assert fetcher.client.hosts.resting(time.monotonic() + 1) == ["127.0.0.1"]
    with pytest.raises(Deferred):
        ask(fetcher, site.url("/a"), seconds=1)
    assert len(site.asked("/a")) == 1
    site.pages["/a"] = web.text("x")
    assert isinstance(ask(fetcher, site.url("/a"), seconds=5), FileContent)
    first, second = (r.at for r in site.asked("/a"))
    assert second - first > 1.9


def test_a_host_that_fails_rests_longer_each_time(site: Site, fetcher: FileFetcher) -> None:
    fetcher = paced(fetcher, HostPolicy(rest=0.2))
    site.pages["/a"] = web.status(500)
    for _ in range(4):
        ask(fetcher, site.url("/a"))
    times = [r.at for r in site.asked("/a")]
    rests = [b - a for a, b in pairwise(times)]
    assert rests[0] > 0.19
    assert rests[1] > 0.39
    assert rests[2] > 0.79


@in_real_time
def test_a_host_that_has_not_this_file_is_well(site: Site, fetcher: FileFetcher) -> None:
    fetcher = paced(fetcher, HostPolicy(rest=0.3))
    site.pages["/a"] = web.then(*[web.status(500), web.status(404)] * 3)
    for _ in range(6):
        ask(fetcher, site.url("/a"))
    times = [r.at for r in site.asked("/a")]
    assert times[-1] - times[0] < 1.5  # each rest is as short as the first


@pytest.mark.parametrize("robots", [404, 503])
def test_a_failure_that_is_kept_keeps_nothing_else(
    site: Site, fetcher: FileFetcher, robots: int
) -> None:
    """A batch has thousands of them, and what was raised holds on to all that it came through."""
    site.pages["/robots.txt"] = web.status(robots)
    for number in range(3):
        result = ask(fetcher, site.url(f"/{number}"))
        assert isinstance(result, FetchError)
        assert (result.__traceback__, result.__cause__, result.__context__) == (None, None, None)
