"""Archived bytes, all the way: ingested, published, and had over HTTP or by the function."""

import base64
import json
import random
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from functions.content import assembly
from functions.http.lambda_instance import Instance
from tests.bucket import administrator, fresh
from tests.e2e.conftest import Home, make_home, sheaf, warc
from tests.e2e.test_s3 import Bucketed
from tests.e2e.test_server import command
from tests.e2e.test_takedown import identifier
from tests.functions.oai.client import event
from tests.functions.oai.gateways import received

pytestmark = pytest.mark.shared(2)

LARGE = random.Random(7).randbytes(8_000_000)
PAGES = {
    "http://www.knihovna.cz/": b"<html lang=cs><title>Knihovna</title><script>alert(1)</script>",
    "http://www.knihovna.cz/data": LARGE,
    "http://www.archiv.org/": b"<title>Archiv</title>",
}


@pytest.fixture(scope="module")
def untouched(lasting_home: Home) -> Home:
    """For tests that change nothing."""
    lasting_home.publish_pages(lasting_home.folder / "one.warc.gz", PAGES)
    return lasting_home


@pytest.fixture
def published(tmp_path: Path) -> Home:
    """For one test alone."""
    home = make_home(tmp_path / "home")
    home.publish_pages(home.folder / "one.warc.gz", PAGES)
    return home


def got(url: str, **headers: str) -> tuple[int, Any, bytes]:
    """Return status, headers and body; where it is led elsewhere it follows."""
    asked = urllib.request.Request(
        url, headers={n.replace("_", "-"): v for n, v in headers.items()}
    )
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


@pytest.fixture(scope="module")
def served(untouched: Home) -> Iterator[str]:
    """Give what /content lies below, of `sheaf serve --content`."""
    with command(untouched, "--content", SHEAF_SERVE_POINTER_SECONDS="0") as (url, _):
        yield url.removesuffix("/oai")


@pytest.mark.parametrize("url", PAGES)
def test_what_was_archived_comes_out_as_it_went_in(untouched: Home, served: str, url: str) -> None:
    name = identifier(untouched, url)
    status, headers, body = got(f"{served}/content/{name}")
    assert (status, body) == (200, PAGES[url])
    assert headers["Content-Type"] == "text/html"
    assert headers["Content-Disposition"].startswith("inline")
    assert headers["Content-Security-Policy"].startswith("sandbox;")
    assert headers["Memento-Datetime"] == "Mon, 05 Nov 2007 12:00:00 GMT"
    assert got(f"{served}/content?id={name}")[2] == PAGES[url]
    tag = headers["ETag"]
    assert got(f"{served}/content/{name}", if_none_match=tag)[0] == 304
    status, headers, body = got(f"{served}/content/{name}", range="bytes=5-9", if_range=tag)
    assert (status, body) == (206, PAGES[url][5:10])
    assert headers["Content-Range"] == f"bytes 5-9/{len(PAGES[url])}"


def test_an_index_a_timemap_and_a_timegate_lead_to_it(served: str) -> None:
    lines = got(f"{served}/cdx?url=knihovna.cz&matchType=domain")[2].decode().splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["cz,knihovna)/", "cz,knihovna)/data"]
    found = json.loads(lines[0].partition("{")[1] + lines[0].partition("{")[2])
    assert got(f"{served}/content/{found['identifier']}")[2] == PAGES["http://www.knihovna.cz/"]
    wanted = "Thu, 01 Jan 2015 00:00:00 GMT"
    gate = f"{served}/timegate/http://www.knihovna.cz/"
    status, headers, body = got(gate, accept_datetime=wanted)
    memento = "/web/20071105120000{}/http://www.knihovna.cz/"
    assert (status, f'<iframe src="{served}{memento.format("if_")}"' in body.decode()) == (
        200,
        True,
    )
    assert got(served + memento.format("id_"))[2] == PAGES["http://www.knihovna.cz/"]
    assert f'<{gate}>; rel="timegate"' in headers["Link"]
    assert headers["Link"].count('rel="first last memento"; datetime="Mon, 05 Nov 2007') == 1
    status, headers, body = got(f"{served}/timemap/link/http://www.knihovna.cz/")
    assert (status, body.decode().count(f"<{served}{memento.format('')}>")) == (200, 1)


