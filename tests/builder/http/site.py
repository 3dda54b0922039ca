"""A web server of this machine that does to each path what a test says."""

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.listening import QuietHandler, listening

Answer = Callable[[Any], None]
"""What is done with the handler of a request."""


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    at: float
    client: int = 0


@dataclass
class Site:
    """What is answered by path, and what was asked for. `pages` may be changed at any time.

    `other` answers what they lack; connections stay open where the site is `lasting`.
    """

    port: int = 0
    other: Answer | None = None
    lasting: bool = False
    pages: dict[str, Answer] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    active: int = 0
    most: int = 0

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def asked(self, path: str) -> list[Request]:
        with self.lock:
            return [r for r in self.requests if r.path == path]

    def paths(self) -> list[str]:
        with self.lock:
            return [r.path for r in self.requests]


class _Handler(QuietHandler):
    site: Site

    def do_GET(self) -> None:
        site = self.site
        with site.lock:
            headers = {name.lower(): value for name, value in self.headers.items()}
            now, client = time.monotonic(), self.client_address[1]
            site.requests.append(Request(self.path, headers, now, client))
            site.active += 1
            site.most = max(site.most, site.active)
        try:
            site.pages.get(self.path, site.other or status(404))(self)
        finally:
            with site.lock:
                site.active -= 1
            self.close_connection |= not site.lasting


@contextmanager
def serving(
    host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> Iterator[Site]:
    site = Site()
    with listening(type("Handler", (_Handler,), {"site": site}), host, port, tls) as site.port:
        yield site


def text(body: bytes | str, kind: str = "application/pdf", code: int = 200, **more: str) -> Answer:
    data = body.encode() if isinstance(body, str) else body

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(data)))
        for name, value in more.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def status(code: int, **more: str) -> Answer:
    return text(b"", "text/html", code, **more)


def redirect(target: str, code: int = 302) -> Answer:
    return status(code, Location=target)


def conditional(body: bytes, etag: str) -> Answer:
    """A file that is given only to who does not have it."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.headers.get("If-None-Match") == etag:
            handler.send_response(304)
            handler.send_header("ETag", etag)
            handler.end_headers()
        else:
            text(body, ETag=etag)(handler)

    return answer


def ranged(body: bytes, etag: str = "", modified: str = "", cut: int = 1 << 62) -> Answer:
    """A file in ranges, as nginx gives it; each answer breaks off after `cut` bytes of it."""
    more = {**({"ETag": etag} if etag else {}), **({"Last-Modified": modified} if modified else {})}

    def answer(handler: BaseHTTPRequestHandler) -> None:
        wanted = handler.headers.get("Range")
        asked = handler.headers.get("If-Match", etag), handler.headers.get("If-Unmodified-Since")
        if asked[0] != etag or asked[1] not in (None, modified):
            status(412)(handler)
            return
        if wanted is None:
            start, end, code = 0, len(body), 200
        else:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, end, code = int(first), min(int(last) + 1, len(body)), 206
        if start >= end:
            status(416, Content_Range=f"bytes */{len(body)}")(handler)
            return
        handler.send_response(code)
        for name, value in more.items():
            handler.send_header(name, value)
        if code == 206:
            handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(body)}")
        handler.send_header("Content-Length", str(end - start))
        handler.end_headers()
        handler.wfile.write(body[start : min(end, start + cut)])

    return answer


def then(*answers: Answer) -> Answer:
    """One answer after the other; the last one from then on."""
    left = list(answers)
    lock = threading.Lock()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        with lock:
            now = left.pop(0) if len(left) > 1 else left[0]
        now(handler)

    return answer


def raw(data: bytes, pause: float = 0, slices: int = 1, first: bytes = b"") -> Answer:
    """Bytes as they are: the first at once, then so many slices with a pause behind each."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(first)
        size = -(-len(data) // slices)
        for start in range(0, len(data), size):
            handler.wfile.write(data[start : start + size])
            handler.wfile.flush()
            time.sleep(pause)

    return answer


def silent(seconds: float) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(seconds)

    return answer
