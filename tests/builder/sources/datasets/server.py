"""A fake of all platforms: one server of this machine that answers by host, path and query.

It speaks TLS and plain HTTP on one port. What is asked for, and how many bytes of a body were sent,
stands in its log. Answers are made by `served`, `json_of`, `html`, `status`, `redirect` and their
like, one after the other by `then`, and faults are arguments of `served`:

    with serving() as server:
        server.add("https://zenodo.org/api/records/1", json_of({"id": 1}))
        server.add("https://zenodo.org/api/records/1/files/a/content",
                   then(served(body, cut=600), served(body)))

A path of a URL that is added stands as it is sent, escapes and all. One with a query is looked for
first, then the path alone, then its first folder, and at last its host, both followed by `*`. What
was not added is answered 404. HEAD is always answered 403.
"""

import gzip
import json
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.builder.http import certificates
from tests.builder.http.site import redirect as redirect
from tests.builder.http.site import text as text
from tests.builder.http.site import then as then
from tests.builder.sources.datasets.body import STEP, Body, chunks, digest, whole
from tests.listening import QuietHandler, listening

_WAIT = 0.02
DATE = "Mon, 16 Nov 2026 10:00:00 GMT"
"""When files are served."""


@dataclass
class Asked:
    """A request that came; names of headers in lower case. `sent` counts bytes of the body.

    `port` is the client's, and so one for each connection.
    """

    method: str
    scheme: str
    host: str
    target: str
    headers: dict[str, str]
    at: float
    sent: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}{self.target}"


Answer = Callable[["Exchange"], None]


