"""The command: parts of an archive as WACZ and as CDXJ, which an ingest reads as the same items."""

import base64
import csv
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builder.exports.cdxj import export
from functions.snapshot import schema
from tests.builder.sources.webarchives.containers import arc, filedesc, http, members, warc
from tests.e2e.conftest import Home, Result, make_home

pytestmark = pytest.mark.shared(2)

ROOT = Path(__file__).parents[4]
VALIDATOR = ROOT / ".venv-wacz" / "bin" / "wacz"

EARLY, LATE = b"2008-04-30T20:48:26Z", b"2009-01-01T00:00:00Z"
SHA1 = b"WARC-Payload-Digest: sha1:"
PAGE, OTHER = b"<title>Home</title>", b"<title>Home, changed</title>"
CSS = (b"Content-Type: text/css",)


def digest(payload: bytes) -> bytes:
    return base64.b32encode(hashlib.sha1(payload).digest())


REVISIT = warc(
    http(b""),
    SHA1 + digest(PAGE),
    b"WARC-Refers-To-Target-URI: http://www.a.cz/",
    b"WARC-Refers-To-Date: " + EARLY,
    kind=b"revisit",
    url=b"http://www.a.cz/",
    date=LATE,
)
FILES = {
    "one.warc.gz": members(
        [
            warc(http(PAGE), url=b"http://www.a.cz/", date=EARLY),
            warc(http(b"p {}", *CSS), url=b"http://www.a.cz/style.css", date=EARLY),
            warc(http(b"gone", status=b"HTTP/1.1 404 No"), url=b"http://www.a.cz/no", date=EARLY),
        ]
    ),
    "two.warc": REVISIT + warc(http(OTHER), url=b"http://www.a.cz/?q=1", date=LATE),
    "three.arc": filedesc() + arc(http(b"<title>ARC</title>"), url=b"http://b.org/x y"),
    "four.warc.gz": members([warc(http(b"undated"), url=b"http://c.org/", date=b"never")]),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = make_home(tmp_path_factory.mktemp("archive"))
    return published(home, FILES)


def published(home: Home, files: dict[str, bytes]) -> Home:
    crawls = home.folder / "crawls"
    crawls.mkdir()
    for name, data in files.items():
        (crawls / name).write_bytes(data)
    return ingested(crawls, home.folder)


def listed(home: Home) -> dict[str, dict[str, str]]:
    """Return the captures by identifier."""
    given = home("query", "SELECT * EXCLUDE (url_bytes) FROM captures")
    assert given.code == 0, given.err
    return {row["identifier"]: row for row in csv.DictReader(io.StringIO(given.out))}


def ingested(path: Path, folder: Path) -> Home:
    """Return an archive that has what is in a file or folder; a new one where there is none."""
    other = Home(folder) if folder.exists() else make_home(folder)
    other.config.write_text(
        other.config.read_text().replace("# include = []", 'include = ["errors"]')
    )
    assert other("ingest", "--jobs", "1", path).code == 0
    assert other("publish").code == 0
    return other


def lines(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield key, date and fields of an index, that of a WACZ file among them."""
    if path.suffix == ".wacz":
        with zipfile.ZipFile(path) as archive:
            data = gzip.decompress(archive.read("indexes/index.cdx.gz"))
    else:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
    for line in data.decode("ascii").splitlines():
        key, date, told = line.split(" ", 2)
        yield key, date, json.loads(told)


def exported(home: Home, kind: str, path: Path, *arguments: object) -> Any:
    given = home("export", kind, path, "--json", *arguments)
    assert given.code in (0, 1), given.err
    return given.json


@pytest.fixture(scope="module")
def whole(home: Home, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Return a WACZ file of all that is there, and what the command told of it."""
    path = tmp_path_factory.mktemp("whole") / "all.wacz"
    return path, exported(home, "wacz", path)


@pytest.mark.parametrize(
    ("name", "archive", "pages"),
    [("all.wacz", "all.wacz/archive/data-00001.warc.gz", 4), ("all.warc.gz", "all.warc.gz", 0)],
)
def test_a_file_has_every_capture_as_it_is(
    home: Home, tmp_path: Path, name: str, archive: str, pages: int
) -> None:
    path = tmp_path / name
    done = exported(home, name[4:8], path)
    assert (done["captures"], done["originals"], done["pages"]) == (6, 0, pages)
    assert done["bytes"] == path.stat().st_size
    assert done["missing"] == {"undated": 1}  # no index can name it
    other = ingested(path, tmp_path / "other")
    before, after = listed(home), listed(other)
    assert len(before) == 7
    assert before.keys() - after.keys() == {one["identifier"] for one in done["told"]}
    for identifier, row in after.items():
        place = {*schema.LOCATION, "datestamp"}
        assert {k: v for k, v in row.items() if k not in place} == {
            k: v for k, v in before[identifier].items() if k not in place
        }
        assert row["warc_filename"] == archive


def test_the_index_of_a_wacz_file_leads_to_the_records(whole: tuple[Path, Any]) -> None:
    path, _ = whole
    found = list(lines(path))
    with zipfile.ZipFile(path) as archive:
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
        data = archive.read("archive/data-00001.warc.gz")
    assert data.startswith(b"\x1f\x8b")
    for _, _, told in found:
        start = int(told["offset"])
        record = data[start : start + int(told["length"])]
        assert f"WARC-Target-URI: {told['url']}\r\n".encode() in gzip.decompress(record)
        assert told["recordDigest"] == f"sha256:{hashlib.sha256(record).hexdigest()}"
        assert told["filename"] == "data-00001.warc.gz"
    assert [
        (date, told["mime"]) for _, date, told in found if told["url"] == "http://www.a.cz/"
    ] == [("20080430204826", "text/html"), ("20090101000000", "warc/revisit")]


def test_the_package_tells_of_all_files(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "all.wacz"
    exported(home, "wacz", path, "--title", "A part", "--url", "http://www.a.cz/")
    with zipfile.ZipFile(path) as archive:
        package = json.loads(archive.read("datapackage.json"))
        told = {resource["path"]: resource for resource in package["resources"]}
        rest = {"datapackage.json", "datapackage-digest.json"}
        assert set(archive.namelist()) == told.keys() | rest
        for name, resource in told.items():
            data = archive.read(name)
            assert resource["bytes"] == len(data)
            assert resource["hash"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        pages = [json.loads(line) for line in archive.read("pages/pages.jsonl").splitlines()]
    assert (package["title"], package["wacz_version"]) == ("A part", "1.1.1")
    assert package["description"] == "Captures of An archive: url http://www.a.cz/"
    # The page to begin with is the last one at the URL that was asked for.
    main = (package["mainPageUrl"], package["mainPageDate"])
    assert main == ("http://www.a.cz/", "2009-01-01T00:00:00Z")
    assert pages[0]["format"] == "json-pages-1.0"
    assert [(page["url"], page["ts"], page["title"]) for page in pages[1:]] == [
        ("http://www.a.cz/", "2008-04-30T20:48:26Z", "Home"),
        ("http://www.a.cz/", "2009-01-01T00:00:00Z", "Home"),
        ("http://www.a.cz/?q=1", "2009-01-01T00:00:00Z", "Home, changed"),
    ]


@pytest.mark.skipif(
    not VALIDATOR.exists(), reason="py-wacz is absent: run install.sh beside this file"
)
def test_py_wacz_finds_it_valid(home: Home, tmp_path: Path) -> None:
    for number, arguments in enumerate(([], ["--where", "fetch_status = 404"])):
        path = tmp_path / f"{number}.wacz"
        exported(home, "wacz", path, *arguments)
        told = subprocess.run(
            [VALIDATOR, "validate", "-f", path], capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stdout + told.stderr
        assert "Validation succeeded" in told.stdout


WAYS = [
    # arguments, captures, originals besides
    (["--set", "domain:cz:a"], 5, 0),
    (["--set", "mime:text:css"], 1, 0),
    (["--url", "HTTP://WWW.a.cz/s"], 1, 0),
    (["--url", "http://b.org/"], 1, 0),
    (["--as-of", "2008-06"], 4, 0),
    (["--as-of", "2010"], 5, 1),
    (["--as-of", "2010", "--url", "http://www.a.cz/", "--where", "title IS NOT NULL"], 2, 1),
    (["--where", "warc_record_type = 'revisit'"], 1, 1),
    (["--where", "fetch_status = 404 -- as servers say it"], 1, 0),
    (["--where", "url IN (SELECT url FROM captures WHERE fetch_status = 404)"], 1, 0),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("arguments", "captures", "originals"), WAYS)
def test_a_part_is_described(
    home: Home, tmp_path: Path, arguments: list[str], captures: int, originals: int
) -> None:
    done = exported(home, "wacz", tmp_path / "a.wacz", *arguments)
    assert (done["captures"], done["originals"]) == (captures, originals)
    # An index lists what was meant alone: the originals are in the archive's files.
    done = exported(home, "cdxj", tmp_path / "a.cdxj", *arguments)
    assert (done["captures"], done["originals"]) == (captures, 0)
    assert len(list(lines(tmp_path / "a.cdxj"))) == captures


def test_an_original_comes_with_its_revisit(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "revisit.wacz"
    exported(home, "wacz", path, "--where", "warc_record_type = 'revisit'")
    types = [row["warc_record_type"] for row in listed(ingested(path, tmp_path / "o")).values()]
    assert sorted(types) == ["response", "revisit"]


def test_an_index_gives_the_same_items(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, line = list[Any](), export.index_line
    monkeypatch.setattr(export, "index_line", lambda *of: arguments.append(of) or line(*of))
    plain, path = tmp_path / "a.cdxj", tmp_path / "a.cdxj.gz"
    for target in (plain, path):
        done = exported(home, "cdxj", target)
        assert done["bytes"] == target.stat().st_size
    text = plain.read_bytes()
    assert gzip.decompress(path.read_bytes()) == text
    assert len(arguments) == 2 * 2  # of six captures; SQL makes the other lines, as Python would
    monkeypatch.setattr(export, "_TWINS", "SELECT 'another name'")
    exported(home, "cdxj", tmp_path / "b.cdxj")
    assert (len(arguments), (tmp_path / "b.cdxj").read_bytes()) == (2 * 2 + 6, text)
    assert text.splitlines() == sorted(text.splitlines())
    before, after = listed(home), listed(ingested(path, tmp_path / "other"))
    assert before.keys() - after.keys() == {one["identifier"] for one in done["told"]}
    for key, row in after.items():
        for column in ("warc_filename", "warc_record_offset", "warc_record_length", "url"):
            assert row[column] == before[key][column]


def test_an_index_tells_files_of_one_name_apart(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    for folder, source in (("a", "one.warc.gz"), ("b", "two.warc")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data.warc").write_bytes(FILES[source])
        assert home("ingest", tmp_path / folder).code == 0
    home("publish")
    exported(home, "cdxj", tmp_path / "a.cdxj")
    found = {(told["url"], told["filename"]) for _, _, told in lines(tmp_path / "a.cdxj")}
    assert ("http://www.a.cz/?q=1", "b/data.warc") in found
    assert {name for _, name in found} == {"a/data.warc", "b/data.warc"}


def test_what_cannot_be_had_is_told_and_the_rest_is_there(tmp_path: Path) -> None:
    home = published(make_home(tmp_path / "home"), FILES)
    (home.folder / "crawls" / "one.warc.gz").unlink()
    data = FILES["two.warc"]
    (home.folder / "crawls" / "two.warc").write_bytes(data.replace(b"changed", b"CHANGED"))
    path = tmp_path / "a.wacz"
    given = home("export", "wacz", path)
    assert given.code == 1
    assert "2 captures" in given.out.splitlines()[0]
    assert "  1 capture left out: the archive file has another record there" in given.out
    assert "  3 captures left out: their archive file is missing" in given.out
    assert "  1 capture left out: no date, which an index needs" in given.out
    assert {told["url"] for _, _, told in lines(path)} == {"http://www.a.cz/", "http://b.org/x y"}


def test_what_is_withdrawn_is_never_in_it(home: Home, tmp_path: Path) -> None:
    home = Home(shutil.copytree(home.folder, tmp_path / "home"))
    original = next(
        name
        for name, row in listed(home).items()
        if row["url"] == "http://www.a.cz/" and row["warc_record_type"] == "response"
    )
    assert home("withdraw", "--identifier", original, "--reason", "asked for").code == 0
    path = tmp_path / "a.wacz"
    done = exported(home, "wacz", path)
    assert (done["captures"], done["originals"]) == (5, 0)
    with zipfile.ZipFile(path) as archive:
        data = archive.read("archive/data-00001.warc.gz")
    assert PAGE not in gzip.decompress(data)
    done = exported(
        home, "wacz", tmp_path / "b.wacz", "--where", f"identifier = '{original}' OR true"
    )
    assert done["captures"] == 5


def refused(home: Home, *arguments: object) -> str:
    given: Result = home("export", *arguments)
    assert (given.code, given.out) == (2, "")
    (line,) = given.err.splitlines()
    return line


def test_faults_of_usage_are_one_line(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "a.wacz"
    for arguments, expected in (
        (["--set", "a:nowhere"], "there is no set a:nowhere; the nearest name is"),
        (["--set", "a b"], "is not a set specification"),
        (["--url", "a.cz"], "expected a URL with its scheme"),
        (["--as-of", "2008-13"], "this date or time does not exist"),
        (["--where", "nothing = 1"], "nothing"),
        (["--where", "true) UNION SELECT (1"], "expected one condition"),
        (["--where", "true] UNION SELECT [1"], "expected one condition"),
        (["--where", "true; DROP TABLE x"], "expected one condition"),
        (["--where", ""], "is empty"),
    ):
        assert expected in refused(home, "wacz", path, *arguments)
    for name in ("cdxj", "warc"):
        assert "cannot be written to stdout" in refused(home, name, "-")
    assert "is empty" in refused(home, "wacz", "")
    assert "unrecognized arguments: --title" in refused(home, "cdxj", path, "--title", "a")
    assert not list(tmp_path.iterdir())
    path.touch()
    assert "not a set specification" in refused(home, "wacz", path, "--set", "a b")
    assert "already exists" in refused(home, "wacz", path)
    assert "unrecognized arguments: --where" in refused(
        home, "ocfl", tmp_path / "o", "--where", "a"
    )


def test_the_same_archive_gives_the_same_file(home: Home, tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.wacz"
        exported(home, "wacz", path, "--where", "fetch_status = 404")
        with zipfile.ZipFile(path) as archive:
            made.append(archive.read("indexes/index.idx"))
    assert len(made[0].splitlines()) == 2