def test_the_page_for_people_tells_of_it_where_it_is_given(untouched: Home, served: str) -> None:
    assert f"{served}/content/".encode() in got(served + "/harvest")[2]
    with command(untouched) as (url, _):
        base = url.removesuffix("/oai")
        assert b"/content/" not in got(base + "/harvest")[2]
        assert got(f"{base}/content/{identifier(untouched, 'http://www.archiv.org/')}")[0] == 404
        assert got(f"{base}/cdx?url=knihovna.cz")[0] == 404


def test_the_configuration_has_it_given(published: Home) -> None:
    name = identifier(published, "http://www.archiv.org/")
    with command(published, SHEAF_CONTENT_SERVE="true") as (url, errors):
        assert got(url.replace("/oai", f"/content/{name}"))[0] == 200
        (line,) = map(json.loads, errors.read_text().splitlines())
    assert (line["path"], line["identifier"], line["bytes"]) == (f"/content/{name}", name, 21)


def test_of_what_is_withdrawn_there_is_no_byte(published: Home) -> None:
    name = identifier(published, "http://www.archiv.org/")
    with command(published, "--content", SHEAF_SERVE_POINTER_SECONDS="0") as (url, _):
        base = url.removesuffix("/oai")
        tag = got(f"{base}/content/{name}")[1]["ETag"]
        assert published("withdraw", "--identifier", name, "--reason", "asked").code == 0
        for headers in ({}, {"if_none_match": tag}, {"range": "bytes=0-1"}):
            status, told, body = got(f"{base}/content/{name}", **headers)
            assert (status, told["X-Archive-Error"]) == (410, "withdrawn")
            assert b"Archiv" not in body
        assert got(f"{base}/cdx?url=www.archiv.org/*")[2] == b""
        assert got(f"{base}/timegate/http://www.archiv.org/")[0] == 404
        for modifier in ("", "if_", "im_", "id_"):
            status, _, body = got(f"{base}/web/20071105120000{modifier}/http://www.archiv.org/")
            assert (status, b"Archiv" in body) == (404, False)


def test_what_was_damaged_since_is_never_had_whole(published: Home) -> None:
    small = identifier(published, "http://www.archiv.org/")
    large = identifier(published, "http://www.knihovna.cz/data")
    warc(published.folder / "one.warc.gz", {**PAGES, "http://www.knihovna.cz/data": LARGE[::-1]})
    with command(published, "--content") as (url, errors):
        base = url.removesuffix("/oai")
        with pytest.raises((IncompleteRead, AssertionError)):
            assert got(f"{base}/content/{large}")[0] == 200
        (published.folder / "one.warc.gz").unlink()
        status, headers, _ = got(f"{base}/content/{small}")
        assert (status, headers["X-Archive-Error"]) == (503, "not-at-hand")
        assert "Traceback" not in errors.read_text()


@pytest.fixture(scope="module")
def bucketed(weed_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucketed]:
    bucket = fresh(weed_server)
    home = Bucketed(tmp_path_factory.mktemp("bucketed") / "home", bucket)
    home.publish_pages(home.folder / "one.warc.gz", PAGES)
    archives = administrator(weed_server)
    archives.upload_file(str(home.folder / "one.warc.gz"), bucket.bucket, "crawls/one.warc.gz")
    yield home
    bucket.close()


class Lambda:
    """The function for content over a bucket; `lines` is its log."""

    def __init__(self, home: Bucketed, root: Path, **settings: str) -> None:
        self.lines: list[str] = []
        environment = {
            **home.bucket.environment,
            "SHEAF_STORE_URI": home.bucket.uri,
            "SHEAF_CONTENT_SERVE": "true",
            "SHEAF_CONTENT_ARCHIVES": f'["s3://{home.bucket.bucket}/crawls"]',
            "SHEAF_REPOSITORY_NAMESPACE": "b.cz",
            "SHEAF_SERVE_POINTER_SECONDS": "0",
            **settings,
        }
        self.instance = Instance(environment, root, self.lines.append, assembly.of_lambda)

    def get(self, path: str, query: str = "", **headers: str) -> tuple[int, Any, bytes]:
        answer = received(self.instance(event(query, path=path, headers=headers)))
        return answer["statusCode"], answer["headers"], base64.b64decode(answer["body"])


