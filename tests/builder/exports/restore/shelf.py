"""A small archive with all that a restore meets, published, and served over HTTP."""

import base64
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from builder.exports.restore import names
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.content import assembly
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository
from tests.builder.sources.webarchives.containers import arc, filedesc, http, members, warc
from tests.e2e.conftest import Home
from tests.serving import serving as running

EARLY, LATE = b"2008-04-30T20:48:26Z", b"2010-01-02T03:04:05Z"
LONG = b"long " * 100_000
PAGE = "<title>Žluť</title><a href=/x.html>".encode()


def sha1(payload: bytes) -> bytes:
    return b"sha1:" + base64.b32encode(hashlib.sha1(payload).digest())


def chunked(body: bytes, size: int = 1000) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)] + [b""]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def response(url: bytes, body: bytes, *fields: bytes, date: bytes = EARLY, **more: bytes) -> bytes:
    """Return a response's record; `status` is its status line."""
    lines = fields or (b"Content-Type: text/html",)
    block = http(body, *lines, **({"status": more["status"]} if "status" in more else {}))
    return warc(block, b"Content-Type: application/http; msgtype=response", url=url, date=date)


def revisit(url: bytes, body: bytes, date: bytes) -> bytes:
    """Return the record of a revisit, with its own head."""
    profile = b"WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest"
    return warc(
        http(b"", b"Content-Type: text/html"),
        profile,
        b"WARC-Payload-Digest: " + sha1(body),
        b"Content-Type: application/http; msgtype=response",
        kind=b"revisit",
        url=url,
        date=date,
    )


TYPE = b"Content-Type: text/html"
RECORDS = [
    response(b"http://www.a.cz/", b"first", b"Last-Modified: Tue, 01 Jan 2008 10:00:00 GMT", TYPE),
    response(b"http://www.a.cz/", PAGE, date=LATE),
    response(b"http://www.a.cz/same", b"same"),
    revisit(b"http://www.a.cz/same", b"same", LATE),
    response(b"http://www.a.cz/x.html", b"x", date=LATE, status=b"HTTP/1.1 404 Not Found"),
    response(b"http://www.a.cz/x.html", b"x"),
    response(
        b"http://www.a.cz/moved", b"", b"Location: http://b.cz/new", status=b"HTTP/1.1 301 Moved"
    ),
    response(b"http://b.cz/new", b"new"),
    response(b"http://a.cz/gzip", gzip.compress(LONG), TYPE, b"Content-Encoding: gzip"),
    response(
        b"http://a.cz/chunked",
        chunked(zlib.compress(LONG)),
        TYPE,
        b"Transfer-Encoding: chunked",
        b"Content-Encoding: deflate",
    ),
    response(b"http://a.cz/gif", b"GIF89a", b"Content-Type: image/gif"),
]
FILES = {
    # URL, as of the end: the bytes that a restore gives
    "http://www.a.cz/": PAGE,
    "http://www.a.cz/same": b"same",
    "http://www.a.cz/x.html": b"x",
    "http://b.cz/new": b"new",
    "http://a.cz/gzip": LONG,
    "http://a.cz/chunked": LONG,
    "http://a.cz/gif": b"GIF89a",
    "http://c.cz/arc": b"out of an ARC",
}


@dataclass
class Shelf:
    """A home with the archive in it; `crawl` are its archive files."""

    home: Home
    crawl: Path

    @property
    def store(self) -> Path:
        return self.home.folder / "store"

    @contextmanager
    def served(self, **settings: object) -> Iterator[str]:
        """Serve metadata and content; give the address of the site."""
        with serving(self.home, **settings) as base:
            yield base


def fill(home: Home, crawl: Path) -> Shelf:
    """Publish the archive."""
    crawl.mkdir()
    (crawl / "one.warc.gz").write_bytes(members(RECORDS))
    old = arc(http(b"out of an ARC"), b"http://c.cz/arc")
    (crawl / "two.arc").write_bytes(filedesc() + old)
    home.config.write_text(
        home.config.read_text().replace("# include = []", 'include = ["errors", "redirects"]')
    )
    for command in (("ingest", crawl, "--jobs", "1"), ("publish",)):
        done = home(*command)
        assert done.code == 0, done.err
    return Shelf(home, crawl)


@contextmanager
def serving(home: Home, **settings: object) -> Iterator[str]:
    """Serve a home's store as `sheaf serve --content` does; give the address of the site."""
    values = configuration.load(home.config, {}).having("content.serve", True)
    for name, value in settings.items():
        values = values.having(name.replace("__", "."), value)
    repository = DuckRepository(FolderStore(home.folder / "store"))

    def clock() -> datetime:
        return datetime.now(UTC)

    metadata = Application(repository, values, clock)
    content = assembly.application(
        repository, str(home.folder / "store"), home.folder, values, {}, clock
    )

    try:
        with running(assembly.beside(content, metadata.answer)) as server:
            yield server.url
    finally:
        repository.close()


def tree(target: Path) -> dict[str, bytes]:
    """Return the files of a restored folder, but for its manifest."""
    return {
        path.relative_to(target).as_posix(): path.read_bytes()
        for path in sorted(target.rglob("*"))
        if path.is_file() and path.name != names.MANIFEST
    }


def lines(target: Path) -> list[dict[str, Any]]:
    """Return what its manifest tells."""
    return [json.loads(line) for line in (target / names.MANIFEST).read_text().splitlines()]
