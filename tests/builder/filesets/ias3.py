"""A little of archive.org: items that are written as S3 objects and read as metadata.

It keeps to what its library and documentation say: an item is made with its first file, a file's
MD5 must be that of Content-MD5, keys stand in `Authorization: LOW access:secret`, files of its own
are listed beside those that were put there, and what is put is listed once it was worked on.
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from requests.adapters import HTTPAdapter

KEYS = ("access", "secret")
S3, META = "s3.us.archive.org", "archive.org"


@dataclass
class Internet:
    """What archive.org has: bytes by item and path, and the metadata that items were made with.

    `refusals` are statuses that the next uploads are refused with. While `slow`, what was put is
    not listed, and the item says that it is being worked on.
    """

    port: int = 0
    items: dict[str, dict[str, bytes]] = field(default_factory=dict)
    metadata: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    slow: bool = False
    spoils: bool = False

    def puts(self) -> list[str]:
        return [path for method, path in self.log if method == "PUT"]

    def adapters(self) -> dict[str, HTTPAdapter]:
        return {f"https://{host}": Local(self.port) for host in (S3, META)}

    def told(self, name: str) -> dict[str, Any]:
        """Return the answer of the metadata API; an item that is not is an empty one."""
        if name not in self.items:
            return {}
        made = [{"name": f"{name}_meta.xml", "source": "metadata", "md5": "0" * 32}]
        listed = [] if self.slow else [_row(p, b) for p, b in self.items[name].items()]
        more = {"pending_tasks": True} if self.slow else {}
        return {"metadata": {"identifier": name}, "files": [*made, *listed], **more}


def _row(path: str, body: bytes) -> dict[str, str]:
    return {
        "name": path,
        "source": "original",
        "size": str(len(body)),
        "md5": hashlib.md5(body).hexdigest(),
        "sha1": hashlib.sha1(body).hexdigest(),
    }


class Local(HTTPAdapter):
    """Carries requests for archive.org's hosts to this machine."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port

    def send(self, request: Any, **more: Any) -> Any:
        parts = urlsplit(request.url)
        request.headers["Host"] = parts.netloc
        request.url = f"http://127.0.0.1:{self._port}{parts.path}"
        return super().send(request, **more)


class _Handler(BaseHTTPRequestHandler):
    site: Internet

    def do_GET(self) -> None:
        self.site.log.append(("GET", self.path))
        assert self.headers["Host"] == META
        if self.site.unread:
            self._answer(self.site.unread.pop(0), b"")
        else:
            document = self.site.told(self.path.removeprefix("/metadata/"))
            self._answer(200, json.dumps(document).encode())

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.site.log.append(("PUT", self.path))
        assert self.headers["Host"] == S3
        assert "transfer-encoding" not in self.headers
        if self.headers["Authorization"] != "LOW " + ":".join(KEYS):
            self._refuse(403, "AccessDenied")
        elif self.headers["Content-MD5"] != hashlib.md5(body).hexdigest():
            self._refuse(400, "BadDigest")
        elif self.site.refusals:
            self._refuse(self.site.refusals.pop(0), "SlowDown")
        else:
            _, item, path = unquote(self.path).split("/", 2)
            if item not in self.site.items:
                self.site.items[item] = {}
                self.site.metadata[item] = self._metadata()
            self.site.items[item][path] = body[:-1] + b"!" if self.site.spoils else body
            self._answer(200, b"")

    def _metadata(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, value in sorted(self.headers.items()):
            head, _, key = name.lower().partition("x-archive-meta")
            if not head and key:
                text = unquote(value[4:-1]) if value.startswith("uri(") else value
                found.setdefault(key.split("-", 1)[1].replace("--", "_"), []).append(text)
        return found

    def _refuse(self, code: int, name: str) -> None:
        self._answer(code, f"<Error><Code>{name}</Code><Message>no</Message></Error>".encode())

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def internet() -> Iterator[Internet]:
    """Give archive.org, empty."""
    site = Internet()
    handler = type("Handler", (_Handler,), {"site": site})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        site.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
