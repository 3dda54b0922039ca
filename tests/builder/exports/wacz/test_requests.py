"""Pages and answers to a POST of one URL: apart in exports, in their ingest, and in restores."""

import zipfile
from pathlib import Path

import pytest

from tests.builder.exports.wacz.test_command import exported, ingested, lines, listed, published
from tests.builder.sources.webarchives.containers import captures, http, members, warc
from tests.builder.sources.webarchives.test_request import exchange, post
from tests.e2e.conftest import Home, make_home

URL = b"http://www.a.cz/search"
PAGE, ANSWER = b"<title>Search</title>", b"<title>Found</title>"
LATE = b"2010-01-01T00:00:00Z"


def answered(*, before: bool) -> list[bytes]:
    """Return the records of a POST, which was answered later than the page was recorded."""
    records = exchange(post(b"q=rugs"), 1, before=before, url=URL)
    links = [line for line in records[before].split(b"\r\n") if b"<urn:" in line]
    records[before] = warc(http(ANSWER), *links, url=URL, date=LATE)
    return records


@pytest.fixture(scope="module", params=["before", "behind"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Home:
    records = [warc(http(PAGE), url=URL), *answered(before=request.param == "before")]
    home = make_home(tmp_path_factory.mktemp("requests"))
    return published(home, {"a.warc.gz": members(records)})


@pytest.mark.sampled(2)
def test_an_export_tells_the_request_and_has_its_record(home: Home, tmp_path: Path) -> None:
    for kind in ("wacz", "cdxj"):
        path = tmp_path / f"a.{kind}"
        done = exported(home, kind, path)
        assert done["captures"] == 2
        assert done["pages"] == (kind == "wacz")
        (page, answer) = sorted(lines(path), key=lambda one: one[1])
        assert (page[0], answer[0]) == ("cz,a)/search", "cz,a)/search?__wb_method=post&q=rugs")
        assert "method" not in page[2]
        assert (answer[2]["method"], answer[2]["requestBody"]) == ("POST", "q=rugs")
        before = listed(home)
        after = listed(ingested(path, tmp_path / f"of-{kind}"))
        assert before.keys() == after.keys()
        for name, row in after.items():
            for column in ("url_surtkey", "fetch_method", "fetch_body"):
                assert row[column] == before[name][column]
    with zipfile.ZipFile(tmp_path / "a.wacz") as archive:
        data = archive.read("archive/data-00001.warc.gz")
    methods = [one.fetch_method for one in captures(data)]
    assert sorted(map(str, methods)) == ["None", "POST"]


def restored(home: Home, folder: Path, *urls: str) -> dict[str, bytes]:
    asked = [word for url in urls for word in ("--url", url)]
    done = home("restore", home.folder / "store", folder, *asked)
    assert done.code == 0, done.err
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.name: path.read_bytes() for path in found if path.name != "manifest.jsonl"}


def test_a_restore_has_the_page_and_the_answer_where_it_is_asked_for(
    home: Home, tmp_path: Path
) -> None:
    assert restored(home, tmp_path / "page", "www.a.cz") == {"search": PAGE}
    url = "http://www.a.cz/search?__wb_method=POST&q=rugs"
    assert restored(home, tmp_path / "answer", url) == {"search@__wb_method=POST&q=rugs": ANSWER}