def test_the_function_reads_a_record_by_few_requests(bucketed: Bucketed, tmp_path: Path) -> None:
    function = Lambda(bucketed, tmp_path)
    name = identifier(bucketed, "http://www.archiv.org/")
    for _ in range(2):
        status, _, body = function.get(f"/content/{name}")
        assert (status, body) == (200, PAGES["http://www.archiv.org/"])
    first, again = (json.loads(line)["store_requests"] for line in function.lines)
    # Pointer, manifest, look-up, the record's row and the record; again all but the first is kept.
    assert first <= 8
    assert again <= 2


def test_the_function_answers_lists(bucketed: Bucketed, tmp_path: Path) -> None:
    function = Lambda(bucketed, tmp_path)
    status, _, body = function.get("/cdx", "url=knihovna.cz&matchType=domain")
    assert (status, body.count(b"\n")) == (200, 2)
    status, _, body = function.get("/cdx/search/cdx", "url=knihovna.cz&output=json&page=0")
    assert (status, json.loads(body)[1][2]) == (200, "http://www.knihovna.cz/")
    gate = function.get("/timegate/http://www.archiv.org/")
    assert gate[:1] == (302,)
    where = gate[1]["Location"].removeprefix("https://oai.example.org")
    assert b"<iframe" in function.get(where)[2]
    stored = where.replace("/http:", "id_/http:")
    assert function.get(stored)[2] == PAGES["http://www.archiv.org/"]


def test_the_function_replays_by_as_many_requests_as_it_reads(
    bucketed: Bucketed, tmp_path: Path
) -> None:
    function = Lambda(bucketed, tmp_path)
    for path in ("20071105120000if_/http://www.archiv.org/", "2007if_/http:/www.archiv.org/"):
        status, headers, body = function.get(f"/web/{path}")
        assert (status, headers["Content-Location"][-22:]) == (200, "http://www.archiv.org/")
        assert PAGES["http://www.archiv.org/"] in body
    first, again = (json.loads(line)["store_requests"] for line in function.lines)
    assert first <= 9  # the table of URLs instead of that of identifiers
    assert again <= 2
    status, _, page = function.get("/web/20071105120000/http://www.archiv.org/")
    assert (status, page.count(b"<iframe")) == (200, 1)


def test_a_function_without_a_store_is_not_ready(tmp_path: Path, bucketed: Bucketed) -> None:
    function = Lambda(bucketed, tmp_path, SHEAF_STORE_URI="s3://sheaf-nowhere/store")
    assert function.get("/content/x")[0] == 503


def test_content_is_not_given_by_accident(bucketed: Bucketed, tmp_path: Path) -> None:
    function = Lambda(bucketed, tmp_path, SHEAF_CONTENT_SERVE="false")
    name = identifier(bucketed, "http://www.archiv.org/")
    assert function.get(f"/content/{name}")[0] == 404
    assert sheaf("serve", "--help").out.count("--content") >= 1


@pytest.mark.thorough
def test_a_file_that_was_named_as_seen_from_elsewhere_is_found_again(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crawls").mkdir()
    warc(tmp_path / "crawls" / "one.warc.gz", {"http://www.archiv.org/": b"<title>Archiv</title>"})
    monkeypatch.chdir(tmp_path / "crawls")
    assert home("ingest", "one.warc.gz").code == 0
    assert home("publish").code == 0
    (path,) = home("query", "--json", "SELECT path FROM sources").json.values()
    assert (home.folder / path).samefile("one.warc.gz")
    assert not Path(path).is_absolute()
    monkeypatch.chdir("/")
    restored = sheaf("restore", home.folder / "store", tmp_path / "site")  # no configuration here
    assert restored.code == 0, restored.err
    assert (tmp_path / "site/www.archiv.org/index.html").read_bytes() == b"<title>Archiv</title>"
