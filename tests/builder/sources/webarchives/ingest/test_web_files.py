"""Archive files on web servers, read over HTTP from real servers of this machine."""

import hashlib
import os
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from builder.errors import UsageError
from builder.http.connections import tls_context
from builder.sources.source import SourceInput
from builder.sources.webarchives.ingest import splits
from builder.sources.webarchives.ingest.splits import ArchiveFile
from builder.sources.webarchives.inputs import find_files
from builder.sources.webarchives.remote import web_files
from functions.config.configuration import parse
from functions.store import window_stream
from tests.builder.http import certificates
from tests.builder.http import site as web
from tests.builder.http.site import Answer, Site
from tests.builder.indexes import line
from tests.e2e.conftest import Home, make_home, warc
from tests.e2e.test_commands import one_line

pytestmark = pytest.mark.shared(2)

ACCESS = parse("[http]\nbackoff_seconds = 0\ntries = 3", {})
REPLACED = "removed or replaced during the ingest"
NOTED = '"one"'
DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.fixture
def site() -> Iterator[Site]:
    web_files._client.cache_clear()  # it remembers how a host behaved
    with web.serving() as site:
        yield site


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("SHEAF_HTTP_BACKOFF_SECONDS", "0")
    return make_home(tmp_path / "home")


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    """Return a WARC of a few hundred KB, whose pages do not compress."""
    pages = {
        f"http://www.knihovna.cz/{n}": b"<title>%d</title>" % n + os.urandom(4000).hex().encode()
        for n in range(60)
    }
    return warc(tmp_path / "crawl.warc.gz", pages).read_bytes()


def published(home: Home) -> dict[str, str]:
    """Publish, and return the digests of the data files other than the sources, which name URLs."""
    assert home("publish").code == 0
    records = home.config.parent / "store" / "records"
    files = (path for path in records.rglob("*.parquet") if "/sources/" not in str(path))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def find(url: str) -> ArchiveFile:
    (file,) = web_files.find(url, ACCESS, {})
    return file


def open_file(file: ArchiveFile, folder: Path, end: int | None = None) -> bytes:
    with web_files.open_file(file, ACCESS, {}, end, folder) as stream:
        return stream.read()


def ranges(site: Site) -> list[str]:
    return [request.headers.get("range", "") for request in site.requests]


def without_ranges(body: bytes) -> Answer:
    return web.text(body, ETag=NOTED)


def ranged_without_size(body: bytes) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        if "Range" in handler.headers:
            web.text(body[:1], code=206, Content_Range="bytes 0-0/*")(handler)
        else:
            web.text(body)(handler)

    return answer


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "kind", ["ranged", "ranged_without_size", "without_ranges", "without_size", "redirect", "cut"]
)
def test_a_file_gives_what_it_gives_on_this_machine(
    home: Home, site: Site, archive: bytes, tmp_path: Path, kind: str
) -> None:
    local = make_home(tmp_path / "local")
    here = local("ingest", tmp_path / "crawl.warc.gz", "--json").json["sources"]
    answers = {
        "ranged": web.ranged(archive, NOTED),
        "ranged_without_size": ranged_without_size(archive),
        "without_ranges": without_ranges(archive),
        "without_size": web.raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + archive),
        "redirect": web.redirect("/there"),
        "cut": web.ranged(archive, NOTED, cut=100_000),
    }
    site.pages |= {"/a/crawl.warc.gz": answers[kind], "/there": web.ranged(archive, NOTED)}
    url = site.url("/a/crawl.warc.gz")
    done = home("ingest", url, "--json")
    assert done.code == 0, done.err
    reading = done.json["sources"][0]["reading"]
    assert done.json["sources"] == [{**here[0], "path": url, "reading": reading}]
    assert (reading is None) == kind.endswith("without_size")  # those have no validator either
    again = home("ingest", url)
    assert (again.out == "everything was ingested before\n") == (reading is not None)
    assert published(home) == published(local)
    assert not list(home.config.parent.rglob("*ingest-*"))


