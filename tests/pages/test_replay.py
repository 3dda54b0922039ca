"""Archived pages in Chromium as they were: what loads, where links lead, and what cannot leave."""

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import pytest

from functions.config import configuration
from tests.e2e.conftest import ARCHIVES, Home, make_home
from tests.e2e.test_server import running
from tests.pages import chromium as chromium  # first: it skips where there is none
from tests.pages.archive import Capture, write

HOST, TRAP = "http://zly.cz/", "http://127.0.0.1:9/"
DATE = "2009-05-01T00:00:00Z"
REAL = (
    "servo-Sina__*",
    "webarchivcz__*",
    "js-wacz__lil-projects*",
    "pywb__iana*",
    "ukwa-disc__*",
)
PAGES = (
    # URL, and how many of its references pywb answers 200 without scripts over the same files
    ("https://www.sina.com.cn/", 60),
    ("https://sbeacon.sina.com.cn/ckctl.html", 1),
    ("https://lil.law.harvard.edu/projects/", 13),
    ("http://www.iana.org/", 7),
    ("http://www.iana.org/domains/root/db", 9),
    ("http://data.gov.uk/", 12),
    ("http://data.gov.uk/accessibility-statement", 5),
)


def picture(red: int, green: int, blue: int) -> bytes:
    """Return a PNG of 60 by 40 pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = (b"\0" + bytes((red, green, blue)) * 60) * 40
    head = struct.pack(">IIBBBBB", 60, 40, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


_HOSTILE = f"""<!DOCTYPE html><meta charset=utf-8><title>calm</title>
<link rel=dns-prefetch href="{TRAP}"><link rel=preconnect href="{TRAP}">
<link rel=stylesheet href="{TRAP}css"><link rel=preload as=script href="{TRAP}preload">
<base href="{TRAP}"><script>document.title="run";fetch("{TRAP}fetch");
navigator.serviceWorker.register("/sw.js");document.cookie="a=1"</script>
<script src="{TRAP}script"></script><body onload="document.title='load'">
<img src="{TRAP}img" onerror="document.title='error'"><iframe src="{TRAP}frame"></iframe>
<iframe srcdoc="<script>top.document.title='up'</script><img src={TRAP}inner>"></iframe>
<object data="{TRAP}object"></object><embed src="{TRAP}embed"><video src="{TRAP}video"></video>
<svg onload="document.title='svg'"><image href="{TRAP}svg"/><use href="{TRAP}use#x"/></svg>
<form action="{TRAP}form" method=post><button id=button>go</button></form>
<a id=script href="javascript:document.title='link'">a</a>
<a id=coded target=_top href="&#1;javascript:document.title='coded'">b</a>
<a id=data target=_top href="data:text/html,<script>alert(1)</script>">c</a>
<a id=slashes href="\\\\127.0.0.1:9\\slashes">d</a><a id=top target=_top href="{TRAP}top">e</a>
<a id=blank target=_blank href="{TRAP}blank">f</a><a id=named target=x href="{TRAP}named">g</a>
<!--> <a id=comment href="{TRAP}comment">h</a> <!-- --!> <a id=bang href="{TRAP}bang">i</a> -->
<style>@import "{TRAP}import"; body {{ background: url("{TRAP}background") }}
div {{ position: fixed; top: -100px; width: 100%; height: 300px; z-index: 99 }}</style><div>"""
_WHOLE = b"""<title>whole</title><link rel=stylesheet href=x.css><body>
<img id=lazy src=data:image/gif;base64,R0lGODlhAQABAAAAACw= data-src=/a.png>
<picture><source srcset="/b.png 1x"><img id=set src=/none.png></picture>
<noscript><img id=noscript src=/a.png></noscript><div id=import>x</div><img id=svg src=/i.svg>"""

_LACKING = b"""<title>lacking</title><link rel=stylesheet href=/none.css>
<body style="background:url(/none.png)"><img id=image src=/none.png>
<img src=/none.gif width=300 height=60><img src=/small.gif width=16 height=16>
<p>text<iframe width=500 height=200 src=/none.html></iframe>"""


def own() -> Iterator[Capture]:
    yield Capture(f"{HOST}zly", DATE, _HOSTILE.encode())
    yield Capture(f"{HOST}cela", DATE, _WHOLE)
    yield Capture(f"{HOST}bez", DATE, _LACKING)
    yield Capture(f"{HOST}x.css", DATE, b'@import "y.css";', "text/plain")
    css = b"#import{background:url(/b.png);width:60px}"
    yield Capture(f"{HOST}y.css", DATE, css, "text/css")
    yield Capture(f"{HOST}a.png", DATE, picture(255, 0, 0), "image/png")
    yield Capture(f"{HOST}b.png", DATE, picture(0, 0, 255), "application/octet-stream")
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"/>'
    yield Capture(f"{HOST}i.svg", DATE, svg, "image/svg+xml")
    box = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 120"/>'
    yield Capture(f"{HOST}box.svg?a=1&copy;=2", DATE, box, "image/svg+xml")
    yield Capture(
        f"{HOST}ramy",
        DATE,
        b'<frameset cols="20%,80%"><frame src=menu.html name=menu><frame src=main.html name=main>',
    )
    menu = b"<a id=self href=dva.html>a</a><a id=other target=main href=dva.html>b</a>"
    yield Capture(f"{HOST}menu.html", DATE, menu)
    yield Capture(f"{HOST}dlouha", DATE, b"<div style='height:5000px'></div><p id=cil>goal")
    yield Capture(f"{HOST}main.html", DATE, b"<p>main")
    yield Capture(f"{HOST}dva.html", DATE, b"<title>dva</title><p>two<a id=on href=/cela>on</a>")
    yield Capture(f"{HOST}pryc", DATE, f"<meta http-equiv=refresh content='0;url={TRAP}'>".encode())
    yield Capture(f"{HOST}uvod", DATE, b"<meta http-equiv=refresh content='0;url=/dva.html'>")


class Visits:
    """A server with replay, and what a browser requests there; `left` is what is elsewhere."""

    def __init__(self, browser: Any, root: str) -> None:
        self.root = root
        self._browser = browser
        self.left: list[str] = []
        self.answers: dict[str, int] = {}

    @contextmanager
    def open(self, url: str) -> Iterator[Any]:
        context = self._browser.new_context(viewport={"width": 1200, "height": 900})

        def leave(request: Any) -> None:
            if not request.url.startswith((f"{self.root}/", "data:")):
                self.left.append(request.url)

        self.answers = {}
        context.on("request", leave)
        context.on("response", lambda got: self.answers.__setitem__(got.url, got.status))
        page = context.new_page()
        page.goto(f"{self.root}/web/{url}", wait_until="load")
        page.wait_for_timeout(500)
        try:
            yield page
            assert self.left == []
            assert context.cookies() == []
        finally:
            context.close()


def settle(home: Home) -> Home:
    settings = {
        "repository.name": "Archive",
        "repository.admin_emails": ["a@b.cz"],
        "repository.namespace": "b.cz",
        "documents.include": ["redirects", "errors"],
        "publish.lead": 1,
        "serve.clock_allowance": 1,
    }
    home.config.write_text(configuration.template(settings), "utf-8")
    return home


@pytest.fixture(scope="module")
def visits(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visits]:
    home = settle(make_home(tmp_path_factory.mktemp("replay") / "home"))
    for line in (("ingest", write(home.folder / "own.warc.gz", own())), ("publish",)):
        assert home(*line).code == 0
    with running(home, "--content") as (url, _, _):
        yield Visits(browser, url.removesuffix("/oai"))


@pytest.mark.parametrize(
    ("id_", "leads"),
    [
        *((name, "") for name in ("", "script", "coded", "data", "button", "named", "blank")),
        *((name, name) for name in ("slashes", "top", "comment", "bang")),
    ],
)
def test_a_hostile_page_reaches_nothing(visits: Visits, id_: str, leads: str) -> None:
    with visits.open(f"{HOST}zly") as page:
        own_url = page.url
        if id_:
            page.frame_locator("main iframe").locator(f"#{id_}").click(force=True)
            page.wait_for_timeout(500)
        target = f"{visits.root}/web/20090501000000/{TRAP}{leads}" if leads else own_url
        assert unquote(page.url) == target
        assert page.title()[:4] == ("calm" if not leads else "This")
        # The banner is outside of the frame, whatever the page's style says.
        assert page.get_by_role("link", name="All captures").is_visible()


def test_a_page_is_whole(visits: Visits) -> None:
    with visits.open(f"{HOST}cela") as page:
        shown = page.frame_locator("main iframe")
        for name in ("lazy", "set", "noscript", "svg"):
            assert shown.locator(f"#{name}").evaluate("image => image.naturalWidth") == 60
        style = "box => getComputedStyle(box).backgroundImage"
        assert f"oe_/{HOST}b.png" in shown.locator("#import").evaluate(style)
        assert set(visits.answers.values()) == {200, 302}  # of the page, to its exact time


def test_a_drawing_alone_has_its_own_size(visits: Visits) -> None:
    for name, width in (("box.svg?a=1&copy;=2", 200), ("i.svg#x", 60)):
        with visits.open(f"20090501000000/{HOST}{name}") as page:
            image = page.frame_locator("main iframe").locator("img")
            assert image.evaluate("image => image.clientWidth") == width


def test_what_is_missing_is_said_in_its_place(visits: Visits) -> None:
    with visits.open(f"{HOST}bez") as page:
        shown = page.frame_locator("main iframe")
        assert shown.locator("#image").evaluate("image => image.naturalWidth") == 140
        inner = shown.frame_locator("iframe")
        assert "not in the archive" in inner.locator("body").inner_text()
        inner.get_by_role("link").click()
        page.wait_for_url("**/captures?url=*none.html")


def test_frames_links_and_refreshes_stay_in_the_archive(visits: Visits) -> None:
    with visits.open(f"{HOST}ramy") as page:
        menu = next(frame for frame in page.frames if "menu.html" in frame.url)
        menu.locator("#self").click()
        page.wait_for_timeout(300)
        assert [frame.url.rpartition("/")[2] for frame in page.frames[2:]] == [
            "dva.html",
            "main.html",
        ]
    with visits.open(f"{HOST}ramy") as page:
        next(frame for frame in page.frames if "menu.html" in frame.url).locator("#other").click()
        page.wait_for_url("**/dva.html")  # a sandbox reaches no other frame: it opens alone
        page.frame_locator("main iframe").locator("#on").click()
        page.wait_for_url("**/cela")
        assert page.title() == "whole · 2009-05-01"
    with visits.open(f"20090501000000/{HOST}dlouha#cil") as page:
        page.wait_for_timeout(2_000)
        assert page.frame_locator("main iframe").locator("#cil").evaluate("p => scrollY") > 0
    with visits.open(f"20090501000000/{HOST}pryc") as page:
        assert page.url.endswith(f"{HOST}pryc")
    with visits.open(f"{HOST}uvod") as page:
        assert page.frame_locator("main iframe").locator("p").inner_text().startswith("two")


@pytest.fixture(scope="module")
def real(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visits]:
    if not ARCHIVES.is_dir():
        pytest.skip("replay of real archives is NOT proved here: ../shared/data is not there")
    home = settle(make_home(tmp_path_factory.mktemp("replayed") / "home"))
    for name in REAL:
        for path in sorted((ARCHIVES / "core").glob(name)):
            assert home("ingest", path).code == 0
    assert home("publish").code == 0
    with running(home, "--content") as (url, _, _):
        yield Visits(browser, url.removesuffix("/oai"))


@pytest.mark.parametrize(("url", "least"), PAGES)
def test_real_pages_load_what_was_archived_of_them(real: Visits, url: str, least: int) -> None:
    with real.open(url):
        archived = [at for at, status in real.answers.items() if status == 200 and "_/" in at]
        assert len(archived) >= least