@dataclass
class Server:
    """What is answered, by host and path, and what was asked for. Routes may change at any time."""

    port: int = 0
    routes: dict[tuple[str, str], Answer] = field(default_factory=dict)
    log: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)
    active: int = 0
    most: int = 0
    keeps: bool = False
    """Whether connections are kept, as clients ask for."""

    def add(self, url: str, answer: Answer) -> str:
        """Answer a URL so from now on, whichever its scheme, and return it."""
        parts = urlsplit(url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        self.routes[parts.netloc, target or "/"] = answer
        return url

    def asked(self, url: str = "", method: str = "GET") -> list[Asked]:
        """Return the requests whose URL begins with `url`, in order."""
        with self.lock:
            return [a for a in self.log if a.url.startswith(url) and a.method == method]

    def hosts(self) -> set[str]:
        """Return the names of hosts that there are."""
        return {host.partition(":")[0] for host, _ in self.routes}

    def forget(self) -> None:
        """Begin the log anew."""
        with self.lock:
            self.log.clear()

    def find(self, host: str, target: str) -> Answer:
        path = target.partition("?")[0]
        above = path[: path.find("/", 1) + 1]
        places = (target, path, f"{above}*", "/*")
        return next(filter(None, (self.routes.get((host, p)) for p in places)), status(404))


class Exchange(QuietHandler):
    """A request that is to be answered."""

    site: Server
    asked: Asked

    def send_response(self, code: int, message: str | None = None) -> None:
        """Send no fields but those that are said."""
        self.send_response_only(code, message)

    def head(self, code: int, headers: Mapping[str, str]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send(self, data: bytes) -> None:
        self.wfile.write(data)
        self.asked.sent += len(data)

    def wait(self, seconds: float) -> None:
        """Wait; raises where the test ended, or the client left, meanwhile."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pause = min(_WAIT, max(0.0, end - time.monotonic()))
            if self.site.ended.wait(pause) or self.left():
                raise BrokenPipeError

    def left(self) -> bool:
        """Tell whether the client hung up."""
        self.connection.setblocking(False)
        try:
            return not self.connection.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError:
            return True
        finally:
            with suppress(OSError):
                self.connection.settimeout(None)

    def do_GET(self) -> None:
        site = self.site
        scheme = "https" if isinstance(self.connection, ssl.SSLSocket) else "http"
        headers = {name.lower(): value for name, value in self.headers.items()}
        host = headers.get("host", "")
        port = self.client_address[1]
        now = time.monotonic()
        self.asked = Asked(self.command, scheme, host, self.path, headers, now, port=port)
        with site.lock:
            site.log.append(self.asked)
            site.active += 1
            site.most = max(site.most, site.active)
        answer = status(403) if self.command == "HEAD" else site.find(host, self.path)
        try:
            answer(self)
        finally:
            with site.lock:
                site.active -= 1
            self.close_connection = self.close_connection or not site.keeps

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET


@contextmanager
def serving() -> Iterator[Server]:
    """Give a server that answers until the block ends."""
    site = Server()
    handler = type("Handler", (Exchange,), {"site": site})
    with listening(handler, tls=certificates.any_host()) as site.port:
        try:
            yield site
        finally:
            site.ended.set()


def served(
    body: Body,
    media_type: str = "application/octet-stream",
    *,
    code: int = 200,
    etag: str | None = "strong",
    modified: str | None = "Mon, 02 Nov 2026 10:00:00 GMT",
    ranges: bool = True,
    obeys: bool = True,
    cut: int | None = None,
    wrong: int | None = None,
    drip: tuple[float, int] | None = None,
    length: int | None = None,
    sized: bool = True,
    chunked: bool = False,
    coding: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Give a file.

    `etag` is strong, weak, None, or a tag as it is sent. Ranges are served, with If-Range, unless
    not `ranges`; If-Range counts if the server `obeys`. `cut`: the connection ends behind so many
    bytes of the file. `wrong`: the byte of the file at that place is another. `drip`: so many
    seconds behind so many bytes. `length` is told instead of the true one; none is if not `sized`,
    or if `chunked`. `coding` is gzip: the body is sent packed, whole.
    """
    sent = gzip.compress(whole(body), mtime=0) if coding == "gzip" else body
    tag = {"strong": f'"{_tag(sent)}"', "weak": f'W/"{_tag(sent)}"'}.get(etag or "", etag)

    def answer(exchange: Exchange) -> None:
        start, until = 0, len(sent)
        said = {"Content-Type": media_type, "Date": DATE, **(headers or {})}
        said |= {"ETag": tag} if tag else {}
        said |= {"Last-Modified": modified} if modified else {}
        said |= {"Content-Encoding": coding} if coding else {}
        said |= {"Accept-Ranges": "bytes"} if ranges else {}
        now = code
        wanted = exchange.asked.headers.get("range", "")
        condition = exchange.asked.headers.get("if-range")
        held = condition in (None, modified) or (condition == tag and tag[:1] == '"') or not obeys
        if ranges and code == 200 and wanted.startswith("bytes=") and held:
            first, _, last = wanted[6:].partition("-")
            start = int(first) if first else max(0, len(sent) - int(last))
            until = min(len(sent), int(last) + 1) if first and last else len(sent)
            if start >= len(sent):
                gone = {"Content-Range": f"bytes */{len(sent)}", "Content-Length": "0"}
                exchange.head(416, said | gone)
                return
            now = 206
            said["Content-Range"] = f"bytes {start}-{until - 1}/{len(sent)}"
        if chunked:
            said["Transfer-Encoding"] = "chunked"
        elif sized:
            said["Content-Length"] = str(until - start if length is None else length)
        exchange.head(now, said)
        _stream(exchange, sent, start, until, cut, wrong, drip, chunked)

    return answer


def _stream(
    exchange: Exchange,
    body: Body,
    start: int,
    until: int,
    cut: int | None,
    wrong: int | None,
    drip: tuple[float, int] | None,
    chunked: bool,
) -> None:
    end = until if cut is None else min(until, cut)
    step = drip[1] if drip else STEP
    at = start
    for found in chunks(body, start, end):
        for offset in range(0, len(found), step):
            data = bytearray(found[offset : offset + step])
            if wrong is not None and at <= wrong < at + len(data):
                data[wrong - at] ^= 1
            at += len(data)
            if chunked:
                exchange.wfile.write(b"%x\r\n%b\r\n" % (len(data), bytes(data)))
                exchange.asked.sent += len(data)
            else:
                exchange.send(bytes(data))
            if drip:
                exchange.wait(drip[0])
    if chunked and end == until:
        exchange.wfile.write(b"0\r\n\r\n")


def _tag(body: Body) -> str:
    return digest("md5", body[:STEP] if isinstance(body, bytes) else repr(body).encode())


def json_of(value: Any, code: int = 200, **headers: str) -> Answer:
    """Give a JSON document; `_` of a header's name stands for `-`."""
    return text(json.dumps(value), "application/json", code, **headers)


def html(body: str, code: int = 200, **headers: str) -> Answer:
    """Give a page."""
    return text(body, "text/html; charset=utf-8", code, **headers)


def status(code: int, **headers: str) -> Answer:
    """Give an answer without a body, which is no page that could be read."""
    return text(b"", "text/plain", code, **headers)


def silent(seconds: float = 600) -> Answer:
    """Never answer, as long as the test lasts."""

    def answer(exchange: Exchange) -> None:
        with suppress(BrokenPipeError):
            exchange.wait(seconds)

    return answer


def endless(media_type: str = "application/octet-stream", pause: float = 0.001) -> Answer:
    """Give bytes for as long as they are taken."""

    def answer(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Type": media_type})
        while not exchange.site.ended.is_set():
            exchange.send(b"x" * 4096)
            time.sleep(pause)

    return answer


def bomb(gigabytes: int = 10, media_type: str = "application/json") -> Answer:
    """Give a document in gzip that is that large once it is unpacked: JSON, one long text."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    first = packer.compress(b'{"a": "') + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b"a" * (64 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)

    def answer(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Type": media_type, "Content-Encoding": "gzip"})
        exchange.send(first)
        for _ in range(gigabytes * 16):
            exchange.send(block)

    return answer


LOGIN = (
    "<!DOCTYPE html><html><head><title>Sign in</title></head><body><form method='post' "
    "action='/login'><input name='user'><input type='password' name='password'></form></body>"
    "</html>"
)
ROBOTS_OUT = (
    "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>"
    "<script src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1'></script></body></html>"
)


def login() -> Answer:
    """Give a page to log in, with 200, whatever was asked for."""
    return html(LOGIN)


def bot_wall(code: int = 403) -> Answer:
    """Give a page that keeps robots out."""
    return html(ROBOTS_OUT, code, Server="cloudflare", cf_mitigated="challenge")
