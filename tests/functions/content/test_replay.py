"""Replay: addresses, references that lead to the archive, redirects, and what is not there."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from datetime import timedelta
from urllib.parse import quote

import pytest

from builder.store.folder import FolderStore
from functions.config import configuration
from functions.content import assembly
from functions.content.replay.address import ReplayAddresses, read_replay
from functions.content.replay.page_bytes import size_drawing
from functions.http.http_message import Call, HttpResponse
from functions.reading.duck_repository import DuckRepository
from tests.clock import CLOCK
from tests.pages.archive import Capture, publish_captures

BASE = "https://oai.example.org"
HOST = "http://www.a.cz/"
DATE = "2009-05-01T00:00:00Z"
STAMP = "20090501000000"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
PAGE = """<!DOCTYPE html><html manifest=/m><head><meta charset=windows-1250><title>Knihovna</title>
<base href="http://www.a.cz/dir/" target=hlavni><link rel=stylesheet href=s.css integrity=x>
<link rel="shortcut icon" href=/i.ico><link rel=preload as=font href=//b.cz/f.woff crossorigin>
<meta http-equiv=refresh content="9; url=http://b.cz/x"><meta http-equiv=Set-Cookie content=a=1>
<style>@import "a.css"; @import url(b.css); p { background: url(/p.png) }</style></head>
<body background=/bg.gif><a href=dalsi.html?q=čaj#cil>a</a><a href="http://b.cz/"
target=_blank>b</a><a href=" java
script:alert(1)">c</a><a href=data:text/html,x>d</a><a href=#zde>e</a><a href=mailto:a@b.cz>f</a>
<a href=/dir/strana.html#zde>g</a><a href=/z ping=http://b.cz/ping target=_top>h</a>
<img src=data:image/gif;base64,R0lG data-src=/lazy.png><img srcset="/1.png 1x, //b.cz/2.png 2x">
<img src=/blank.gif data-lazy-src="http://b.cz/l.png" data-srcset="/3.png 2x">
<video src=/v.mp4 poster=/v.jpg><track src=/t.vtt></video><script src=/s.js></script>
<iframe src=/ram.html></iframe><iframe srcdoc="<img src=/in.png><a href=/in>i</a>"></iframe>
<object data=/o.svg></object><embed src=/e.swf><form action=http://b.cz/form><input type=image
src=/b.png></form><svg><use href=/u.svg#x /><image xlink:href=/s.png /><a xlink:href=/sv>s</a></svg>
<div style="background: url('http://b.cz/d.png')">žluťoučký</div><!--> <a href=http://b.cz/k>k</a>
</body></html>"""

TEXTS = {
    "s.js": ("application/javascript", b"alert(1)"),
    "j.json": ("application/json", b"{}"),
    "f.rss": ("application/rss+xml", b"<?xml version='1.0'?>\n<rss/>"),
    "x.xml": ("text/xml", b"<?xml version='1.0'?>\n<a><b>c</b></a>"),
    "t.csv": ("text/csv", b"a,b"),
    "s.css": ("text/css", b"a{background:url(i.png)}"),
}
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 12"><rect/></svg>'


def captures() -> Iterator[Capture]:
    html = "text/html"
    yield Capture(f"{HOST}dir/strana.html", DATE, PAGE.encode("cp1250"), html)
    yield Capture(f"{HOST}dir/s.css", DATE, b"b{background:url(x.png)}", "text/plain")
    yield Capture(f"{HOST}i.png", "2009-06-01T00:00:00Z", PNG, "application/octet-stream")
    yield Capture(f"{HOST}i.png", "2012-06-01T00:00:00Z", PNG + b"2", "image/png")
    yield Capture(f"{HOST}f.pdf", DATE, b"%PDF-1.4", "application/pdf")
    yield Capture(f"{HOST}stara", DATE, b"", html, "301 Moved", "/nova")
    yield Capture(f"{HOST}nova", DATE, b"", html, "302 Moved", "http://www.a.cz/dir/strana.html")
    yield Capture(f"{HOST}cast", DATE, b"", html, "302 Moved", "/roky#cil x")
    yield Capture(f"{HOST}kruh", DATE, b"", html, "302 Moved", "/dokola")
    yield Capture(f"{HOST}dokola", DATE, b"", html, "302 Moved", "/kruh")
    yield Capture(f"{HOST}sam", DATE, b"", html, "301 Moved", "https://www.a.cz/sam")
    yield Capture("https://www.a.cz/sam", "2009-05-01T00:00:09Z", b"<title>Sam</title>", html)
    yield Capture(f"{HOST}pryc", DATE, b"", html, "301 Moved", "http://jinde.cz/")
    yield Capture(f"{HOST}nic", DATE, b"<p>nic", html, "404 Not Found")
    yield Capture(f"{HOST}tajne", DATE, b"<title>x</title>", html)
    yield Capture(f"{HOST}velka", DATE, b"<a href=http://b.cz/>b</a>" + b"x " * 2_500_000, html)
    yield Capture(f"{HOST}uvod", DATE, b"<meta http-equiv=refresh content='0;url=/roky'>", html)
    yield Capture(f"{HOST}slepy", DATE, b"<meta http-equiv=refresh content='0;url=/neni'>", html)
    yield Capture(f"{HOST}obr", DATE, b"<a target=x href=/z>z</a><img src=a\\b.png>", html)
    for year in (2009, 2014):
        yield Capture(f"{HOST}dvakrat", f"{year}-01-01T00:00:00Z", f"<p>{year}".encode(), html)
    for year in (2005, 2007, 2011):
        yield Capture(f"{HOST}roky", f"{year}-01-01T00:00:00Z", f"<p>{year}".encode(), html)
    yield Capture(f"{HOST}v.css?1393", "2009-05-01T00:00:00Z", b"a{}", "text/css")
    yield Capture(f"{HOST}v.css?2393", "2010-05-01T00:00:00Z", b"b{}", "text/css")
    for name, (media_type, text) in TEXTS.items():
        yield Capture(f"{HOST}{name}", DATE, text, media_type)
    yield Capture(f"{HOST}u.xml", DATE, b"<?xml version='1.0'?>\n<html xmlns='x'/>", "text/xml")
    yield Capture(f"{HOST}i.svg", DATE, SVG, "image/svg+xml")
    yield Capture(f"{HOST}bez.js", DATE, b"1", "text/javascript")
    yield Capture(f"{HOST}clanek?id=7&utm_source=rss", DATE, b"<title>Sedm</title>", html)
    yield Capture(f"{HOST}tajne.css?1", DATE, b"c{}", "text/css")
    yield Capture(f"{HOST}utf16", DATE, '<a href="/č">x</a>'.encode("utf-16"), html)


Ask = Callable[..., HttpResponse]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    withdrawn = (f"{HOST}tajne",), (f"{HOST}dvakrat", "--from", "2009", "--until", "2009")
    home = publish_captures(tmp_path_factory.mktemp("replay"), captures(), *withdrawn)
    values = configuration.parse(home.config.read_text(), {"SHEAF_CONTENT_SERVE": "true"})
    values = values.relative_to(home.folder)
    store = home.folder / "store"
    repository = DuckRepository(FolderStore(store))
    later = CLOCK.now() + timedelta(minutes=5)
    parts = (repository, str(store), home.folder, values, {}, lambda: later)
    server, function = assembly.application(*parts), assembly.application(*parts, largest=6 << 20)

    def answer(
        path: str, query: str = "", method: str = "GET", lambda_: bool = False, **headers: str
    ) -> HttpResponse:
        names = {name.replace("_", "-"): text for name, text in headers.items()}
        call = Call(method, BASE, f"/web/{path}", query, names)
        return (function if lambda_ else server).answer(call)

    yield answer
    repository.close()


def test_every_reference_of_a_page_leads_to_the_archive_or_nowhere(ask: Ask) -> None:
    got = ask(f"{STAMP}if_/{HOST}dir/strana.html")
    assert got.status == 200
    assert got.headers["Content-Type"] == "text/html; charset=windows-1250"
    assert got.headers["Memento-Datetime"] == "Fri, 01 May 2009 00:00:00 GMT"
    page = bytes(got.body).decode("cp1250")  # type: ignore[arg-type]
    assert "žluťoučký" in page
    at = f"/web/{STAMP}"
    for there in (
        f'<link rel=stylesheet href="{at}cs_/{HOST}dir/s.css" data-integrity=x>',
        f'<link rel="shortcut icon" href="{at}im_/{HOST}i.ico">',
        f'href="{at}oe_/http://b.cz/f.woff" data-crossorigin>',
        f'content="9; url={at}fr_/http://b.cz/x"',
        "<meta data-http-equiv=Set-Cookie",
        f'@import "{at}cs_/{HOST}dir/a.css"; @import url("{at}cs_/{HOST}dir/b.css")',
        f'url("{at}oe_/{HOST}p.png")',
        f'<body background="{at}oe_/{HOST}bg.gif">',
        # The target of `base` is the name of a frame: the page has frames.
        f'<a target="hlavni" href="{at}fr_/{HOST}dir/dalsi.html?q=%E8aj#cil">a</a>',
        f'<a target="_blank" href="{at}/http://b.cz/"\ndata-target=_blank>b</a>',
        '<a data-href=" java\nscript:alert(1)">c</a><a data-href=data:text/html,x>d</a>',
        "<a href=#zde>e</a><a href=mailto:a@b.cz>f</a>",
        '<a href="#zde">g</a>',
        f'<a target="_top" href="{at}/{HOST}z" data-ping=http://b.cz/ping data-target=_top>h</a>',
        f'<img data-src=data:image/gif;base64,R0lG src="{at}im_/{HOST}lazy.png">',
        f'srcset="{at}im_/{HOST}1.png 1x, {at}im_/http://b.cz/2.png 2x"',
        f'<img data-src=/blank.gif src="{at}im_/http://b.cz/l.png" srcset="{at}im_/{HOST}3.png 2x"',
        f'<video src="{at}oe_/{HOST}v.mp4" poster="{at}im_/{HOST}v.jpg">',
        f'<script src="{at}js_/{HOST}s.js">',
        f'<iframe src="{at}fr_/{HOST}ram.html">',
        f'srcdoc="&lt;img src=&quot;{at}im_/{HOST}in.png&quot;>',
        f'<object data="{at}fr_/{HOST}o.svg">',
        f'<use href="{at}im_/{HOST}u.svg#x"',
        f"url(&quot;{at}oe_/http://b.cz/d.png&quot;)",
        f'<!--> <a target="hlavni" href="{at}fr_/http://b.cz/k">k</a>',
    ):
        assert there in page, there
    left = re.sub(r"data-[a-z-]+=\S+|/web/\S+", "", page)
    assert "http://b.cz" not in left


def test_frames_are_in_a_sandbox_and_load_from_the_archive_alone(ask: Ask) -> None:
    policy = ask(f"{STAMP}if_/{HOST}dir/strana.html").headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-top-navigation-by-user-activation allow-popups")
    assert "allow-scripts" not in policy
    assert "allow-same-origin" not in policy
    assert f"img-src {BASE}/web/ data:" in policy
    assert policy.endswith(f"frame-ancestors 'self' {BASE}")
    inner = ask(f"{STAMP}fr_/{HOST}dir/strana.html")
    assert "frame-ancestors" not in inner.headers["Content-Security-Policy"]
    # A frame of a page keeps its links, but for those that leave it.
    page = bytes(inner.body).decode("cp1250")  # type: ignore[arg-type]
    assert f'<a target="_top" href="/web/{STAMP}/{HOST}z"' in page
    assert "X-Frame-Options" not in inner.headers


@pytest.mark.parametrize(
    ("path", "location"),
    [
        (f"{HOST}roky", f"/web/20110101000000/{HOST}roky"),
        (f"2006/{HOST}roky", f"/web/20050101000000/{HOST}roky"),
        ("20060909/www.a.cz/roky", f"/web/20070101000000/{HOST}roky"),
        (f"*/{HOST}roky", "/captures?url=http%3A%2F%2Fwww.a.cz%2Froky"),
        (f"2007*/{HOST}roky", "/captures?url=http%3A%2F%2Fwww.a.cz%2Froky&from=2007&to=2007"),
        (f"{STAMP}/{HOST}stara", f"/web/{STAMP}/{HOST}dir/strana.html"),
        (f"2009im_/{HOST}stara", f"/web/{STAMP}im_/{HOST}dir/strana.html"),
        (f"{STAMP}if_/{HOST}uvod", f"/web/{STAMP}if_/{HOST}roky"),
        (f"2007/{HOST}cast", f"/web/20110101000000/{HOST}roky#cil%20x"),
        # The capture at that time only leads to itself.
        (f"{STAMP}/{HOST}sam", "/web/20090501000009/https://www.a.cz/sam"),
    ],
)
def test_a_page_is_redirected_to_its_own_time_and_place(ask: Ask, path: str, location: str) -> None:
    got = ask(path)
    assert (got.status, got.headers.get("Location")) == (302, location)
    if "_/" in path:
        assert got.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        assert "X-Frame-Options" not in got.headers


def test_links_to_other_frames_open_alone_and_old_slashes_are_read(ask: Ask) -> None:
    at = f"/web/{STAMP}"
    inner = bytes(ask(f"{STAMP}fr_/{HOST}obr").body)  # type: ignore[arg-type]
    assert f'<a target="_top" href="{at}/{HOST}z"'.replace(" href", " data-target=x href") in (
        inner.decode().replace('<a data-target=x target="_top"', '<a target="_top" data-target=x')
    )
    assert f'<img src="{at}im_/{HOST}a/b.png">' in inner.decode()
    assert ask(f"{STAMP}if_/{HOST}slepy").status == 200


@pytest.mark.parametrize("modifier", ["", "if_", "im_"])
@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("kruh", 404, "redirect-loop"),
        ("pryc", 404, "unknown"),
        ("neni", 404, "unknown"),
        ("tajne", 404, "unknown"),
    ],
)
def test_what_is_not_there_is_said_and_never_loaded_from_the_web(
    ask: Ask, name: str, status: int, code: str, modifier: str
) -> None:
    got = ask(f"{STAMP}{modifier}/{HOST}{name}")
    assert (got.status, got.headers["X-Archive-Error"]) == (status, code)
    assert "default-src 'none'" in got.headers["Content-Security-Policy"]
    assert b"<iframe" not in bytes(got.body)  # type: ignore[arg-type]


def test_nothing_tells_what_was_withdrawn_from_what_was_never_there(ask: Ask) -> None:
    for modifier in ("", "if_", "im_", "cs_", "id_"):
        withdrawn, unknown = (
            ask(f"{STAMP}{modifier}/{HOST}{name}") for name in ("tajne", "neni..")
        )
        body = bytes(withdrawn.body)  # type: ignore[arg-type]
        assert body.replace(b"tajne", b"neni..") == unknown.body
        assert withdrawn.status == unknown.status == 404
    assert "tajne" not in ask("timemap/link/a.cz/tajne").headers.get("Link", "")
    # The nearest of what remains is shown.
    for modifier in ("", "if_"):
        shown = ask(f"2009{modifier}/{HOST}dvakrat")
        assert "/web/20140101000000" in shown.headers.get("Location", shown.headers.get("Link", ""))
        assert b"2009" not in bytes(shown.body)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("modifier", "wanted", "media_type"),
    [
        ("im_", "", "image/svg+xml"),
        ("", "image", "image/svg+xml"),
        ("if_", "image", "image/svg+xml"),
        # In the place of a background, words would cover the page.
        ("oe_", "image", "text/plain; charset=utf-8"),
        ("cs_", "", "text/css; charset=utf-8"),
        ("js_", "", "text/javascript; charset=utf-8"),
        ("", "style", "text/css; charset=utf-8"),
        ("", "document", "text/html; charset=utf-8"),
        ("fr_", "iframe", "text/html; charset=utf-8"),
    ],
)
def test_what_stands_for_a_missing_resource_has_its_type(
    ask: Ask, modifier: str, wanted: str, media_type: str
) -> None:
    for name in ("neni", "nic") if modifier == "im_" else ("neni",):
        answer = ask(f"2009{modifier}/{HOST}{name}", **{"sec-fetch-dest": wanted})
        assert (answer.status, answer.headers["Content-Type"]) == (404, media_type)
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        text = bytes(answer.body).decode()  # type: ignore[arg-type]
        if media_type == "image/svg+xml":
            assert "not in the archive</text>" in text
            assert ElementTree.fromstring(text).tag.endswith("svg")
        elif media_type.startswith("text/html"):
            assert f"captures?url={quote(HOST, '')}neni" in text
        elif not media_type.startswith("text/plain"):
            assert text == ""


def test_a_frame_says_what_is_missing_and_of_when(ask: Ask) -> None:
    whole = bytes(ask(f"2014/{HOST}neni").body).decode()  # type: ignore[arg-type]
    assert f"<p>{HOST}neni<br>2014</p>" in whole
    assert 'href="/captures?url=http%3A%2F%2Fwww.a.cz%2Fneni&amp;match=host"' in whole
    page = bytes(ask(f"20140325121833if_/{HOST}neni").body).decode()  # type: ignore[arg-type]
    assert f"<p>{HOST}neni<br>2014-03-25 12:18:33</p>" in page
    assert '<a href="/captures?url=http%3A%2F%2Fwww.a.cz%2Fneni" target="_top">' in page


def test_the_banner_names_the_capture_and_its_neighbours(ask: Ask) -> None:
    got = ask(f"20070101000000/{HOST}roky")
    page = bytes(got.body).decode()  # type: ignore[arg-type]
    assert got.status == 200
    assert f'<iframe src="{BASE}/web/20070101000000if_/{HOST}roky"' in page
    assert f'<a rel="prev" href="/web/20050101000000/{HOST}roky">' in page
    assert f'<a rel="next" href="/web/20110101000000/{HOST}roky">' in page
    assert f"frame-src {BASE}/web/;" in got.headers["Content-Security-Policy"]
    assert (
        "<title>Knihovna · 2009-05-01</title>"
        in bytes(
            ask(f"{STAMP}/{HOST}dir/strana.html").body  # type: ignore[arg-type]
        ).decode()
    )


def test_what_is_opened_alone_is_in_the_frame_as_it_is(ask: Ask) -> None:
    for name, (_, text) in TEXTS.items():
        assert b"<iframe" in bytes(ask(f"{STAMP}/{HOST}{name}").body)  # type: ignore[arg-type]
        assert ask(f"{STAMP}if_/{HOST}{name}").body == text
    assert b"<iframe" in bytes(ask(f"20090601000000/{HOST}i.png").body)  # type: ignore[arg-type]
    sized = SVG.replace(b"<svg", b'<svg width="24" height="12"')
    assert ask(f"{STAMP}if_/{HOST}i.svg").body == sized
    assert ask(f"{STAMP}im_/{HOST}i.svg").body == SVG
    for whole in (sized, SVG.replace(b"viewBox", b"height='1' viewBox"), b"<svg>", b"", b"<svgx>"):
        assert size_drawing(whole) == whole


def test_what_browsers_do_not_show_is_offered(ask: Ask) -> None:
    page = bytes(ask(f"{STAMP}/{HOST}f.pdf").body).decode()  # type: ignore[arg-type]
    assert "<iframe" not in page
    assert f'href="/web/{STAMP}id_/{HOST}f.pdf"' in page


@pytest.mark.parametrize(
    ("path", "media_type", "status"),
    [
        (f"2010im_/{HOST}i.png", "image/png", 200),
        (f"2010oe_/{HOST}i.png", "image/png", 200),
        (f"2009cs_/{HOST}dir/s.css", "text/css; charset=utf-8", 200),
        (f"2009js_/{HOST}s.js", "text/plain; charset=utf-8", 200),
        # What a frame shows alone: text as it is, as browsers save it or leave out its tags.
        *((f"2009if_/{HOST}{name}", "text/plain; charset=utf-8", 200) for name in TEXTS),
        (f"2009if_/{HOST}u.xml", "application/xhtml+xml; charset=utf-8", 200),
        (f"2009if_/{HOST}i.svg", "image/svg+xml; charset=utf-8", 200),
        (f"2009cs_/{HOST}s.css", "text/css; charset=utf-8", 200),
        (f"2009id_/{HOST}s.js", "application/javascript", 200),
        (f"2009fr_/{HOST}nic", "text/html; charset=utf-8", 404),
        (f"2009if_/{HOST}utf16", "text/html; charset=utf-16le", 200),
    ],
)
def test_resources_have_the_type_that_they_are_wanted_for(
    ask: Ask, path: str, media_type: str, status: int
) -> None:
    got = ask(path)
    assert (got.status, got.headers["Content-Type"]) == (status, media_type)
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    stored = "id_/" in path
    assert ("attachment" in got.headers.get("Content-Disposition", "")) == stored
    policy = "same-origin" if stored else "cross-origin"  # a sandbox has no origin of its own
    assert got.headers["Cross-Origin-Resource-Policy"] == policy


def test_the_nearest_resource_answers_and_says_its_time(ask: Ask) -> None:
    got = ask(f"2010im_/{HOST}i.png")
    assert got.headers["Memento-Datetime"] == "Mon, 01 Jun 2009 00:00:00 GMT"
    assert got.headers["Content-Location"] == f"/web/20090601000000im_/{HOST}i.png"
    assert got.headers["Cache-Control"] == "no-cache"
    exact = ask(f"20120601000000im_/{HOST}i.png")
    assert exact.headers["Cache-Control"].startswith("public, max-age=")
    part = ask(f"2012im_/{HOST}i.png", range="bytes=0-7")
    assert (part.status, part.headers["Content-Range"]) == (206, "bytes 0-7/25")
    assert ask(f"2012im_/{HOST}i.png", if_none_match=exact.headers["ETag"]).status == 304


@pytest.mark.parametrize(
    ("path", "query", "place"),
    [
        ("2009cs_/v.css", "7", "20090501000000cs_/{}v.css?1393"),
        ("2010cs_/v.css", "v=2", "20100501000000cs_/{}v.css?2393"),
        ("2010cs_/v.css", "", "20100501000000cs_/{}v.css?2393"),
        ("2009js_/bez.js", "_=1393844276741", "20090501000000js_/{}bez.js"),
        ("2009fr_/clanek", "id=7", "20090501000000fr_/{}clanek?id=7&utm_source=rss"),
    ],
)
def test_a_url_that_says_the_same_stands_for_one_that_is_not_there(
    ask: Ask, path: str, query: str, place: str
) -> None:
    stamp, name = path.split("/")
    answer = ask(f"{stamp}/{HOST}{name}", query)
    assert answer.status == 200
    assert answer.headers["Content-Location"] == "/web/" + place.format(HOST)
    # A later publish may bring the very URL.
    assert answer.headers["Cache-Control"] == "no-cache"


def test_a_page_is_redirected_to_the_url_that_stands_for_it(ask: Ask) -> None:
    own = f"/web/{STAMP}/{HOST}clanek?id=7&utm_source=rss"
    for path in ("clanek", f"{STAMP}/{HOST}clanek", f"{STAMP}/{HOST}clanek?id=7&utm_source=x"):
        address, _, query = path.partition("?")
        answer = ask(address if "/" in address else f"{HOST}{address}", query or "id=7")
        assert (answer.status, answer.headers.get("Location")) == (302, own)
    # Another page, an exact index, and what was withdrawn: nothing stands for these.
    assert ask(f"{STAMP}/{HOST}clanek", "id=8").status == 404
    assert ask("timemap/cdx", f"url={HOST}v.css").body == b""
    assert ask(f"{STAMP}cs_/{HOST}tajne.css", "2").status == 404


def test_a_rewritten_page_is_compressed_and_revalidated(ask: Ask) -> None:
    path = f"{STAMP}if_/{HOST}dir/strana.html"
    got = ask(path, accept_encoding="gzip")
    assert got.headers["Content-Encoding"] == "gzip"
    again = ask(path, accept_encoding="gzip", if_none_match=got.headers["ETag"])
    assert (again.status, again.body) == (304, b"")


def test_a_page_that_is_too_large_for_a_function_is_a_download_in_parts(ask: Ask) -> None:
    path = f"{STAMP}if_/{HOST}velka"
    whole = ask(path, accept_encoding="gzip")
    assert (whole.status, whole.headers["Content-Encoding"]) == (200, "gzip")
    assert ask(path, lambda_=True, accept_encoding="gzip").status == 200
    assert ask(path, lambda_=True).status == 413
    part = ask(path, lambda_=True, range="bytes=0-")
    assert part.status == 206
    assert part.headers["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "url",
    ["%ff%fe", "http://%00\r\nX: y/", "http%3A%2F%2Fa.cz%2F%0D%0AX:y", "http://[/", "javascript:x"],
)
@pytest.mark.parametrize("modifier", ["", "2009/", "2009if_/", "2009im_/", "2009id_/", "*/"])
def test_an_odd_address_is_refused_and_breaks_no_header(ask: Ask, modifier: str, url: str) -> None:
    got = ask(modifier + url)
    assert got.status in (302, 404)
    assert not any(set(text) & set("\r\n") for text in got.headers.values())
    assert all(text.isascii() for text in got.headers.values())


@pytest.mark.parametrize("modifier", ["", "if_", "im_"])
def test_a_head_is_answered_without_a_body(ask: Ask, modifier: str) -> None:
    for name in ("dir/strana.html", "i.png", "neni"):
        path = f"20090501000000{modifier}/{HOST}{name}"
        got, head = ask(path), ask(path, method="HEAD")
        assert (head.status, head.body) == (got.status, b"")
        assert head.headers.get("Content-Length") == got.headers.get("Content-Length")


@pytest.mark.parametrize(
    ("path", "query", "url", "modifier"),
    [
        ("20070101/http://a.cz/x", "q=1", "http://a.cz/x?q=1", ""),
        ("2im_/http:/a.cz/x", "", "http://a.cz/x", "im_"),
        ("2007if_/http%3A%2F%2Fa.cz%2F", "", "http://a.cz/", "if_"),
        ("a.cz", "", "http://a.cz", ""),
    ],
)
def test_addresses_are_read_as_clients_write_them(
    path: str, query: str, url: str, modifier: str
) -> None:
    request = read_replay(Call("GET", BASE, f"/web/{path}", query))
    assert (request.url, request.modifier) == (url, modifier)


def test_frames_may_have_a_host_of_their_own() -> None:
    addresses = ReplayAddresses(f"{BASE}/prefix", "https://replay.example.org")
    assert addresses.page("2007", "http://a.cz/") == f"{BASE}/prefix/web/2007/http://a.cz/"
    assert addresses.resource("2007", "im_", "http://a.cz/#x") == "/web/2007im_/http://a.cz/%23x"
    assert addresses.origin == BASE
    assert addresses.frame("2007", "x").startswith("https://replay.example.org/web/2007if_/")


@pytest.mark.parametrize(
    ("wanted", "status", "stamp"),
    [
        ("Thu, 01 Jun 2006 00:00:00 GMT", 302, "20070101000000"),
        ("Mon, 01 Jan 1990 00:00:00 GMT", 302, "20050101000000"),
        ("2006", 400, ""),
    ],
)
def test_without_a_timestamp_it_is_a_timegate(
    ask: Ask, wanted: str, status: int, stamp: str
) -> None:
    answer = ask(f"{HOST}roky", **{"accept-datetime": wanted})
    assert answer.status == status
    if status == 302:
        assert answer.headers["Location"] == f"/web/{stamp}/{HOST}roky"
        assert answer.headers["Vary"] == "Accept-Encoding, accept-datetime"
        assert f'{BASE}/timemap/link/{HOST}roky>; rel="timemap"' in answer.headers["Link"]


@pytest.mark.parametrize("modifier", ["", "if_", "id_"])
def test_a_memento_names_itself_and_its_neighbours(ask: Ask, modifier: str) -> None:
    answer = ask(f"20070101000000{modifier}/{HOST}roky")
    assert answer.status == 200
    assert answer.headers["Memento-Datetime"] == "Mon, 01 Jan 2007 00:00:00 GMT"
    link = answer.headers["Link"]
    for year, relation in ((2005, "first prev memento"), (2007, "memento")):
        assert f'<{BASE}/web/{year}0101000000/{HOST}roky>; rel="{relation}"; datetime' in link
    assert f'<{BASE}/web/20110101000000/{HOST}roky>; rel="next last memento"' in link
    for relation in ("original", "timegate", "timemap"):
        assert f'; rel="{relation}"' in link
    gate = ask(f"{HOST}roky")
    assert gate.headers["Location"] == f"/web/20110101000000/{HOST}roky"
    assert f'<{BASE}/web/20110101000000/{HOST}roky>; rel="last memento"' in gate.headers["Link"]


def test_a_memento_of_a_timemap_answers_at_its_address(ask: Ask) -> None:
    for url in (f"{HOST}roky", f"{HOST}clanek?id=7&utm_source=rss", f"{HOST}nic"):
        path, _, query = url.partition("?")
        lines = bytes(ask(f"timemap/link/{path}", query).body).decode()  # type: ignore[arg-type]
        for address in re.findall(r"<([^>]*)>[^<]*memento", lines):
            path, _, query = address.removeprefix(f"{BASE}/web/").partition("?")
            answer = ask(path, query)
            assert answer.status in (200, 404)
            assert "Memento-Datetime" in answer.headers


def test_timemaps_and_the_index_are_below_the_names_of_replay(ask: Ask) -> None:
    for form in ("link", "json", "cdxj"):
        answer = ask(f"timemap/{form}/{HOST}roky")
        assert answer.status == 200
        assert b"2011" in bytes(answer.body)
    # What Zeno asks before it stores a payload.
    newest = ask("timemap/cdx", f"url={HOST}roky&limit=-1")
    fields = bytes(newest.body).decode().split()
    assert (newest.status, len(fields)) == (200, 7)
    assert fields[1:5] == ["20110101000000", f"{HOST}roky", "text/html", "200"]
    assert ask("timemap/none/http://a.cz/").status == 404
