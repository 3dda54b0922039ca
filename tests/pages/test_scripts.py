"""Archived pages in Chromium with their scripts, by the package that TEST_REPLAY_PACKAGE names."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.e2e.conftest import make_home
from tests.e2e.test_server import running
from tests.listening import free_port
from tests.pages import chromium  # first: it skips where there is none
from tests.pages.archive import Capture, write
from tests.pages.test_replay import DATE, HOST, picture, settle

PACKAGE = os.environ.get("TEST_REPLAY_PACKAGE", "")
if not PACKAGE:
    reason = "TEST_REPLAY_PACKAGE does not name what `npm pack replaywebpage` writes"
    pytest.skip(reason, allow_module_level=True)
STAMP, LIVE = "20090501000000", "http://live.example.net/"
LATER = "2011-05-01T00:00:00Z"
_PAGE = b"""<!DOCTYPE html><title>Still</title><img id=image src=/a.png><p id=text>before</p>
<script src=/run.js></script><a id=on href=/next>on</a><a id=new target=_blank href=/next>new</a>
<a id=none href=/none>none</a><a id=file href=/a.pdf>file</a>"""
_RUN = b"""fetch("/data.json").then((r) => r.json()).then((d) => {
document.querySelector("#text").textContent = d.text; localStorage.x = "1"; });"""
_WRITES = b"""<script>(() => document.write("<p>early"))();onload = () => {
const late = document.createElement("script");late.textContent =
"const p = document.createElement('p');p.id = p.textContent = 'late';document.body.append(p)";
document.body.append(late)};</script><p>rest"""
"""A page that would be lost if what it writes were held back until the later script ends."""
_FRAMES = b"<frameset cols=20%,*><frame src=/menu name=menu><frame src=/data.json name=main>"
_MENU = b"<a id=main target=main href=/next>main</a><a id=top target=_top href=/s>top</a>"
_PLAIN = """const real = globalThis, add = (html) => document.documentElement.append(
  ...new DOMParser().parseFromString(html, "text/html").querySelectorAll("body > *, head > *"));
