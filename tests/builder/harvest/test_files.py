"""A harvest from data files keeps what a harvest by pages keeps, whatever happens meanwhile."""

import random
import shutil
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from lxml import etree

from builder.harvest import folder as folders
from builder.harvest.data_files import file_walk
from builder.harvest.data_files.offer import check_root
from builder.harvest.errors import FilesError
from builder.harvest.state import HarvestState
from builder.harvest.version import HarvestedRow
from functions.oai.format import TEMPLATES
from functions.snapshot import layout
from functions.store.catalog import Catalogue
from functions.store.store_reader import FolderReader
from tests.e2e.conftest import Home, Result, sheaf, warc
from tests.proxy import Answer, Fault, Lost, Truncated, proxied
from tests.static import Site, on_the_web

pytestmark = pytest.mark.shared(2)

HOSTS = ("a.cz", "www.a.cz", "b.cz")
TITLES = (
    "<title>&amp; &lt;b&gt; </title>",
    "<title>\u017elu\u0165&nbsp;ou\u010dk\u00fd</title>",
    "",
)


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files and row groups be small."""
    monkeypatch.setattr(layout, "GROUP_ROWS", 4)
    monkeypatch.setattr(layout, "FILE_GROUPS", 2)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each row group be a span of its own, read in this process."""
    shorten(monkeypatch)
    monkeypatch.setattr(file_walk, "_ROWS", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setenv("SHEAF_HTTP_TRIES", "2")


@pytest.fixture
def site(home: Home) -> Iterator[Site]:
    with on_the_web(home.folder / "store") as found:
        yield found


def publish(home: Home, number: int, *pages: str, collection: str = "x") -> None:
    bodies = {f"http://{page}": TITLES[number % 3].encode() for page in pages}
    path = warc(
        home.folder / f"{number}.warc.gz", bodies, f"2007-11-{1 + number % 28:02}T12:00:00Z"
    )
    assert home("ingest", path, "--collection", collection).code == 0
    done = home("publish")
    assert done.code == 0, done.err


def change(home: Home, number: int, rng: random.Random) -> None:
    """Change the store in a random way."""
    what = rng.randrange(5)
    if what == 0 and number > 2:
        home("withdraw", "--set", f"domain:cz:{rng.choice('ab')}", "--reason", "asked for")
    elif what == 1 and number > 2:
        home("withdraw", "--restore", "--set", "collection:x")
    elif what == 2:
        home("expire", "--keep", "1")
    else:
        pages = [f"{rng.choice(HOSTS)}/{rng.randrange(9)}" for _ in range(rng.randrange(1, 9))]
        publish(home, number, *pages, collection=rng.choice("xy"))


def harvest(base: str, folder: Path, by: str, *more: object) -> Result:
    return sheaf("harvest", base, folder, "--by", by, "--json", *more)


def held(folder: Path) -> tuple[list[HarvestedRow], HarvestState]:
    """Return rows in order, without the time of their page, and the state."""
    (own,) = (path.parent for path in folder.glob(f"*/{folders.STATE}"))
    found = folders.read(own)
    assert found is not None
    return [replace(row, harvested="") for row in folders.rows(own, found)], found


def told(state: HarvestState) -> dict[str, Any]:
    """Return what a harvest knows, however it came by it."""
    runs = [
        (one.number, one.status, one.counts.new, one.counts.changed, one.counts.deleted, one.lost)
        for one in state.runs
    ]
    known = asdict(state)
    return {name: known[name] for name in ("base_url", "identify", "format", "going")} | {
        "runs": runs,
        "since": state.covered and state.covered[0],
    }


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(6))
def test_random_histories(home: Home, site: Site, tmp_path: Path, seed: int) -> None:
    form = ("parquet", "jsonl", "xml")[seed % 3]
    rng = random.Random(f"{seed} {form}")
    asked: list[str] = ["--format", form, "--prefix", rng.choice(("oai_dc", "capture", "mods"))]
    if rng.random() < 0.5:
        asked += ["--set", rng.choice(("domain:cz:a", "collection:x", "mime:text"))]
    publish(home, 0, "a.cz/1", "b.cz/2")
    publish(home, 1, "www.a.cz/3", collection="y")
    folder = {by: tmp_path / by for by in ("files", "pages", "auto")}
    settings = {"SHEAF_PAGES_RECORDS": "3", "SHEAF_IDENTIFY_DATA_URL": site.url}
    with home.served(**settings) as base:
        for number in range(2, 8):
            change(home, number, rng)
            if rng.random() < 0.6 or number == 7:
                full = ("--full",) if rng.random() < 0.2 else ()
                for by in ("files", "pages"):
                    done = harvest(base, folder[by], by, *asked, *full)
                    assert done.code == 0, done.err
                done = harvest(base, folder["auto"], rng.choice(("auto", "pages")), *asked, *full)
                assert done.code == 0, done.err
    by_files, by_pages, mixed = (held(folder[by]) for by in ("files", "pages", "auto"))
    assert by_files[0] == by_pages[0] == mixed[0]
    assert told(by_files[1]) == told(by_pages[1]) == told(mixed[1])
    counts = [run.counts for run in by_files[1].runs]
    assert sum(one.pages for one in counts) == 0
    assert counts[0].files == counts[0].new > 0


