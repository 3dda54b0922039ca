"""A web server of a folder's files, as an archive puts them on the web: good, plain or bad."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote

from tests.listening import QuietHandler, listening

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
    with listening(_handler(site, folder)) as port:
        site.url = f"http://127.0.0.1:{port}"
        yield site


def _handler(site: Site, folder: Path) -> type[QuietHandler]:
    class Handler(QuietHandler):
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

        do_HEAD = do_GET

        def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.reply(
                status, body, {"Last-Modified": formatdate(0, usegmt=True), **(headers or {})}
            )

    return Handler
