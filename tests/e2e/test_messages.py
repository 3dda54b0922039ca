"""Messages: what is wrong and what to do, in words, whatever is given and whatever is lost."""

import json
import re
import shutil
from http.client import IncompleteRead
from pathlib import Path

import pytest
from urllib3.exceptions import ProtocolError

from builder.http import connections
from builder.http.errors import FetchError
from functions.snapshot.errors import describe_failure
from tests.builder.http import site as web
from tests.e2e.conftest import Home, make_home, sheaf
from tests.e2e.test_commands import PAGES, WHY

ROOT = Path(__file__).parents[2]
OF_PYTHON = re.compile(
    r"Traceback|\b[A-Z]\w*(?:Error|Exception|Missing)\b|\[Errno|codec can't|object at 0x"
)
"""What only a programmer reads."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = make_home(tmp_path_factory.mktemp("messages"))
    home.publish_pages(home.folder / "a.warc.gz", PAGES, "--collection", "a")
    return home


def copy(home: Home, folder: Path) -> Home:
    return Home(Path(shutil.copytree(home.folder, folder / "copy")))


def test_no_message_is_made_of_an_exception_itself() -> None:
    shown = re.compile(r"\{(error|failure|fault|exc)!r\}")
    sources = [path for top in ("builder", "functions") for path in (ROOT / top).rglob("*.py")]
    assert [path for path in sources if shown.search(path.read_text())] == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is no JSON"),
        (b"\xff", "byte 1 of it is no text in UTF-8"),
        (b"{}", "it has no schema"),
        (b"[1]", "it has another form than Sheaf writes"),
        (b'{"schema": "x"}', "schema is 'x'"),
    ],
)
@pytest.mark.parametrize("key", ["current.json", "snapshots/1/manifest.json", "store.json"])
def test_damaged_documents_are_told_in_words(
    filled: Home, tmp_path: Path, key: str, data: bytes, reason: str
) -> None:
    home = copy(filled, tmp_path)
    (home.folder / "store" / key).write_bytes(data)
    for command in (["status"], ["query", "FROM captures"], ["verify"], ["publish"]):
        result = home(*command)
        text = result.out + result.err
        assert not OF_PYTHON.search(text), (command, text)
        if command == ["verify"]:
            assert (result.code, reason in text) == (1, True), text


def test_an_error_of_any_kind_has_words() -> None:
    for error in (
        KeyError("a"),
        TypeError("b"),
        AttributeError("c"),
        OverflowError(),
        IndexError(),
    ):
        assert not OF_PYTHON.search(describe_failure(error))
    assert describe_failure(IsADirectoryError(21, "Is a directory", "x")) == "Is a directory"


def test_absence_is_no_health(filled: Home, tmp_path: Path) -> None:
    """Of a store whose snapshots are all gone, no check says that there is no problem."""
    lost = tmp_path / "lost"
    shutil.copytree(filled.folder / "store" / "records", lost / "records")
    result = sheaf("verify", "--store", lost)
    assert "no problems found" not in result.out
    assert "no snapshot is published, so no record was checked" in result.out
    shutil.rmtree(lost)
    assert sheaf("verify", "--store", lost).code == 2


def test_a_store_that_went_with_its_disk_is_not_called_new(filled: Home, tmp_path: Path) -> None:
    home = copy(filled, tmp_path)
    shutil.rmtree(home.folder / "store")
    for command in (["verify"], ["copy", tmp_path / "b"], ["expire", "--keep", "1"]):
        result = home(*command)
        assert (result.code, "its disk is not mounted" in result.err) == (2, True), result


def test_a_file_is_no_store(filled: Home, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    for command in (["status", "--store", path], ["copy", path], ["restore", path, tmp_path / "x"]):
        result = filled(*command)
        assert result.code == 2
        assert result.err == f"sheaf: {path} is a file, and a store is a folder\n"


@pytest.mark.parametrize(
    ("data", "reason"), [(None, "Is a directory"), (b"\xa7", "byte 1 of it is no text in UTF-8")]
)
def test_a_configuration_that_is_none_is_told(
    tmp_path: Path, data: bytes | None, reason: str
) -> None:
    path = tmp_path / "sheaf.toml"
    path.mkdir() if data is None else path.write_bytes(data)
    result = sheaf("status", "--config", path)
    assert (result.code, result.err) == (2, f"sheaf: {path} cannot be read: {reason}\n")


def test_the_nearest_url_is_named_for_a_prefix_that_none_has(filled: Home) -> None:
    url = min(PAGES)
    wrong = url.replace("http://", "http://x")
    result = filled("withdraw", "--url-prefix", wrong, *WHY)
    assert result.code == 2
    assert f"no item matches: no URL begins with {wrong}; the nearest is http://" in result.err


def test_a_publish_counts_all_that_it_writes(filled: Home, tmp_path: Path) -> None:
    home = copy(filled, tmp_path)
    shutil.rmtree(home.folder / "store")
    assert home("ingest", "--collection", "a:b", home.folder / "a.warc.gz").code == 0
    result = home("publish")
    assert f"writing {len(PAGES)} new and 0 changed records\n" in result.err
    assert f"{len(PAGES) + 2} records in " in result.out
    assert "\ncollections have 2 records of these, which count neither as new" in result.out
    document = json.loads(home("publish", "--json").out)
    assert document["records"] == len(PAGES) + 2


def test_why_a_file_cannot_be_read_is_told_at_once(filled: Home, tmp_path: Path) -> None:
    home = copy(filled, tmp_path)
    with web.serving() as site:
        site.other = web.text(b"none", "text/plain", 404)
        url = site.url("/a.warc.gz")
        result = home("ingest", "--jobs", "1", url)
    assert (result.code, f"  {url}: unreadable (not-found: HTTP status 404)" in result.out) == (
        1,
        True,
    ), result


def test_a_broken_connection_is_told_in_words() -> None:
    error = ProtocolError("Connection broken: early", IncompleteRead(b"", 3))
    with pytest.raises(FetchError) as raised, connections._wrap_errors("cut-short"):
        raise error
    assert str(raised.value) == "cut-short: Connection broken: early"
