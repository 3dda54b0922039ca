"""A web server of a folder's files, as an archive puts them on the web: good, plain or bad."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


@dataclass
class Site:
    """What tests steer: whether the server knows ranges and tags, and what a file's bytes become.

    `status` gives a path another status than 200. `asked` are the paths with their ranges.
    """

    url: str = ""
    ranges: bool = True
    tags: bool = True
    alter: Callable[[str, bytes], bytes] = lambda path, data: data
    status: Callable[[str], int] = lambda path: 200
    asked: list[tuple[str, str | None]] = field(default_factory=list)


@contextmanager
def on_the_web(folder: Path) -> Iterator[Site]:
    """Serve the files of a folder."""
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site, folder))
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(site: Site, folder: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            path = unquote(self.path.partition("?")[0]).lstrip("/")
            wanted = self.headers.get("Range")
            site.asked.append((path, wanted))
            status = site.status(path)
            if status == 200 and not (folder / path).is_file():
                status = 404
            if status != 200:
                self._send(status, b"no such file")
                return
            data = site.alter(path, (folder / path).read_bytes())
            tag = f'"{sha256(data).hexdigest()[:16]}"'
            if self.headers.get("If-Match", tag) != tag and site.tags:
                self._send(412, b"")
                return
            headers = {"ETag": tag} if site.tags else {}
            found = _RANGE.fullmatch(wanted or "")
            if not (site.ranges and found):
                self._send(200, data, headers)
                return
            start, end = int(found[1]), min(int(found[2]) + 1, len(data))
            if start >= len(data):
                self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
            self._send(206, data[start:end], headers)

        do_HEAD = do_GET  # noqa: N815

        def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Last-Modified", formatdate(0, usegmt=True))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            pass

    return Handler
