"""Archived pages in Chromium beside pywb, over the same files: as many resources answer 200."""

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.e2e.conftest import ARCHIVES, SHARED, make_home
from tests.e2e.test_server import running
from tests.listening import free_port
from tests.pages import chromium as chromium  # first: it skips where there is none
from tests.pages.test_replay import REAL, settle

PYWB = Path(__file__).parents[2] / ".venv-pywb" / "bin"
PACKAGE = os.environ.get("TEST_REPLAY_PACKAGE", "")
if not PYWB.exists():
    pytest.skip("pywb is not installed: `make clients` installs it", allow_module_level=True)
FILES = [path for name in REAL for path in sorted((ARCHIVES / "core").glob(name))]
FILES += filter(Path.exists, [SHARED / "reports" / "people" / "knihovna.warc.gz"])
if not FILES:
    pytest.skip("../shared/data has no archives here", allow_module_level=True)
_ARCHIVED = re.compile(r"/(?:web|pywb|replay/w/[0-9]+)/[0-9]*[a-z]{2}_/(?:https?:)?//(.+)")
_PLACEHOLDER = re.compile(r"[^/]*sinaimg\.cn/.*/d\.gif")
"""Stands in a page for images that its script loads: Sheaf loads these instead."""
_SECONDS = 30


def pages(path: Path) -> list[str]:
    """Return time and URL, as `TIMESTAMP/URL`, of the two largest pages in a WARC."""
    sizes: dict[str, tuple[int, str]] = {}
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            http = record.http_headers
            if record.rec_type != "response" or not http or http.get_statuscode() != "200":
                continue
            if (http.get_header("Content-Type") or "").startswith("text/html"):
                fields, size = record.rec_headers, len(record.content_stream().read())
                stamp = re.sub("[^0-9]", "", fields.get_header("WARC-Date"))[:14]
                url = fields.get_header("WARC-Target-URI")
                sizes[url] = max(sizes.get(url, (0, "")), (size, f"{stamp}/{url}"))
    return [page for _, page in sorted(sizes.values(), reverse=True)[:2]]


@pytest.fixture(scope="module")
def pywb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of pywb."""
    folder, port = tmp_path_factory.mktemp("pywb"), free_port()
    for line in (("init", "pywb"), ("add", "pywb", *map(str, FILES))):
        subprocess.run([PYWB / "wb-manager", *line], cwd=folder, check=True, capture_output=True)
    command = [PYWB / "wayback", "-p", str(port), "-b", "127.0.0.1"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet) as process:
        try:
            for _ in range(300):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def sheaf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of Sheaf's pages."""
    home, port = settle(make_home(tmp_path_factory.mktemp("beside") / "home")), free_port()
    lines = [*(("ingest", path) for path in FILES), ("publish",)]
    for line in [*lines, ("replay", "install", PACKAGE)] if PACKAGE else lines:
        assert home(*line).code == 0
    main, other = (f"http://{name}.sheaf.localhost:{port}" for name in ("main", "replay"))
    variables = {"REPOSITORY_BASE_URL": f"{main}/oai", "CONTENT_REPLAY_ADDRESS": other}
    environment = {f"SHEAF_{name}": value for name, value in variables.items()}
    with running(home, "--content", "--port", port, **environment):
        yield main


def visit(browser: Any, address: str, scripts: bool) -> tuple[set[str], list[str]]:
    """Return the archived URLs that answered 200, and what was asked elsewhere."""
    context = browser.new_context(java_script_enabled=scripts)
    host = address.partition("//")[2].split("/")[0].partition(".")[2]
    answers: set[str] = set()
    asked: list[str] = []

    def take(response: Any) -> None:
        match = _ARCHIVED.search(response.url)
        if match and (response.status, response.request.method) == (200, "GET"):
            answers.add(match[1])

    context.on("response", take)
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.goto(address, wait_until="commit")
    count, end = -1, time.monotonic() + _SECONDS
    while count != len(asked) and time.monotonic() < end:
        count = len(asked)
        page.wait_for_timeout(3000)
    context.close()
    inside = ("data:", "blob:", "about:")
    return answers, [url for url in asked if host not in url and not url.startswith(inside)]


@pytest.mark.parametrize("way", ["web", "replay"])
@pytest.mark.parametrize("page", [page for path in FILES for page in pages(path)])
def test_as_much_answers_as_in_pywb(
    browser: Any, sheaf: str, pywb: str, page: str, way: str
) -> None:
    if way == "replay" and not PACKAGE:
        pytest.skip("TEST_REPLAY_PACKAGE does not name what `npm pack replaywebpage` writes")
    if way == "replay":
        theirs, _ = visit(browser, f"{pywb}/pywb/{page}", scripts=True)
        ours, left = visit(browser, f"{sheaf}/replay/{page}", scripts=True)
    else:
        # Without the banners, for which pywb needs scripts.
        frames = sheaf.replace("main", "replay")
        theirs, _ = visit(browser, f"{pywb}/pywb/{page.replace('/', 'mp_/', 1)}", scripts=False)
        ours, left = visit(browser, f"{frames}/web/{page.replace('/', 'if_/', 1)}", scripts=False)
    assert left == []
    wanted = {url for url in theirs if way == "replay" or not _PLACEHOLDER.match(url)}
    print(way, page, len(ours), len(wanted))
    assert len(ours) >= len(wanted) > 0, sorted(wanted - ours)
