"""One exchange as it went over the wire, and the links that a page leads to."""

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO

import pytest
from warcio.archiveiterator import ArchiveIterator

from builder.demo.crawl import CrawlSummary, Politeness, crawl
from builder.demo.fetch import CrawlError, canonical, fetch, links

HASTY = Politeness(delay=0, pause=0, sleep=lambda seconds: None)


def still() -> datetime:
    return datetime(2024, 5, 1, tzinfo=UTC)


@contextmanager
def canned(answer: Callable[[bytes], bytes]) -> Iterator[tuple[str, int]]:
    """A server of raw bytes: what `answer` returns for the head of a request."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()

        def run() -> None:
            while True:
                connection, _ = server.accept()
                with connection:
                    request = b""
                    while not request.endswith(b"\r\n\r\n"):
                        part = connection.recv(4096)
                        if not part:
                            return
                        request += part
                    connection.sendall(answer(request))

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield address
        finally:
            socket.create_connection(address).close()  # says nothing: the server ends
            thread.join()


ODD = b"HTTP/1.0 200 Fine  by me\r\nx-odd:  \xe8esky \r\nX-ODD:2\r\n\r\nbody\r\n\r\n"


def test_bytes_are_kept_exactly() -> None:
    requests: list[bytes] = []

    def answer(request: bytes) -> bytes:
        requests.append(request)
        return ODD

    with canned(answer) as address:
        exchange = fetch("http://www.example.org/a?b=c", address, "me", 10)
        out = BytesIO()
        crawl(
            ["http://www.example.org/"],
            address,
            out,
            clock=still,
            visits=1,
            politeness=HASTY,
        )
    assert exchange.head + exchange.body == ODD
    assert exchange.content == b"body\r\n\r\n"
    assert exchange.request == requests[0]
    assert requests[0].startswith(b"GET /a?b=c HTTP/1.1\r\nHost: www.example.org\r\n")
    blocks = [
        record.raw_stream.read()
        for record in ArchiveIterator(BytesIO(out.getvalue()), no_record_parse=True)
    ]
    assert blocks[1:] == [ODD, requests[1], ODD, requests[2]]


def test_chunked_bodies_are_read_and_kept_as_received() -> None:
    body = b"4\r\nbody\r\n0\r\n\r\n"
    with canned(lambda _: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body) as at:
        exchange = fetch("http://www.example.org/", at, "me", 10)
    assert exchange.content == b"body"
    assert exchange.body == body


def test_a_host_whose_robots_fails_is_left_alone() -> None:
    with canned(lambda _: b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n") as address:
        out = BytesIO()
        summary = crawl(["http://www.example.org/"], address, out, clock=still, politeness=HASTY)
    assert summary == CrawlSummary(captures=2, revisits=0, redirects=0, errors=2, excluded=2)


def test_a_limit_of_urls_holds() -> None:
    def endless(request: bytes) -> bytes:
        link = hashlib.sha1(request).hexdigest().encode()
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=" + link + b">"

    polite = Politeness(sleep=lambda seconds: None, most_urls=5)
    with canned(endless) as address:
        seeds = ["http://www.example.org/"]
        summary = crawl(seeds, address, BytesIO(), clock=still, visits=1, politeness=polite)
    assert summary.captures == 6


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nno gzip",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\xff",
    ],
)
def test_a_bad_answer_is_one_line(answer: bytes) -> None:
    url = "http://www.example.org/"
    with canned(lambda _: answer) as address, pytest.raises(CrawlError) as caught:
        fetch(url, address, "me", 10)
    assert str(caught.value).startswith(f"{url} could not be fetched: ")
    assert "\n" not in str(caught.value)


def test_seeds_must_be_http_urls() -> None:
    for seeds in ([], ["ftp://www.example.org/"], ["http://www.example.org/", "http://["]):
        with pytest.raises(ValueError):
            crawl(seeds, ("127.0.0.1", 1), BytesIO(), clock=still)


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("b.html#part", "http://example.org/a/b.html"),
        ("/č ?d=ř&e=%20", "http://example.org/%C4%8D%20?d=%C5%99&e=%20"),
        ("//EXAMPLE.com:80", "http://example.com/"),
        ("http://example.com:8080/x", "http://example.com:8080/x"),
        ("https://example.org/", None),
        ("mailto:a@example.org", None),
        ("http://[", None),
        ("http://example.org:port/", None),
    ],
)
def test_canonical(link: str, url: str | None) -> None:
    assert canonical(link, "http://example.org/a/") == url


def test_links_in_every_charset() -> None:
    base = "http://example.org/"
    page = '<meta charset={}><a href="/č">x<img src="/č"><a href>'
    expected = ["http://example.org/%C4%8D"]
    assert links(page.format("windows-1250").encode("windows-1250"), base, None) == expected
    assert links(page.format("none-such").encode(), base, None) == expected
    assert links(page.format("latin-1").encode(), base, "utf-8") == expected
    assert links(b'<a href="/\xc4\x8d">', base, None) == expected