@pytest.fixture
def large(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of a WARC of 1.5 MB, which is large for these tests."""
    monkeypatch.setattr(splits, "RANGED_FROM", 1_000_000)
    pages = {f"http://www.a.cz/{n}": os.urandom(5000) for n in range(300)}
    data = warc(tmp_path / "large.warc.gz", pages).read_bytes()
    site.pages["/large.warc.gz"] = web.ranged(data, NOTED)
    return site.url("/large.warc.gz")


def test_a_large_file_is_read_in_ranges(
    home: Home, site: Site, large: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builder.sources.webarchives.ingest.splits.LEAST", 500_000)
    done = home("ingest", large, "--jobs", "1", "--json")
    assert (done.code, done.json["read_in_one_piece"]) == (0, [])
    assert ranges(site).count("bytes=0-0") == 1 + 1 + 4  # found, hashed, and read by four splits
    local = make_home(tmp_path / "local")
    assert local("ingest", tmp_path / "large.warc.gz").code == 0
    assert published(home) == published(local)


@pytest.mark.thorough
def test_other_formats_give_what_they_give_on_this_machine(
    home: Home, site: Site, archive: bytes, tmp_path: Path
) -> None:
    """A WACZ file is read by the directory at its end, an index line by line."""
    with zipfile.ZipFile(tmp_path / "a.wacz", "w") as wacz:
        wacz.write(tmp_path / "crawl.warc.gz", "archive/crawl.warc.gz")
    (tmp_path / "b.cdxj").write_bytes(b"\n".join(line(f"http://www.a.cz/{n}") for n in range(99)))
    files = [tmp_path / "a.wacz", tmp_path / "b.cdxj"]
    site.pages |= {f"/{path.name}": web.ranged(path.read_bytes(), NOTED) for path in files}
    local = make_home(tmp_path / "local")
    here = local("ingest", *files, "--json").json["sources"]
    done = home("ingest", *(site.url(f"/{path.name}") for path in files), "--json")
    own = [{"path": s["path"], "reading": s["reading"]} for s in done.json["sources"]]
    assert [one["path"] for one in own] == [site.url(f"/{path.name}") for path in files]
    assert done.json["sources"] == [one | mine for one, mine in zip(here, own, strict=True)]
    assert [one["captures"] for one in here] == [60, 99]
    assert published(home) == published(local)


def test_a_chunk_reads_only_its_range(
    site: Site, archive: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_stream, "LEAST", 10_000)
    site.pages["/a"] = web.ranged(archive, NOTED)
    file = find(site.url("/a"))
    site.requests.clear()
    with web_files.open_file(file, ACCESS, {}, 200_000, tmp_path) as stream:
        stream.seek(100_000)
        assert stream.read(101_000) == archive[100_000:201_000]
    spans = [span.removeprefix("bytes=").split("-") for span in sorted(ranges(site))[1:]]
    assert min(int(first) for first, _ in spans) == 100_000
    assert max(int(last) for _, last in spans) < 211_000


def test_the_stream_is_read_from_anywhere(site: Site, archive: bytes, tmp_path: Path) -> None:
    site.pages["/a"] = web.ranged(archive, NOTED)
    with web_files.open_file(find(site.url("/a")), ACCESS, {}, None, tmp_path) as stream:
        assert stream.read() == archive
        assert stream.read() == b""
        for place in (0, len(archive) - 10, 262_143, 262_145, len(archive) + 5):
            assert stream.seek(place) == place
            assert stream.read(90_000) == archive[place : place + 90_000]
        assert stream.seek(-5, os.SEEK_END) == len(archive) - 5
    assert {r.headers.get("if-match") for r in site.requests} == {None, NOTED}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"etag": NOTED}, {"etag": '"two"'}),
        ({"modified": DATE}, {"modified": DATE.replace("2015", "2016")}),
        ({"etag": 'W/"a"', "modified": DATE}, {"etag": 'W/"a"', "modified": "x"}),
        ({}, {"longer": True}),
    ],
)
def test_a_file_that_is_replaced_while_it_is_read(
    site: Site, archive: bytes, tmp_path: Path, before: dict[str, str], after: dict[str, str]
) -> None:
    body = archive + b"x" * bool(after.pop("longer", ""))
    site.pages["/a"] = web.ranged(archive, **before)
    file = find(site.url("/a"))
    with web_files.open_file(file, ACCESS, {}, None, tmp_path) as stream:
        assert stream.read(10) == archive[:10]
        site.pages["/a"] = web.ranged(body, **after)
        with pytest.raises(OSError, match=REPLACED):
            stream.read()
    with pytest.raises(OSError, match=REPLACED):
        open_file(file, tmp_path)
    site.pages["/a"] = web.text(body, ETag='"three"')
    with pytest.raises(OSError, match=REPLACED):
        open_file(file, tmp_path)


def test_a_file_that_goes_while_it_is_read_is_one_unreadable_file(
    home: Home, site: Site, archive: bytes
) -> None:
    def vanish(handler: BaseHTTPRequestHandler) -> None:
        kind = web.status(404) if "200000-" in handler.headers["Range"] else given
        kind(handler)

    given = web.ranged(archive, NOTED, cut=200_000)
    site.pages |= {"/a.warc.gz": vanish, "/b.warc.gz": web.ranged(archive, NOTED)}
    done = home("ingest", site.url("/a.warc.gz"), site.url("/b.warc.gz"), "--json")
    assert (done.code, done.json["failed"]) == (1, 1)
    assert [s["codes"] for s in done.json["sources"]] == [{"unreadable": 1}, {}]
    assert home("publish").code == 0
    faults = home("query", "SELECT source, detail FROM faults").out
    assert f"a.warc.gz,it was {REPLACED}" in faults


def test_a_server_that_is_away_for_a_moment(site: Site, archive: bytes, tmp_path: Path) -> None:
    given = web.ranged(archive, NOTED)
    broken = web.raw(b"HTTP/1.1 206 Partial")
    site.pages["/a"] = web.then(web.status(503), given, web.status(429), broken, given)
    assert open_file(find(site.url("/a")), tmp_path) == archive
    site.pages["/b"] = web.then(given, given, web.status(500))
    with pytest.raises(OSError, match="server-error: HTTP status 500"):
        open_file(find(site.url("/b")), tmp_path)
    assert len(site.asked("/b")) == 2 + 3


def test_a_response_to_save_that_breaks_off_begins_again(
    site: Site, archive: bytes, tmp_path: Path
) -> None:
    whole = without_ranges(archive)
    head = b"HTTP/1.1 200 OK\r\nETag: %s\r\nContent-Length: %d\r\n\r\n"
    torn = web.raw(head % (NOTED.encode(), len(archive)) + archive[:5000])
    site.pages["/a"] = web.then(whole, whole, torn, whole)
    assert open_file(find(site.url("/a")), tmp_path) == archive


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (web.status(404), "not-found: HTTP status 404"),
        (web.status(403), "forbidden: HTTP status 403"),
        (web.redirect("http://localhost:9/"), "port-refused"),
        (web.redirect("http://localhost:8080/"), "address-refused: localhost is 127.0.0.1"),
        (web.status(206), "its Content-Range is invalid"),
        (web.status(503, Retry_After="9000"), "server-error: HTTP status 503"),
    ],
)
def test_a_file_that_cannot_be_looked_up_is_an_unreadable_file(
    site: Site, answer: Answer, why: str
) -> None:
    site.pages["/a.warc.gz"] = answer
    assert why in find(site.url("/a.warc.gz")).flaw


def test_a_host_that_asks_for_a_long_pause_is_left_alone(site: Site, tmp_path: Path) -> None:
    site.pages["/a"] = web.then(web.status(429, Retry_After="9000"), web.ranged(b"x"))
    assert find(site.url("/a")).flaw == "too-many-requests: HTTP status 429"
    assert "it asked for a pause over http.wait_seconds" in find(site.url("/b")).flaw
    assert site.paths() == ["/a"]


def test_what_could_not_be_read_is_read_again(home: Home, site: Site, archive: bytes) -> None:
    url, other = site.url("/a.warc.gz"), site.url("/b.warc.gz")
    site.pages["/b.warc.gz"] = web.ranged(archive)
    listed = home.folder / "list"
    listed.write_text(f"{url}\n{other}\n")
    done = home("ingest", "--files-from", listed)
    assert (done.code, f"{url}: unreadable" in done.out) == (1, True)
    site.pages["/a.warc.gz"] = web.ranged(archive)
    again = home("ingest", "--retry", "--json").json
    assert [(s["path"], s["captures"]) for s in again["sources"]] == [(url, 60)]
    assert home("publish").code == 0
    assert url in home("query", "SELECT path FROM sources").out


def test_a_password_is_refused_and_not_repeated(home: Home) -> None:
    done = home("ingest", "https://me:secret@archive.example/a.warc.gz")
    assert (done.code, "secret" in done.err) == (2, False)
    assert "https://archive.example/a.warc.gz: a URL with a user" in one_line(done.err)


@pytest.mark.parametrize(
    "url", ["https://", "https://a b/", "http://[::1", "https://ž.cz/", "http://a:0/"]
)
def test_a_url_that_cannot_be_requested_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        find(url)


def test_a_signature_is_sent_but_never_written(
    home: Home, site: Site, archive: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/a.warc.gz?part=1&X-Amz-Signature=5ec4e7"
    site.pages[path] = web.ranged(archive, NOTED)
    kept = {}

    def remember(*given: object) -> None:
        for file in home.config.parent.rglob("*"):
            if file.is_file():
                kept[file.name] = file.read_bytes()

    monkeypatch.setattr("builder.store.workdir.Work.remove", remember)
    done = home("ingest", site.url(path) + "#part", "--json")
    assert done.json["sources"][0]["path"] == site.url("/a.warc.gz?part=1")
    assert "part-000000.json" in kept
    assert home("publish").code == 0
    remember()
    assert [name for name, data in kept.items() if b"5ec4e7" in data] == []
    _, names = find_files([SourceInput(site.url(path))], ACCESS, {})
    assert names == (site.url("/a.warc.gz?part=1"),)
    done = home("ingest", "plan", site.url(path), "--again")
    assert (done.code, "5ec4e7" in done.err) == (2, False)
    assert "was given with a secret" in one_line(done.err)


def test_names_are_those_of_the_path(site: Site) -> None:
    site.pages |= {path: web.ranged(b"x") for path in ("/a%20b.warc", "/", "/get?file=a.warc")}
    names = [find(site.url(path) + " ").path.name for path in site.pages]
    assert names == ["a b.warc", "127.0.0.1", "get"]


def test_an_empty_file_is_empty(site: Site, tmp_path: Path) -> None:
    site.pages["/a"] = web.ranged(b"", NOTED)
    assert open_file(find(site.url("/a")), tmp_path) == b""


def test_many_urls_are_looked_up_side_by_side(home: Home, site: Site) -> None:
    met = threading.Barrier(4, timeout=20)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        met.wait()
        web.status(404)(handler)

    site.pages |= {f"/{n}": answer for n in range(8)}
    done = home("ingest", *(site.url(f"/{n}") for n in range(8)), "--json")
    assert done.json["failed"] == 8


def test_certificates_are_checked(
    archive: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web_files._client.cache_clear()
    authority = tmp_path / "authority.pem"
    authority.write_text(certificates.root_pem())
    with web.serving(tls=certificates.of_host("localhost")) as site:
        site.pages["/a"] = web.ranged(archive, NOTED)
        url = site.url("/a", "localhost").replace("http:", "https:")
        assert find(url).flaw.startswith("tls: ")
        assert site.paths() == []
        web_files._client.cache_clear()
        tls_context.cache_clear()
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        assert open_file(find(url), tmp_path) == archive
    tls_context.cache_clear()