const plain = () => { add("<iframe></iframe>"); return real[real.length - 1]; };"""
"""Code by which a script has what ReplayWeb.page took from it: the functions of another window."""
_HOSTILE = f"""<!DOCTYPE html><title>Hostile</title>
<link rel=preconnect href="{LIVE}"><link rel=dns-prefetch href="{LIVE}">
<link rel=icon href="{LIVE}i"><body><p id=done></p><script>{_PLAIN}
const at = (path) => "{LIVE}" + path, socket = "ws://live.example.net/";
const reach = (place) => {{ for (const way of [
  () => place.fetch(at("fetch")), () => new place.WebSocket(socket), () => place.open(at("open")),
  () => {{ new place.Image().src = at("image"); }}, () => place.navigator.sendBeacon(at("beacon")),
  () => new place.EventSource(at("events")), () => new place.Worker(place.URL.createObjectURL(
    new Blob([`fetch("{LIVE}work");new WebSocket("${{socket}}");importScripts("{LIVE}in")`]))),
  () => place.eval(`import("${{at("import")}}")`), () => {{ place.document.cookie = "a=1"; }},
  () => {{ const r = new place.XMLHttpRequest(); r.open("GET", at("xhr")); r.send(); }},
  () => place.document.write(`<link rel=prefetch href="{LIVE}p">
<link rel=stylesheet href="{LIVE}css">
<script src="{LIVE}js"><\\/script><link rel=preload as=script href="{LIVE}pre">
<link rel=modulepreload href="{LIVE}m"><iframe src="{LIVE}frame"></iframe>
<object data="{LIVE}object"></object><video src="{LIVE}v"></video>
<script type=speculationrules>
{{"prefetch": [{{"source": "list", "urls": ["{LIVE}s"]}}]}}<\\/script>`),
]) try {{ if (place !== real || !/open|write/.test(way)) way()?.catch?.(() => 0); }} catch {{}} }};
for (const way of [
  () => plain().top.localStorage.setItem("x", "1"), () => {{ plain().top.document.title = "up"; }},
  () => plain().top.document.body.remove(), () => reach(real), () => reach(plain()),
  () => plain().top.postMessage({{wb_type: "load", ts: "x/../../record", url: "?id=x"}}, "*"),
  () => real.parent.postMessage({{wb_type: "load", ts: "2009", url: "javascript:alert(1)"}}, "*"),
  () => plain().navigator.serviceWorker.register("/web/{STAMP}js_/{HOST}run.js"),
  () => plain().navigator.serviceWorker.register("/replay/{STAMP}/A/x", {{scope: "/replay/"}}),
  () => plain().navigator.serviceWorker.register("/replay/sw.js", {{scope: "/replay/w/"}}),
]) try {{ way()?.catch?.(() => 0); }} catch {{}}
for (const path of ["/replay/w/{STAMP}/{STAMP}mp_/{HOST}none", "/replay/w/1/1mp_/http://x/",
  "/replay/static/wombat.js", "/replay/{STAMP}/", "/replay/archived.js", "/style.css", "/oai",
  "/cdx?url=x"]) {{
  const place = plain();
  place.location.replace(location.origin + path);
  place.location.replace(real.origin + path);
  setTimeout(() => reach(place), 2000);
}}
setTimeout(() => {{ document.querySelector("#done").textContent = "done"; }}, 3500);
</script>""".encode()
_LEAVES = (
    *(f"globalThis.location = '{LIVE}'", f"open('{LIVE}', '_top')", f"globalThis.open('{LIVE}')"),
    *(f"plain().top.location = '{LIVE}'", f"plain().parent.location.href = '{LIVE}'"),
    *(f"plain().open('{LIVE}', '_top')", f"plain().open('{LIVE}')", f"location = '{LIVE}'"),
    f"plain().parent.location = `data:text/html,<script>location='{LIVE}'</${{'script'}}>`",
    *(
        f"plain().document.write(`<form id=f action='{LIVE}' {more}></form>`);"
        "real[0].document.forms[0].submit()"
        for more in ("target=_top", "target=_blank", "method=post", "target=_parent")
    ),
    *(
        f"plain().document.write(`{text}`); real[0].document.links[0]?.click()"
        for text in (
            f'<meta http-equiv=refresh content="0; url={LIVE}">',
            f'<a target=_blank ping="{LIVE}ping" href="{LIVE}">a</a>',
            f'<base href="{LIVE}"><a target=_top href=/x>a</a>',
        )
    ),
)
"""What scripts do to lead the whole page on."""
OWN = (
    Capture(f"{HOST}s", DATE, _PAGE),
    Capture(f"{HOST}s", LATER, _PAGE),
    Capture(f"{HOST}w", DATE, _WRITES),
    Capture(f"{HOST}f", DATE, _FRAMES),
    Capture(f"{HOST}menu", DATE, _MENU),
    Capture(f"{HOST}hostile", DATE, _HOSTILE),
    *(
        Capture(f"{HOST}{at}", DATE, f"<script>{_PLAIN}{text}</script>".encode())
        for at, text in enumerate(_LEAVES)
    ),
    Capture(f"{HOST}run.js", DATE, _RUN, "text/javascript"),
    Capture(f"{HOST}data.json", DATE, b'{"text": "loaded"}', "application/json"),
    Capture(f"{HOST}a.pdf", DATE, b"%PDF-1.4", "application/pdf"),
    Capture(f"{HOST}a.png", DATE, picture(255, 0, 0), "image/png"),
    Capture(f"{HOST}next", DATE, b"<title>Next</title><p id=next>next"),
)


@dataclass
class LiveWeb:
    """Takes what Chromium sends to the host of LIVE; `seen` is how each of these begins."""

    seen: list[bytes] = field(default_factory=list)

    @contextmanager
    def listen(self) -> Iterator[int]:
        """Give the port."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=self._take, args=(server,), daemon=True).start()
            yield server.getsockname()[1]

    def _take(self, server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.settimeout(1)
                # Chromium connects before it asks the policies, and then sends nothing.
                self.seen += filter(None, [connection.recv(80)])


@dataclass
class ScriptSite:
    """A server whose pages are at `main`, and a Chromium to which `live` is the host of LIVE."""

    main: str
    other: str
    context: Any
    live: LiveWeb


@pytest.fixture(scope="module")
def site(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptSite]:
    port = free_port()
    main, other = (f"http://{name}.sheaf.localhost:{port}" for name in ("main", "replay"))
    home = settle(make_home(tmp_path_factory.mktemp("scripts") / "home"))
    assert home("ingest", write(home.folder / "own.warc.gz", OWN)).code == 0
    assert home("publish").code == home("replay", "install", PACKAGE).code == 0
    variables = {"REPOSITORY_BASE_URL": f"{main}/oai", "CONTENT_REPLAY_ADDRESS": other}
    environment = {f"SHEAF_{name}": value for name, value in variables.items()}
    live = LiveWeb()
    with live.listen() as at, running(home, "--content", "--port", port, **environment):
        rules = f"--host-resolver-rules=MAP live.example.net 127.0.0.1:{at}"
        kind, path = browser.browser_type, chromium.CHROMIUM
        with kind.launch(executable_path=path, args=["--no-sandbox", rules]) as own:
            yield ScriptSite(main, other, own.new_context(), live)


@pytest.fixture
def page(site: ScriptSite) -> Iterator[Any]:
    """Give a page, of which nothing may have left the archive."""
    page = site.context.new_page()
    yield page
    cookies, seen = site.context.cookies(site.main), [*site.live.seen]
    for tab in site.context.pages:
        tab.close()
    site.live.seen.clear()
    assert (seen, cookies) == ([], [])


def banner(page: Any) -> list[str]:
    lines: list[str] = page.locator("header.banner").inner_text().split("\n")
    return [line for line in lines if "scripts" not in line]


def test_the_banner_is_the_same_with_scripts(site: ScriptSite, page: Any) -> None:
    page.goto(f"{site.main}/web/{STAMP}/{HOST}s")
    shown, before = page.frame_locator("main iframe"), banner(page)
    assert shown.locator("#text").text_content() == "before"
    page.get_by_role("link", name="With scripts").click()
    shown.get_by_text("loaded").wait_for()
    assert page.url == f"{site.main}/replay/{STAMP}/{HOST}s"
    assert banner(page) == before
    assert {"Still", f"{HOST}s", "2009-05-01 00:00", "Later →", "As archived"} <= {*before}
    assert shown.locator("#image").evaluate("image => image.naturalWidth") == 60
    page.get_by_role("link", name="Later").click()
    shown.get_by_text("loaded").wait_for()
    assert page.url == f"{site.main}/replay/20110501000000/{HOST}s"
    page.get_by_role("link", name="Without scripts").click()
    assert page.url == f"{site.main}/web/20110501000000/{HOST}s"
    # What the script stored is not where Sheaf's own pages are.
    registered = "navigator.serviceWorker.getRegistrations().then((all) => all.length)"
    assert page.evaluate(registered) == page.evaluate("localStorage.length") == 0


def test_the_banner_follows_the_page(site: ScriptSite, page: Any) -> None:
    first, second = (f"{site.main}/replay/{STAMP}/{HOST}{name}" for name in ("s", "next"))
    page.goto(first)
    shown, title = page.frame_locator("main iframe"), page.locator(".banner h1")
    for id_ in ("#on", "#new"):
        shown.locator(id_).click()
        shown.locator("#next").wait_for()
        title.get_by_text("Next").wait_for()
        assert page.url == second
        page.go_back()
        title.get_by_text("Still").wait_for()
        assert page.url == first
    page.go_forward()
    title.get_by_text("Next").wait_for()
    assert page.url == second
    page.reload()
    shown.locator("#next").wait_for()
    page.goto(first)
    shown.locator("#file").click()
    page.get_by_text("Browsers show no application/pdf here.").wait_for()
    assert page.url == f"{site.main}/replay/{STAMP}/{HOST}a.pdf"
    page.go_back()
    shown.get_by_text("loaded").wait_for()
    assert page.url == first
    page.goto(f"{site.main}/replay/{STAMP}/{HOST}f")
    menu = shown.frame_locator("frame[name=menu]")
    menu.locator("#main").click()
    shown.frame_locator("frame[name=main]").locator("#next").wait_for()
    menu.locator("#top").click()
    shown.get_by_text("loaded").wait_for()
    title.get_by_text("Still").wait_for()
    assert page.url == first


def test_what_is_not_archived_is_told_here(site: ScriptSite, page: Any) -> None:
    page.goto(f"{site.main}/replay/{STAMP}/{HOST}s")
    shown, missing = page.frame_locator("main iframe"), f"{site.main}/replay/{STAMP}/{HOST}none"
    shown.locator("#none").click()
    shown.get_by_text("This page is not in the archive.").wait_for()
    page.locator(".banner h1").get_by_text("This page is not in the archive.").wait_for()
    assert page.url == missing
    assert shown.locator("a").count() == 0
    assert page.goto(missing).status == 404
    assert "not in the archive" in page.locator("main").inner_text()


def test_what_a_page_writes_late_does_not_replace_it(site: ScriptSite, page: Any) -> None:
    page.goto(f"{site.main}/replay/{STAMP}/{HOST}w")
    shown = page.frame_locator("main iframe")
    shown.locator("#late").wait_for()
    assert shown.locator("p").all_text_contents() == ["early", "rest", "late"]


def test_a_hostile_script_reaches_nothing(site: ScriptSite, page: Any) -> None:
    page.goto(f"{site.main}/replay/{STAMP}/{HOST}hostile")
    page.frame_locator("main iframe").get_by_text("done").wait_for(state="attached")
    assert page.frames[1].evaluate("typeof RTCPeerConnection") == "undefined"
    assert page.url == f"{site.main}/replay/{STAMP}/{HOST}hostile"
    assert page.title() == "Hostile · 2009-05-01"
    assert len(site.context.pages) == 1
    assert page.evaluate("localStorage.length") == 0
    # The worker is still the one that guards, as are the pages after it.
    page.goto(f"{site.main}/replay/{STAMP}/{HOST}s")
    page.frame_locator("main iframe").get_by_text("loaded").wait_for()


@pytest.mark.parametrize("number", range(len(_LEAVES)))
def test_no_page_leaves_the_archive(site: ScriptSite, page: Any, number: int) -> None:
    page.goto(f"{site.main}/replay/{STAMP}/{HOST}{number}")
    page.wait_for_timeout(1500)
    assert page.url.startswith(f"{site.main}/replay/")
    allowed = (f"{site.other}/replay/", "about:", "data:", "chrome-error:")
    left = [frame.url for frame in page.frames[1:] if not frame.url.startswith(allowed)]
    assert set(left) <= {""}  # which is a frame that a script wrote
    assert len(site.context.pages) == 1


def test_none_of_it_is_where_sheaf_is(site: ScriptSite, page: Any) -> None:
    for path in ("sw.js", "worker.js", f"{STAMP}/A/zly.cz%2Frun.js"):
        answer = page.goto(f"{site.main}/replay/{path}")
        assert "javascript" not in answer.headers["content-type"]
    opened = page.goto(f"{site.other}/replay/w/{STAMP}/{STAMP}mp_/{HOST}next")
    assert opened.url == f"{site.main}/replay/{STAMP}/{HOST}next"
