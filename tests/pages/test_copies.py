"""The way to archived copies in Chromium: from pages, and from a catalogue that harvested."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Home
from tests.e2e.test_server import running
from tests.listening import free_port
from tests.pages import archive
from tests.pages import chromium as chromium  # first: it skips where there is none
from tests.pages.browser import Reader

ROOT = Path(__file__).parents[2]
PYWB = ROOT / ".venv-pywb" / "bin"
_SECONDS = 30


def record_of(home: Home, url: str) -> str:
    sql = f"SELECT identifier FROM captures WHERE url = '{url}' ORDER BY fetch_date LIMIT 1"
    return str(home("query", "--json", sql).json["identifier"])


def test_the_archived_copy_of_a_text_opens(reader: Reader, home: Home) -> None:
    with reader.looking() as open_page:
        page = open_page(f"/record/{record_of(home, archive.TEXT)}").page
        page.locator("p.actions a.button").first.click()
        page.wait_for_url("**/web/**")
        assert "User-agent: *" in page.frame_locator("iframe").locator("body").inner_text()


def test_the_archived_copy_of_a_page_opens(reader: Reader, home: Home) -> None:
    with reader.looking() as open_page:
        page = open_page(f"/record/{record_of(home, archive.HOME)}").page
        page.locator("p.actions a.button").first.click()
        page.wait_for_url("**/web/**")
        assert page.title().startswith(archive.COPY)
        page.frame_locator("iframe").locator("p").wait_for()


def test_a_hostile_copy_runs_loads_and_sends_nothing(browser: Any, home: Home) -> None:
    name = record_of(home, archive.HOSTILE)
    with running(home) as (url, _, _):
        root = url.removesuffix("/oai")
        copy = f"{root}/content/{name}"
        page = browser.new_page()
        sent: list[str] = []  # what the policy forbids does not come here

        def catch(route: Any) -> None:
            sent.append(route.request.url)
            route.fulfill(body="caught")

        page.route(f"{archive.TRAP}**", catch)
        page.goto(copy)
        page.get_by_role("button").click()
        page.get_by_role("link").click()
        page.wait_for_timeout(1_000)
        assert (page.title(), page.url, sent) == ("calm", copy, [])
        assert page.get_by_text("held").is_visible()
        page.goto(f"{root}/web/{archive.HOSTILE}")
        stays = page.url
        page.wait_for_timeout(1_000)
        framed = page.frame_locator("iframe")
        assert framed.get_by_text("held").is_visible()
        assert (page.title()[:4], page.url, sent) == ("calm", stays, [])
        page.close()


@contextmanager
def catalogue(home: Home, address: str) -> Iterator[dict[str, str]]:
    """Serve with addresses of copies; give each record's first dc:identifier, as harvested."""
    sickle = pytest.importorskip("sickle")
    port = free_port()
    base = f"http://127.0.0.1:{port}/oai"
    settings = {"SHEAF_REPOSITORY_BASE_URL": base, "SHEAF_CONTENT_ADDRESS": json.dumps([address])}
    with running(home, "--port", port, **settings):
        records = sickle.Sickle(base).ListRecords(metadataPrefix="oai_dc", ignore_deleted=True)
        yield {
            one.header.identifier: (one.metadata.get("identifier") or [""])[0] for one in records
        }


def test_a_catalogue_leads_to_the_archived_copy(browser: Any, home: Home) -> None:
    with catalogue(home, "/content/{identifier}") as found:
        page = browser.new_page()
        page.goto(found[record_of(home, archive.TEXT)])
        assert "User-agent: *" in page.inner_text("body")
        page.goto(found[record_of(home, archive.HOME)])
        assert page.title() == archive.COPY
        page.close()


@contextmanager
def pywb(home: Home, folder: Path) -> Iterator[str]:
    """Replay the museum's archive in pywb; give the address of its collection."""
    if not PYWB.exists():
        pytest.skip("pywb is not installed: `make clients` installs it")
    run = [PYWB / "python", PYWB / "wb-manager"]
    source = home.folder / "sources" / "museum-2009.warc.gz"
    for line in (["init", "museum"], ["add", "museum", source]):
        subprocess.run([*run, *line], cwd=folder, check=True, capture_output=True, timeout=60)
    port = free_port()
    server = subprocess.Popen(
        [PYWB / "python", PYWB / "wayback", "--port", str(port), "--bind", "127.0.0.1"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + _SECONDS
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert time.monotonic() < end, "pywb does not listen"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/museum"
    finally:
        server.terminate()
        server.wait(_SECONDS)


def test_a_catalogue_leads_to_the_replayed_page(browser: Any, home: Home, tmp_path: Path) -> None:
    with (
        pywb(home, tmp_path) as collection,
        catalogue(home, f"{collection}/{{timestamp}}/{{url}}") as found,
    ):
        page = browser.new_page()
        page.goto(found[record_of(home, archive.HOME)])
        shown = page.frame_locator("#replay_iframe")
        shown.locator("p", has_text="668").wait_for()
        assert page.frames[-1].title() == archive.COPY
        page.close()