@pytest.fixture(scope="module")
def original(lasting_home: Home) -> Home:
    """Return an archive of three publishes, each a span of its own."""
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        for number in range(3):
            publish(lasting_home, number, *(f"a.cz/{number * 5 + n}" for n in range(7)))
    return lasting_home


@pytest.fixture
def archive(original: Home, home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a copy of that archive for one test alone."""
    monkeypatch.setenv("SHEAF_STORE_RETRY_SECONDS", "0")
    shutil.copytree(original.folder / "store", home.folder / "store", dirs_exist_ok=True)
    return home


def data_files(home: Home) -> list[str]:
    """Return the keys of the data files of records, by position."""
    catalogue = Catalogue(FolderReader(home.folder / "store"))
    return [file.key for file in catalogue.files(catalogue.manifest(3), "records")]


def flip(data: bytes) -> bytes:
    """Return the data with another byte in the first row group."""
    return data[:200] + bytes([data[200] ^ 1]) + data[201:]


def truth(base: str, folder: Path) -> list[HarvestedRow]:
    assert harvest(base, folder, "pages").code == 0
    return held(folder)[0]


BROKEN: dict[str, Fault] = {
    "503": Answer(503, "SlowDown"),
    "truncated": Truncated(),
    "no answer": Lost(),
    "withdrawn": Answer(404, "NoSuchKey"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
def test_files_that_fail_midway(archive: Home, site: Site, tmp_path: Path, fault: Fault) -> None:
    """Pages give the rest; with --by files a later run continues."""
    last = data_files(archive)[-1]
    with (
        proxied(site.url) as proxy,
        archive.served(SHEAF_IDENTIFY_DATA_URL=proxy.url, SHEAF_PAGES_RECORDS="3") as base,
    ):
        expected = truth(base, tmp_path / "pages")
        proxy.fault = lambda seen: fault if last in seen.path else None
        done = harvest(base, tmp_path / "auto", "auto")
        assert (done.code, held(tmp_path / "auto")[0]) == (0, expected)
        (report,) = done.json
        assert "not from data files" in " ".join(report["notes"])
        assert report["pages"] > 0
        stuck = harvest(base, tmp_path / "files", "files")
        assert (stuck.code, stuck.json[0]["status"]) == (1, "partial")
        assert "data files: " in stuck.json[0]["error"]
        proxy.fault = lambda seen: None
        done = harvest(base, tmp_path / "files", "files")
        assert (done.code, done.json[0]["pages"]) == (0, 0)
        assert held(tmp_path / "files")[0] == expected


def test_a_file_that_fails_once_is_asked_for_again(
    archive: Home, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHEAF_STORE_RETRY_SECONDS", "20")
    faults = [*BROKEN.values()][:3]
    with proxied(site.url) as proxy, archive.served(SHEAF_IDENTIFY_DATA_URL=proxy.url) as base:
        expected = truth(base, tmp_path / "pages")
        proxy.fault = lambda seen: faults.pop() if faults and "records" in seen.path else None
        done = harvest(base, tmp_path / "files", "files")
        assert (done.code, faults, held(tmp_path / "files")[0]) == (0, [], expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["manifest", "data", "other"])
def test_altered_files_give_no_wrong_record(
    archive: Home, site: Site, tmp_path: Path, name: str
) -> None:
    """A flipped bit, or the files of another store, are noticed; pages give the records."""
    files = data_files(archive)
    with archive.served(SHEAF_IDENTIFY_DATA_URL=site.url) as base:
        expected = truth(base, tmp_path / "pages")

        def alter(path: str, data: bytes) -> bytes:
            if name == "manifest" and path.endswith("manifest.json"):
                return data.replace(b'"records"', b'"recordz"', 1)
            if name == "data" and files[1] in path:
                return flip(data)
            if name == "other" and files[1] in path:  # sound in itself
                return (archive.folder / "store" / files[0]).read_bytes()
            return data

        site.alter = alter
        done = harvest(base, tmp_path / "auto", "auto")
        assert (done.code, held(tmp_path / "auto")[0]) == (0, expected)
        assert done.json[0]["pages"] > 0
        stuck = harvest(base, tmp_path / "files", "files")
        assert (stuck.code, stuck.json[0]["status"]) == (1, "partial")
        kept_rows = held(tmp_path / "files")[0] if stuck.json[0]["rows"] else []
        assert kept_rows == expected[: len(kept_rows)]


def test_a_harvest_that_is_killed_between_spans_goes_on(
    archive: Home, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each span that was committed stays; the next run continues behind it, in either way."""

    class KilledError(BaseException):
        pass

    with archive.served(SHEAF_IDENTIFY_DATA_URL=site.url, SHEAF_PAGES_RECORDS="3") as base:
        expected = truth(base, tmp_path / "pages")
        for place, by in ((1, "files"), (2, "files"), (1, "pages"), (2, "pages")):
            folder, read = tmp_path / f"{place} {by}", file_walk.read_span
            left = [place]

            def killed(*arguments: Any, read: Any = read, left: list[int] = left) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    raise KilledError
                return read(*arguments)

            with monkeypatch.context() as patch:
                patch.setattr(file_walk, "read_span", killed)
                with pytest.raises(KilledError):
                    harvest(base, folder, "files", "--every", "0")
            rows = held(folder)[0]
            assert 0 < len(rows) < len(expected)
            assert rows == expected[: len(rows)]
            assert harvest(base, folder, by).code == 0
            assert held(folder)[0] == expected


def test_a_snapshot_that_expires_meanwhile(archive: Home, site: Site, tmp_path: Path) -> None:
    """What is left comes from the current snapshot, and nothing is missing."""
    with archive.served(SHEAF_IDENTIFY_DATA_URL=site.url, SHEAF_PAGES_RECORDS="3") as base:
        left = [1]

        def status(path: str) -> int:
            if "records/records" in path and left:
                left.clear()
                publish(archive, 7, "b.cz/1", "a.cz/1")
                assert archive("expire", "--keep", "1").code == 0
            return 200

        site.status = status
        done = harvest(base, tmp_path / "auto", "auto")
        assert (done.code, left) == (0, []), done.err
        assert harvest(base, tmp_path / "auto", "auto").code == 0
        newest = {row.identifier: row.record for row in truth(base, tmp_path / "pages")}
    assert {row.identifier: row.record for row in held(tmp_path / "auto")[0]} == newest


@pytest.mark.thorough
def test_other_processes_read_the_same(
    archive: Home, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    with archive.served(SHEAF_IDENTIFY_DATA_URL=site.url) as base:
        assert harvest(base, tmp_path / "files", "files").code == 0
        assert held(tmp_path / "files")[0] == truth(base, tmp_path / "pages")
        site.alter = lambda path, data: flip(data) if "records/records" in path else data
        stuck = harvest(base, tmp_path / "more", "files")
        assert (stuck.code, "was altered" in stuck.json[0]["error"]) == (1, True)


def test_the_offer_is_valid(archive: Home, site: Site) -> None:
    schema = etree.XMLSchema(file=str(TEMPLATES / "schemas/snapshot.xsd"))
    with archive.served(SHEAF_IDENTIFY_DATA_URL=site.url) as base:
        with urlopen(f"{base}?verb=Identify") as answer:
            page = etree.fromstring(answer.read())
        (element,) = page.iter("{urn:x-sheaf:snapshot:1}snapshot")
        assert schema.validate(element), schema.error_log
        assert len(element.findall("{*}rendering")) > 3
    assert site.asked == []  # Identify asks for nothing


def test_without_an_offer_files_are_refused(archive: Home, tmp_path: Path) -> None:
    with archive.served() as base:
        done = harvest(base, tmp_path / "files", "files")
        assert (done.code, done.json[0]["error"]) == (1, f"{base} offers no data files")
        assert not [*(tmp_path / "files").iterdir()]
        done = harvest(base, tmp_path / "auto", "auto")
        assert (done.code, "data files" in done.out) == (0, False)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://169.254.169.254/latest", "is not a public address"),
        ("https://10.0.0.1/store", "is not a public address"),
        ("https://localhost/store", "is not a public address"),
        ("file:///etc", "cannot be used"),
        ("/etc", "cannot be used"),
    ],
)
def test_a_public_repository_does_not_lead_inside(address: str, why: str) -> None:
    with pytest.raises(FilesError, match=why):
        check_root(address, "https://93.184.216.34/oai")


def test_another_rendering_is_harvested_by_pages(archive: Home, site: Site, tmp_path: Path) -> None:
    """A repository with a crosswalk of its own, or of another version of Sheaf."""
    own = tmp_path / "own"
    (own / "crosswalks").mkdir(parents=True)
    shipped = TEMPLATES / "crosswalks/capture-oai_dc.xml"
    text = shipped.read_text().replace("<dc:type>", "<dc:type>a ")
    (own / "crosswalks/capture-oai_dc.xml").write_text(text)
    settings = {"SHEAF_IDENTIFY_DATA_URL": site.url, "SHEAF_FORMATS_TEMPLATES": str(own)}
    with archive.served(**settings) as base:
        (report,) = harvest(base, tmp_path / "auto", "auto").json
        assert (report["files"], report["new"]) == (0, len(truth(base, tmp_path / "pages")))
        assert "renders oai_dc in another way" in " ".join(report["notes"])
        assert harvest(base, tmp_path / "files", "files").code == 1
