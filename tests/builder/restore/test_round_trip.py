"""The round trip: a site is recorded, published, served and restored, and it is the same site."""

import http.client
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from builder.demo import record
from builder.demo.crawl import Politeness
from builder.demo.site import serve
from tests.e2e.conftest import Home, make_home, sheaf

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
VISITS = 2


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """An archive of the demo's site, recorded twice as it changed."""
    home = make_home(tmp_path_factory.mktemp("home"))
    home.config.write_text(
        home.config.read_text().replace("# include = []", 'include = ["errors", "redirects"]')
    )
    now = datetime(2026, 11, 1, tzinfo=UTC)

    def clock() -> datetime:
        nonlocal now
        now += timedelta(seconds=1)
        return now

    recording = record(home.folder / "crawl", clock, Politeness(delay=0, pause=0))
    assert recording.summary.revisits
    assert home("ingest", recording.path).code == 0
    assert home("publish").code == 0
    return home


@contextmanager
def served(home: Home) -> Iterator[str]:
    """Serve the archive with its content, by the real command; gives the address."""
    command = [sys.executable, "-m", "builder", "serve", "--content", "--port", "0", "--json"]
    with subprocess.Popen(
        [*command, "--config", home.config],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            told = ""
            while not told.endswith("}\n"):
                line = process.stdout.readline()
                assert line, "it ended"
                told += line
            yield json.loads(told)["url"]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def restored(archive: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as a folder, through HTTP alone."""
    folder = tmp_path_factory.mktemp("site") / "site"
    with served(archive) as address:
        given = sheaf("restore", address, folder)
    assert given.code == 0, given.err
    return folder


def entries(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the manifest tells of each URL that has a file."""
    lines = (folder / "manifest.jsonl").read_text("utf-8").splitlines()
    told = [entry for entry in map(json.loads, lines) if "path" in entry]
    return {entry["url"]: entry for entry in told if entry["status"] == 200}


def asked(address: tuple[str, int], url: str) -> tuple[int, bytes]:
    """Return what the site answers to whoever accepts no coding."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(*address, timeout=60)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("GET", target, headers={"Host": parts.netloc})
        with connection.getresponse() as answer:
            return answer.status, answer.read()
    finally:
        connection.close()


def test_every_file_is_what_the_site_served(archive: Home, restored: Path) -> None:
    found = entries(restored)
    captured = archive("query", "--json", "SELECT DISTINCT url, fetch_status FROM captures")
    urls = {
        row["url"]
        for row in map(json.loads, captured.out.splitlines())
        if row["fetch_status"] == 200
    }
    assert found.keys() == urls
    with serve() as address:
        for url, entry in found.items():
            # As it was at the last of the recorder's visits, which the site counts.
            answers = [asked(address, url) for _ in range(VISITS)]
            assert (200, (restored / entry["path"]).read_bytes()) == answers[-1], url
    kept = {p.relative_to(restored).as_posix() for p in restored.rglob("*") if p.is_file()}
    assert kept == {"manifest.jsonl", *(entry["path"] for entry in found.values())}


def test_an_endpoint_and_a_store_give_the_same_folder(
    archive: Home, restored: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    assert archive("restore", archive.folder / "store", folder).code == 0
    assert tree(folder) == tree(restored)


def tree(folder: Path) -> dict[str, tuple[bytes, float]]:
    """Return each file's bytes and time; the manifest's lines may come in any order."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            manifest = path.name == "manifest.jsonl"
            found[path.relative_to(folder).as_posix()] = (
                b"\n".join(sorted(data.splitlines())) if manifest else data,
                0.0 if manifest else path.stat().st_mtime,
            )
    return found


def test_the_first_visit_is_restored_as_of_its_time(archive: Home, tmp_path: Path) -> None:
    dates = archive(
        "query",
        "--json",
        "SELECT max(fetch_date) AS d FROM captures WHERE "
        "warc_record_type = 'response' AND url LIKE '%aktuality%'",
    )
    last = json.loads(dates.out)["d"]
    before = datetime.fromisoformat(last) - timedelta(seconds=1)
    url = "http://www.example.org/aktuality.html"
    folder = tmp_path / "site"
    given = archive(
        "restore",
        archive.folder / "store",
        folder,
        "--url",
        url,
        "--as-of",
        before.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    assert given.code == 0, given.err
    with serve() as address:
        assert (folder / entries(folder)[url]["path"]).read_bytes() == asked(address, url)[1]


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
    with serve() as (host, port):
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
