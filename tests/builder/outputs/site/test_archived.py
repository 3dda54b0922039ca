"""Archived pages as files: what pages lead to is there, calm, and goes with what is withdrawn."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from builder.outputs.site.archived import calm, name_map
from builder.serve.site_folder import SiteFolder
from functions.http.http_message import Call
from tests.builder.outputs.site.test_plain_host import ROOT, crawl
from tests.e2e.conftest import Home, make_home
from tests.pages.archive import Capture, write

HOST, DATE = "http://a.cz/", "2009-05-01T00:00:00Z"
PAGE = b"""<!-- a --><!DOCTYPE html><meta charset=windows-1250><title>\xe8</title>
<link rel=stylesheet href=/s.css?v=1><script src=/x.js></script><script>alert(1)</script>
<img src=/a.png><img src=/none.png><img src=/frame><iframe src=/frame></iframe>
<a href="/a?q=1">a</a><a href=/b/>b</a>
<a href=/nowhere>c</a><a href=/moved>d</a>"""
LONG = f"{HOST}{'x' * 300}"


def captures() -> Iterator[Capture]:
    """Yield pages whose URLs no file can have as its name, and what they load."""
    yield Capture(HOST, DATE, PAGE, "text/html; charset=windows-1250")
    yield Capture(HOST, "2010-05-01T00:00:00Z", b"<p>secret", "text/html")
    for name in ("a", "a/b", "a?q=1", "a?q=2", "b/", "frame", "c.link/d", "x/index"):
        yield Capture(f"{HOST}{name}", DATE, f"<p>page {name}".encode())
    for name, other in (("one", "two"), ("two", "one"), ("start", "b/")):  # each leads on at once
        text = f"<meta http-equiv=refresh content='0;url={HOST}{other}'>"
        yield Capture(f"{HOST}{name}", DATE, text.encode())
    yield Capture(LONG, DATE, b"<p>long")
    yield Capture(f"{HOST}s.css?v=1", DATE, b"p{background:url(/a.png)}", "text/css")
    yield Capture(f"{HOST}a.png", DATE, b"\x89PNG\r\n\x1a\n", "image/png")
    yield Capture(f"{HOST}a.png", "2011-05-01T00:00:00Z", b"\x89PNG\r\n\x1a\n", "image/png")
    yield Capture(f"{HOST}x.js", DATE, b"alert(2)", "text/javascript")
    yield Capture(f"{HOST}moved", DATE, b"", status="301 Moved", location="/a")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("SHEAF_REPOSITORY_BASE_URL", f"{ROOT}/oai")
    monkeypatch.setenv("SHEAF_SITE_REPLAY", "true")
    monkeypatch.setenv("SHEAF_DOCUMENTS_INCLUDE", '["redirects"]')
    home = make_home(tmp_path / "home")
    for line in (("ingest", write(home.folder / "own.warc.gz", captures())), ("publish",)):
        done = home(*line)
        assert done.code == 0, done.err
    return home


def export(home: Home, name: str = "public") -> Path:
    """Return the pages of an export."""
    done = home("export", "site", home.folder / name)
    assert done.code == 0, done.err
    return home.folder / name / "www"


def read_pages(www: Path) -> dict[str, bytes]:
    paths = (path for path in www.glob("web/**/*") if path.is_file() and path.suffix != ".gz")
    return {path.relative_to(www).as_posix(): path.read_bytes() for path in paths}


def test_archived_pages_are_files(home: Home) -> None:
    www = export(home)
    crawl(www)
    pages = read_pages(www)
    inner = {n: data for n, data in pages.items() if n[:7] == "web/in/" and "missing" not in n}
    for name, data in inner.items():
        if name.endswith(".html"):
            assert b"script-src 'none'" in data[:300] or b"not in the archive" in data, name
    (page,) = (data for data in inner.values() if "<title>č</title>".encode() in data)
    assert re.match(b"\xef\xbb\xbf<!-- a --><!DOCTYPE html><meta http-equiv", page)
    assert page.count(b"/web/in/missing.svg") == 2  # a page is no image
    assert {name.rpartition(".")[2] for name in inner} == {"html", "css", "png", "txt"}
    assert len([name for name in inner if name.endswith(".png")]) == 1  # captured twice
    maps = {name.removeprefix("web/timemap/link/") for name in pages if name.endswith(".link")}
    assert {"http:/a.cz/index.link", "http:/a.cz/a.link", "http:/a.cz/b/index.link"} <= maps
    assert len([name for name in maps if name.startswith("sha1-")]) == 6
    first = (www / "web/timemap/link/http:/a.cz/index.link").read_text()
    assert first.count('rel="memento"') == 2
    for url in re.findall(rf"<{ROOT}/([^>]*)>", first):
        assert (www / url).is_file()


def test_a_host_says_what_each_file_is(home: Home) -> None:
    www = export(home)
    site = SiteFolder(www.parent)
    for name in read_pages(www):
        answer = site.answer(Call("GET", "http://b.cz", f"/{quote(name)}"))
        policy = answer.headers["Content-Security-Policy"]
        assert answer.status == 200
        assert policy.startswith("sandbox" if name.startswith("web/in/") else "default-src")
    types = {"html": "text/html", "png": "image/png", "link": "application/link-format"}
    for name in read_pages(www):
        answer = site.answer(Call("GET", "http://b.cz", f"/{quote(name)}"))
        expected = types.get(name.rpartition(".")[2], "")
        assert answer.headers["Content-Type"].startswith(expected)
    (page, *_) = (name for name in read_pages(www) if name.endswith("-if_.html"))
    for path in (f"//{page}", f"/./{page}", f"/x/../{page}", f"/{page.replace('/', '%2f')}"):
        answer = site.answer(Call("GET", "http://b.cz", path))
        assert answer.status == 404 or answer.headers["Content-Security-Policy"][:7] == "sandbox"
    for path, query, status in (
        (f"{HOST}a", "", 200),
        (f"{HOST}b/", "", 200),
        (HOST, "", 200),
        (f"{HOST}a", "q=1", 404),
        (f"{HOST}none", "", 404),
    ):
        call = Call("GET", "http://b.cz", f"/web/timemap/link/{path}", query)
        assert site.answer(call).status == status


def test_what_is_withdrawn_goes_at_once(home: Home) -> None:
    www = export(home)
    assert any(b"secret" in data for data in read_pages(www).values())
    found = home("query", f"FROM captures WHERE url = '{HOST}' ORDER BY fetch_date", "--json")
    identifier = json.loads(found.out.splitlines()[-1])["identifier"]
    done = home("withdraw", "--identifier", identifier, "--reason", "why")
    assert done.code == 0, done.err
    after = read_pages(export(home))
    assert not any(b"secret" in data or b"20100501000000" in data for data in after.values())
    assert not any("20100501" in name for name in after)


def test_what_cannot_be_read_is_said(home: Home) -> None:
    (home.folder / "own.warc.gz").unlink()
    www = export(home)
    crawl(www)
    pages = read_pages(www)
    assert {n for n in pages if n.startswith("web/in/")} == {
        f"web/in/missing.{end}" for end in ("html", "svg", "txt")
    }
    assert b"not in the archive" in pages["web/in/missing.html"]


@pytest.mark.parametrize(("key", "value"), [("ENDPOINT", "false"), ("PAGES", "3"), ("REPLAY", "")])
def test_there_is_none_without_a_router_or_beyond_the_number(
    home: Home, monkeypatch: pytest.MonkeyPatch, key: str, value: str
) -> None:
    monkeypatch.setenv(f"SHEAF_SITE_{key}", value or "false")
    www = export(home)
    crawl(www)
    assert not (www / "web").exists()


def test_a_text_is_in_utf_8() -> None:
    xml = b'<?xml version="1.0" encoding="iso-8859-2"?><html>\xe8</html>'
    text = calm(xml, "application/xhtml+xml; charset=iso-8859-2").decode("utf-8-sig")
    assert text == "<?xml version=\"1.0\" encoding='utf-8'?><html>č</html>"
    assert calm(b"\xe8", "image/png") == b"\xe8"
    page = calm(b"<p>", "text/html; charset=utf-8")
    assert page.startswith(b"\xef\xbb\xbf<meta http-equiv")
    assert b"script-src" in calm(b"<script>", "text/html; charset=none")


def test_names_of_timemaps_are_files_side_by_side() -> None:
    urls = (HOST, f"{HOST}a", f"{HOST}a/", f"{HOST}a/b", f"{HOST}a.link/b", f"{HOST}index", LONG)
    names = [name_map(url) for url in (*urls, f"{HOST}a?b", f"{HOST}a%3Fb", f"{HOST}../a")]
    assert len({*names}) == len(names)
    assert not any(other.startswith(f"{name}/") for name in names for other in names)
