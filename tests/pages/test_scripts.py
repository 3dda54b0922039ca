"""Archived pages in Chromium with their scripts, by the package that TEST_REPLAY_PACKAGE names."""

import os
import socket
from typing import Any

import pytest

from tests.e2e.conftest import make_home
from tests.e2e.test_server import running
from tests.pages import chromium as chromium  # first: it skips where there is none
from tests.pages.archive import Capture, write
from tests.pages.test_replay import DATE, HOST, TRAP, picture, settle

PACKAGE = os.environ.get("TEST_REPLAY_PACKAGE", "")
if not PACKAGE:
    reason = "TEST_REPLAY_PACKAGE does not name what `npm pack replaywebpage` writes"
    pytest.skip(reason, allow_module_level=True)
_PAGE = f"""<!DOCTYPE html><title>still</title><img id=image src=/a.png><p id=text>before</p>
<script src=/run.js></script><script>fetch("{TRAP}fetch").catch(() => 0);
new WebSocket("ws://127.0.0.1:9/socket");new Image().src = "{TRAP}image"</script>
<a id=on href=/next>on</a>"""
_RUN = b"""fetch("/data.json").then((r) => r.json()).then((d) => {
document.querySelector("#text").textContent = d.text; localStorage.x = "1"; });"""
_WRITES = b"""<script>(() => document.write("<p>early"))();onload = () => {
const late = document.createElement("script");late.textContent =
"const p = document.createElement('p');p.id = p.textContent = 'late';document.body.append(p)";
document.body.append(late)};</script><p>rest"""
"""A page that would be lost if what it writes were held back until the later script ends."""
OWN = (
    Capture(f"{HOST}w", DATE, _WRITES),
    Capture(f"{HOST}s", DATE, _PAGE.encode()),
    Capture(f"{HOST}run.js", DATE, _RUN, "text/javascript"),
    Capture(f"{HOST}data.json", DATE, b'{"text": "loaded"}', "application/json"),
    Capture(f"{HOST}a.png", DATE, picture(255, 0, 0), "image/png"),
    Capture(f"{HOST}next", DATE, b"<p id=next>next"),
)


def test_archived_scripts_run_on_their_own_origin(
    browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    main, other = f"http://127.0.0.1:{port}", f"http://localhost:{port}"
    home = settle(make_home(tmp_path_factory.mktemp("scripts") / "home"))
    assert home("ingest", write(home.folder / "own.warc.gz", OWN)).code == 0
    assert home("publish").code == home("replay", "install", PACKAGE).code == 0
    variables = {"REPOSITORY_BASE_URL": f"{main}/oai", "CONTENT_REPLAY_ADDRESS": other}
    environment = {f"SHEAF_{name}": value for name, value in variables.items()}
    with running(home, "--content", "--port", port, **environment):
        context, urls = browser.new_context(), []
        context.on("response", lambda response: urls.append(response.url))
        page = context.new_page()
        page.goto(f"{main}/web/20090501000000/{HOST}s")
        shown = page.frame_locator("main iframe")
        assert shown.locator("#text").text_content() == "before"
        page.locator("#scripts").click()
        shown.get_by_text("loaded").wait_for(timeout=20_000)
        assert page.url == f"{other}/replay/20090501000000/#{HOST}s"
        assert shown.locator("#image").evaluate("image => image.naturalWidth") == 60
        shown.locator("#on").click()
        shown.locator("#next").wait_for()
        page.goto("about:blank")
        page.goto(f"{other}/replay/20090501000000/#{HOST}w")
        shown.locator("#late").wait_for()
        assert shown.locator("p").all_text_contents() == ["early", "rest", "late"]
        assert [url for url in urls if not url.startswith((main, other, "data:"))] == []
        # The worker is not at the origin of Sheaf's own pages, nor is what the script stored.
        assert page.goto(f"{main}/replay/20090501000000/").status == 404
        page.goto(f"{main}/")
        registered = "navigator.serviceWorker.getRegistrations().then((all) => all.length)"
        assert page.evaluate(registered) == page.evaluate("localStorage.length") == 0
        context.close()
