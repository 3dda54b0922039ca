"""Web servers of the demo, over real HTTP on the loopback interface.

The web site has the stored pages of several hosts; the Host header selects one. The shelf has
full texts and other files, which may change while it is served.
"""

import gzip
import hashlib
import html
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, unquote_plus

PAGES = Path(__file__).parent / "pages"

HOSTS = {"www.example.org": "www", "blog.example.org": "blog", "data.example.com": "data"}
"""The hosts of the site, and the folder of each."""

SEEDS = tuple(f"http://{host}/" for host in HOSTS)

_HTML = "text/html; charset=utf-8"
_TYPES = {
    ".css": "text/css",
    ".gif": "image/gif",
    ".html": _HTML,
    ".js": "text/javascript",
    ".json": "application/json",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".rss": "application/rss+xml",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".xml": "application/xml",
}

_Address = tuple[str, str]  # a host and a decoded path

_BARE_HTML: frozenset[_Address] = frozenset({("www.example.org", "/historie.html")})
"""Pages whose header has no charset: only the page itself declares it."""

_GZIPPED: frozenset[_Address] = frozenset({("blog.example.org", "/")})
"""Files that are served compressed to a client that accepts it."""

_REDIRECTS: dict[_Address, str] = {
    ("www.example.org", "/oteviraci-doba"): "http://www.example.org/kontakt.html"
}

_RENAMED: dict[_Address, str] = {
    ("www.example.org", "/katalog.html"): "/katalog",
    ("www.example.org", "/akce/ctenarska-noc.html"): "/akce/čtenářská-noc.html",
}
"""Files that are served under another path than their own."""

_MISSING = """<!DOCTYPE html>
<html lang="cs"><head><title>Stránka nenalezena</title></head>
<body><p>Tady nic není. <a href="/">Zpět na úvod</a></p></body></html>
""".encode()
_PDF_TYPE = "application/pdf"


@dataclass(frozen=True)
class SiteAnswer:
    """The site's response to one request: a status, headers and a body."""

    status: HTTPStatus
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Site:
    """The pages by host and path, and the number of requests for each."""

    def __init__(self, pages: Path = PAGES) -> None:
        self._files = {
            address: file
            for host, folder in HOSTS.items()
            for address, file in _addresses(host, pages / folder)
        }
        self._visits: Counter[_Address] = Counter()

    def answer(self, host: str, target: str, accepts_gzip: bool = False) -> SiteAnswer:
        """Return the response to a GET of `target`, a path with or without a query, at `host`."""
        path, _, query = target.partition("?")
        address = (host.partition(":")[0].lower(), unquote(path))
        if location := _REDIRECTS.get(address):
            moved = f'<a href="{location}">Přestěhováno</a>\n'.encode()
            return SiteAnswer(
                HTTPStatus.MOVED_PERMANENTLY,
                (("Location", location), ("Content-Type", _HTML)),
                moved,
            )
        file = self._files.get(address)
        if file is None:
            return SiteAnswer(HTTPStatus.NOT_FOUND, (("Content-Type", _HTML),), _MISSING)
        self._visits[address] += 1
        body = _fill(file.read_bytes(), self._visits[address], query)
        kind = "text/html" if address in _BARE_HTML else _TYPES[file.suffix]
        headers = [("Content-Type", kind)]
        if address in _GZIPPED:
            headers.append(("Vary", "Accept-Encoding"))
            if accepts_gzip:
                headers.append(("Content-Encoding", "gzip"))
                body = gzip.compress(body, mtime=0)
        return SiteAnswer(HTTPStatus.OK, tuple(headers), body)


def _addresses(host: str, folder: Path) -> Iterator[tuple[_Address, Path]]:
    for file in sorted(folder.rglob("*")):
        if file.suffix in _TYPES:
            path = "/" + file.relative_to(folder).as_posix().removesuffix("index.html")
            yield (host, _RENAMED.get((host, path), path)), file


def _fill(body: bytes, visit: int, query: str) -> bytes:
    asked = html.escape(unquote_plus(query)).encode()
    return body.replace(b"{{visit}}", b"%d" % visit).replace(b"{{query}}", asked)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing the server waits for its threads

    def __init__(self, site: Site, clock: Callable[[], datetime]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.site = site
        self.clock = clock


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    server: _Server

    def do_GET(self) -> None:
        """Answer one GET and close the connection."""
        accepts_gzip = "gzip" in self.headers.get("Accept-Encoding", "")
        answer = self.server.site.answer(self.headers.get("Host", ""), self.path, accepts_gzip)
        self.send_response_only(answer.status)
        self.send_header("Server", "lipova")
        now = self.server.clock().astimezone(UTC)
        self.send_header("Date", format_datetime(now, usegmt=True))
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the demo shows the crawl's summary instead."""


def _now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def serve(clock: Callable[[], datetime] = _now) -> Iterator[tuple[str, int]]:
    """Serve the site while the block runs; give the address and the port to connect to."""
    with _Server(Site(), clock) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="demo-site")
        thread.start()
        try:
            yield "127.0.0.1", server.server_port
        finally:
            server.shutdown()
            thread.join()


class Shelf:
    """Full texts by path; changes apply from the next request on."""

    def __init__(self, texts: dict[str, bytes]) -> None:
        self._texts = dict(texts)
        self._media: dict[str, str] = {}

    def put(self, path: str, text: bytes, media: str = _PDF_TYPE) -> None:
        """Serve `text` at `path` from now on, with that media type."""
        self._texts[path], self._media[path] = text, media

    def take(self, path: str) -> None:
        """Answer 404 at `path` from now on."""
        del self._texts[path]

    def media(self, path: str) -> str:
        """Return the media type of the text at `path`."""
        return self._media.get(path, _PDF_TYPE)

    def answer(self, path: str, known: str | None) -> tuple[HTTPStatus, str | None, bytes]:
        """Return status, ETag and body for a client whose cached ETag is `known`."""
        text = self._texts.get(path)
        if text is None:
            return HTTPStatus.NOT_FOUND, None, b"There is nothing here.\n"
        tag = f'"{hashlib.sha256(text).hexdigest()[:16]}"'
        if known == tag:
            return HTTPStatus.NOT_MODIFIED, tag, b""
        return HTTPStatus.OK, tag, text


class _ShelfServer(ThreadingHTTPServer):
    daemon_threads = False  # so that closing the server waits for its threads

    def __init__(self, shelf: Shelf) -> None:
        super().__init__(("127.0.0.1", 0), _ShelfHandler)
        self.shelf = shelf


class _ShelfHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    server: _ShelfServer

    def do_GET(self) -> None:
        """Answer one GET and close the connection."""
        status, tag, body = self.server.shelf.answer(self.path, self.headers.get("If-None-Match"))
        self.send_response(status)
        if tag is not None:
            self.send_header("ETag", tag)
        if status != HTTPStatus.NOT_MODIFIED:
            media = self.server.shelf.media(self.path)
            kind = media if status == HTTPStatus.OK else "text/plain"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the demo shows the gathered files instead."""


@contextmanager
def serve_shelf(shelf: Shelf) -> Iterator[str]:
    """Serve the texts while the block runs; give the URL without a final slash."""
    with _ShelfServer(shelf) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="demo-shelf")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
