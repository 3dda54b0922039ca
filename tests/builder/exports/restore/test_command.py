"""`sheaf restore` as a person uses it, by a store and over HTTP, and with an archive of malice."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from builder.exports.restore import names
from tests.builder.exports.restore.shelf import (
    FILES,
    PAGE,
    Shelf,
    fill,
    lines,
    response,
    serving,
    tree,
)
from tests.builder.http.forwarding import forwarding
from tests.builder.sources.webarchives.containers import http, members, warc
from tests.e2e.conftest import make_home, sheaf

pytestmark = pytest.mark.shared(2)


WHOLE = {names.natural(url).path: body for url, body in FILES.items()}


@pytest.mark.sampled(2)
def test_the_whole_archive_as_it_was_last(address: str, tmp_path: Path) -> None:
    done = sheaf("restore", address, tmp_path / "site")
    assert done.code == 0, done.err
    assert "8 files restored" in done.out
    assert tree(tmp_path / "site") == WHOLE
    told = {line["url"]: line for line in lines(tmp_path / "site")}
    assert told["http://www.a.cz/moved"]["path"] == "b.cz/new"
    assert told["http://www.a.cz/same"]["timestamp"] == "20100102030405"
    assert told["http://www.a.cz/x.html"]["status"] == 200
    again = sheaf("restore", "--json", address, tmp_path / "site")
    assert (again.json["restored"], again.json["kept"], again.json["missing"]) == (0, 8, {})


def test_as_of_a_date_redirects_are_followed_out_of_the_choice(
    address: str, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    done = sheaf("restore", address, site, "--url", "www.a.cz/", "--as-of", "2009", "--json")
    assert done.code == 0, done.err
    assert tree(site) == {
        **{p: b for p, b in WHOLE.items() if p[:2] != "c."},
        **{"www.a.cz/index.html": b"first"},
    }
    assert done.json["redirects"] == 1
    assert (site / "www.a.cz/index.html").stat().st_mtime == 1199181600
    by_set = sheaf("restore", address, tmp_path / "set", "--set", "mime:image")
    assert by_set.code == 0, by_set.err
    assert tree(tmp_path / "set") == {"a.cz/gif": b"GIF89a"}


def test_links_of_pages_lead_to_the_files_beside_them(address: str, tmp_path: Path) -> None:
    """Error pages come where they are asked for."""
    site = tmp_path / "site"
    done = sheaf("restore", address, site, "--url", "www.a.cz", "--convert-links", "--json")
    assert done.code == 0, done.err
    page = (site / "www.a.cz/index.html").read_bytes()
    assert page == PAGE.replace(b"/x.html", b'"x.html"')
    assert (site / "a.cz/gzip.html").stat().st_size == 500_000
    errors = tmp_path / "errors"
    done = sheaf("restore", address, errors, "--url", "a.cz/x", "--status", "200-599", "--json")
    assert done.code == 0, done.err
    assert lines(errors)[0]["status"] == 404


def test_what_would_be_restored_is_told_and_nothing_is_written(
    address: str, tmp_path: Path
) -> None:
    told = sheaf("restore", address, tmp_path / "site", "--dry-run", "--json").json
    assert (told["restored"], told["redirects"], told["dry_run"]) == (8, 1, True)
    listed = sheaf("restore", address, tmp_path / "site", "--list")
    assert listed.code == 0, listed.err
    assert "20080430204826  200  http://c.cz/arc  c.cz/arc" in listed.out.splitlines()
    assert len(listed.out.splitlines()) == 8
    as_json = sheaf("restore", address, tmp_path / "site", "--list", "--json").out.splitlines()
    assert {json.loads(line)["path"] for line in as_json} == {*WHOLE}
    assert not (tmp_path / "site").exists()


def refused(*arguments: object) -> str:
    """Return the line by which a command refuses."""
    done = sheaf("restore", *arguments)
    assert done.code == 2, done.out
    (line,) = done.err.strip().splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--as-of", "yesterday"), "--as-of yesterday: expected a date"),
        (("--status", "ok"), "--status ok: expected statuses"),
        (("--jobs", "0"), "--jobs must be from 1"),
        (("--max-bytes", "-1"), "--max-bytes from 0"),
        (("--url", ""), "is empty"),
        (("--url", "http://nowhere.cz/"), "no capture matches --url http://nowhere.cz/"),
        (("--set", "domain:xx"), "no capture matches --set domain:xx"),
        (("--store", "x"), "--store is not used here: give the store as SOURCE"),
    ],
)
def test_faults_of_usage_are_told_in_one_line(
    address: str, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    assert said in refused(address, tmp_path / "site", *arguments)
    assert not (tmp_path / "site").exists()


def test_a_source_that_is_none_is_told_in_one_line(shelf: Shelf, tmp_path: Path) -> None:
    site = tmp_path / "site"
    assert "there is no such folder" in refused(tmp_path / "none", site)
    (tmp_path / "empty").mkdir()
    assert "nothing is published" in refused(tmp_path / "empty", site)
    assert "expected the URL of an endpoint" in refused("http://a.cz/oai?verb=Identify", site)
    with shelf.served(content__serve=False) as base:
        assert "Only metadata is served here" in refused(base, site, "--url", "a.cz")


def test_what_is_missing_is_told_and_the_rest_is_there(tmp_path: Path) -> None:
    shelf = fill(make_home(tmp_path / "home"), tmp_path / "crawl")
    (shelf.crawl / "two.arc").unlink()
    with shelf.served() as base:
        for source in (shelf.store, base):
            site = tmp_path / ("http" if source == base else "store")
            done = sheaf("restore", source, site)
            assert done.code == 1
            assert "missing: http://c.cz/arc: not-at-hand" in done.err
            assert "7 files restored" in done.out
            assert "1 missing" in done.out
            assert tree(site) == {p: b for p, b in WHOLE.items() if p != "c.cz/arc"}


def page(url: bytes, body: bytes = b"x") -> bytes:
    return response(url, body)


HOSTILE = [
    page(b"http://a.cz/../../../../outside/x"),
    page(b"http://a.cz/%2e%2e/%2e%2e/outside/x"),
    page(b"http://a.cz/..%2f..%2foutside/x"),
    page(b"http://../outside/x"),
    page(b"http://a.cz/..\\..\\outside\\x"),
    page(b"http://a.cz//etc/passwd"),
    page(b"http://a.cz/C:/windows"),
    page(b"http://a.cz/a%00b%0ac"),
    page(b"http://a.cz/Twin", b"upper"),
    page(b"http://a.cz/twin", b"lower"),
    page(b"http://a.cz/file", b"file"),
    page(b"http://a.cz/file/below", b"below"),
    page(b"http://a.cz/CON"),
    page(b"http://a.cz/aux.txt"),
    page(b"http://a.cz/dot."),
    page(b"http://manifest.jsonl/"),
    page(b"http://.sheaf-restore/x"),
    page(b"http://a.cz/e%CC%81", b"decomposed"),
    page(b"http://a.cz/%C3%A9", b"composed"),
    page(b"http://a.cz/\xe8\xff", b"bytes"),
    page(b"http://a.cz/" + b"l" * 5000, b"long"),
    page(b"http://a.cz/" + b"l" * 5000 + b"2", b"longer"),
    page(b"http://a.cz/" + b"d/" * 2500, b"deep"),
    page(b"http://a.cz/?" + b"q" * 5000, b"query"),
    page(b"http://user:secret@b.cz:8080/x", b"user"),
    warc(http(b"short"), url=b"http://a.cz/declared", length=b"10737418240"),
]


def shelved(folder: Path, records: list[bytes]) -> Shelf:
    """Publish an archive of these records."""
    home, crawl = make_home(folder / "home"), folder / "crawl"
    crawl.mkdir()
    (crawl / "some.warc.gz").write_bytes(members(records))
    assert home("ingest", crawl, "--jobs", "1").code == 0
    assert home("publish").code == 0
    return Shelf(home, crawl)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return shelved(tmp_path_factory.mktemp("hostile"), HOSTILE)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("over_http", [False, True])
def test_an_archive_of_malice_stays_in_its_folder(
    hostile: Shelf, tmp_path: Path, over_http: bool
) -> None:
    site = tmp_path / "deep" / "in" / "site"
    outside = tmp_path / "outside"
    outside.mkdir()
    site.mkdir(parents=True)
    (site / "b.cz+8080").symlink_to(outside)
    places = (tmp_path, hostile.crawl.parent)

    def elsewhere() -> list[Path]:
        paths = (path for place in places for path in place.rglob("*"))
        return sorted(path for path in paths if site not in path.parents)

    before = elsewhere()
    with serving(hostile.home) as base:
        done = sheaf("restore", base if over_http else hostile.store, site, "--json")
    assert done.code == 1, done.err
    assert elsewhere() == before
    assert done.json["missing"].keys() <= {"in-the-way", "damaged"}
    told = {line["url"]: line for line in lines(site)}
    assert told["http://user:secret@b.cz:8080/x"]["missing"] == "in-the-way"
    there = tree(site)
    for line in told.values():
        if "missing" not in line:
            assert len(there.pop(line["path"])) == line["size"]
    assert there == {}
    assert {line.get("renamed") for line in told.values()} == {
        None,
        "escaped",
        "twin",
        "folder",
        "long-name",
        "long-path",
    }
    assert len({names.fold(line["path"]) for line in told.values()}) == len(told)
    assert (site / told["http://a.cz/twin"]["path"]).read_bytes() == b"lower"
    assert (site / told["http://a.cz/Twin"]["path"]).read_bytes() == b"upper"
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < 1 << 20
    for path in site.rglob("*"):
        assert len(path.name.encode()) <= names.LONGEST


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    records = [page(b"http://a.cz/%d" % n, b"body of %d" % n) for n in range(200)]
    return shelved(tmp_path_factory.mktemp("many"), records)


@pytest.mark.thorough
def test_an_endpoint_behind_a_proxy(
    many: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(many.home) as base, forwarding(int(base.rpartition(":")[2])) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url())
        done = sheaf("restore", "http://archive.invalid", tmp_path / "site", "--json")
    assert (done.code, done.json["restored"]) == (0, 200), done.err
    assert all(target.startswith("http://archive.invalid/") for _, target in proxy.seen)
    assert tree(tmp_path / "site") == {f"a.cz/{n}": b"body of %d" % n for n in range(200)}


@pytest.mark.thorough
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_process_that_is_ended_goes_on(many: Shelf, tmp_path: Path, by: signal.Signals) -> None:
    site = tmp_path / "site"
    ended = [sys.executable, "-m", "tests.builder.exports.restore.ended", str(int(by)), "20"]
    process = subprocess.run(
        [*ended, "restore", str(many.store), str(site), "--jobs", "2"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[4],
    )
    assert process.returncode == {2: 130, 15: 143}.get(by, -by), process.stderr
    if by != signal.SIGKILL:
        assert "run the command again to finish its work" in process.stderr
        assert "Traceback" not in process.stderr
    begun = len(tree(site))
    assert 20 <= begun < 30
    done = sheaf("restore", many.store, site, "--json")
    assert done.code == 0, done.err
    assert done.json["kept"] + done.json["restored"] == 200
    assert begun - 4 <= done.json["kept"] <= begun
    assert tree(site) == {f"a.cz/{n}": b"body of %d" % n for n in range(200)}
    assert not any(path.name.startswith(".") for path in site.iterdir())
    assert len(lines(site)) == 200
