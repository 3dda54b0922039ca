"""The round trip: a recorded site is published, served and restored, and it is the same site."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from builder.commands.demo import samples
from tests.builder.exports.restore.shelf import lines, serving, tree
from tests.e2e.conftest import ARCHIVES, Home, make_home, sheaf
from tests.e2e.test_server import running
from tests.listening import QuietHandler, listening

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCREENS = {
    # page of the site, where it is restored to
    "http://www.example.org/": "www.example.org/index.html",
    "http://blog.example.org/": "blog.example.org/index.html",
}
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--no-proxy-server",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=800,1000",
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """An archive of the demo's site, recorded twice as it changed."""
    home = make_home(tmp_path_factory.mktemp("home"))
    home.config.write_text(
        home.config.read_text().replace("# include = []", 'include = ["errors", "redirects"]')
    )
    (home.folder / "crawl").mkdir()
    shutil.copy(samples.CRAWL, home.folder / "crawl")
    assert home("ingest", home.folder / "crawl").code == 0
    assert home("publish").code == 0
    return home


@pytest.fixture(scope="module")
def restored(archive: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as a folder, through HTTP alone, served by the real command."""
    folder = tmp_path_factory.mktemp("site") / "site"
    with running(archive, "--content") as (address, _, _):
        given = sheaf("restore", address, folder)
    assert given.code == 0, given.err
    return folder


def entries(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the manifest tells of each URL that has a file."""
    lines = (folder / "manifest.jsonl").read_text("utf-8").splitlines()
    told = [entry for entry in map(json.loads, lines) if "path" in entry]
    return {entry["url"]: entry for entry in told if entry["status"] == 200}


def read_site() -> dict[str, tuple[str, bytes]]:
    """Return the media type and the decoded body of each URL as it was last, as warcio reads it."""
    bodies: dict[str, tuple[str, bytes]] = {}
    with samples.CRAWL.open("rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type == "response" and record.http_headers.get_statuscode() == "200":
                url = record.rec_headers.get_header("WARC-Target-URI")
                media = record.http_headers.get_header("Content-Type")
                bodies[url] = media, record.content_stream().read()
    return bodies


@contextmanager
def served_site() -> Iterator[tuple[str, int]]:
    """Serve the site as of its last visit, whatever the host; gives the address."""
    site = read_site()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            media, body = site.get(f"http://{self.headers['Host']}{self.path}", ("", b""))
            self.reply(200 if media else 404, body, {"Content-Type": media})

    with listening(Handler) as port:
        yield "127.0.0.1", port


def test_every_file_is_what_the_site_served(archive: Home, restored: Path) -> None:
    found = entries(restored)
    captured = archive("query", "--json", "SELECT DISTINCT url, fetch_status FROM captures")
    urls = {
        row["url"]
        for row in map(json.loads, captured.out.splitlines())
        if row["fetch_status"] == 200
    }
    assert found.keys() == urls
    site = read_site()
    for url, entry in found.items():
        assert (restored / entry["path"]).read_bytes() == site[url][1], url
    kept = {p.relative_to(restored).as_posix() for p in restored.rglob("*") if p.is_file()}
    assert kept == {"manifest.jsonl", *(entry["path"] for entry in found.values())}


def screen(url: str, folder: Path, *options: str) -> bytes:
    """Return the picture of a page as Chromium shows it."""
    assert CHROMIUM is not None
    folder.mkdir()
    picture = folder / "screen.png"
    subprocess.run(
        [
            CHROMIUM,
            *QUIET,
            f"--user-data-dir={folder / 'profile'}",
            f"--screenshot={picture}",
            *options,
            url,
        ],
        check=True,
        capture_output=True,
        timeout=300,
        env={**os.environ, "HOME": str(folder)},
    )
    return picture.read_bytes()


@pytest.mark.thorough
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the site with")
def test_the_restored_site_looks_as_the_site_did(
    archive: Home, restored: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    given = archive("restore", archive.folder / "store", folder, "--convert-links")
    assert given.code == 0, given.err
    with served_site() as (host, port):
        live = {
            url: screen(
                url, tmp_path / f"live-{number}", f"--host-resolver-rules=MAP * {host}:{port}"
            )
            for number, url in enumerate(SCREENS)
        }
    for number, (url, path) in enumerate(SCREENS.items()):
        assert screen((folder / path).as_uri(), tmp_path / f"kept-{number}") == live[url]
    # Without its style and pictures, which are elsewhere for a file, a page is another.
    (url, path), *_ = SCREENS.items()
    assert screen((restored / path).as_uri(), tmp_path / "plain") != live[url]


CRAWLS = (
    "webarchivcz__example-20200623-crawler0.warc.gz",
    "jwat__small_BNF.arc",
    "replayweb.page__example.wacz",
    "pywb__iana.warc.gz",
)


@pytest.mark.thorough
@pytest.mark.skipif(not ARCHIVES.is_dir(), reason="the archives are not on this machine")
def test_real_crawls_by_both_ways(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    assert home("ingest", "--jobs", "1", *(ARCHIVES / "core" / crawl for crawl in CRAWLS)).code == 0
    assert home("publish").code == 0
    by_store = sheaf("restore", "--json", home.folder / "store", tmp_path / "store")
    with serving(home) as base:
        by_http = sheaf("restore", "--json", base, tmp_path / "http")
    assert (by_store.code, by_http.code) == (0, 0), by_http.err
    assert tree(tmp_path / "http") == tree(tmp_path / "store")
    told = lines(tmp_path / "store")
    assert lines(tmp_path / "http") == told
    of_urls = (
        "SELECT count(DISTINCT regexp_replace(url, '^https?:|#.*', '', 'g')) AS n FROM captures "
        "WHERE fetch_method IS NULL"
    )
    assert len(told) == by_store.json["restored"] == int(home("query", of_urls).out.split()[1])
    as_archived = 0
    for line in told:
        data = (tmp_path / "store" / line["path"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == line["sha256"]
        digest = base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest())
        as_archived += digest.decode() == line["digest"]
    assert as_archived > len(told) / 3  # the others bore a coding, which was undone
