"""The reading commands at a web address do what they do at the folder; others refuse it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Home, make_home
from tests.static import Site, on_the_web

pytestmark = pytest.mark.shared(2)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    found = make_home(tmp_path_factory.mktemp("home"))
    for number in range(2):
        pages = {f"http://a.cz/{n}": b"<title>%d</title>" % n for n in range(number, 5 + number)}
        found.publish_pages(found.folder / f"{number}.warc.gz", pages)
    return found


@pytest.fixture
def site(home: Home) -> Iterator[Site]:
    with on_the_web(home.folder / "store") as found:
        yield found


def test_reading_commands_do_the_same(home: Home, site: Site, tmp_path: Path) -> None:
    at = ("--store", site.url)
    sql = "SELECT * FROM records ORDER BY position"
    assert home("query", *at, sql).out == home("query", sql).out != ""
    here, there = home("status", "--json").json, home("status", "--json", *at).json
    assert there == {**here, "store": site.url, "intake": None}
    assert "no listing" in home("status", *at).out
    checked = home("verify", "--json", *at)
    assert (checked.code, checked.json["damage"], checked.json["read"]) == (
        0,
        0,
        home("verify", "--json").json["read"],
    )
    assert [finding["code"] for finding in checked.json["findings"]] == ["unlisted"]
    assert home("copy", *at, tmp_path / "copy").code == 0
    assert home("verify", "--store", tmp_path / "copy").code == 0
    assert home("export", "cdxj", *at, tmp_path / "a.cdxj").code == 0
    assert home("export", "cdxj", tmp_path / "b.cdxj").code == 0
    assert (tmp_path / "a.cdxj").read_bytes() == (tmp_path / "b.cdxj").read_bytes()


@pytest.mark.parametrize(
    "command",
    [
        ("ingest", "0.warc.gz"),
        ("publish",),
        ("expire", "--keep", "1"),
        ("withdraw", "--set", "mime"),
        ("verify", "--repair"),
        ("gather",),
    ],
    ids=" ".join,
)
def test_writing_commands_refuse_it(home: Home, site: Site, command: tuple[str, ...]) -> None:
    given = (home.folder / one if one.endswith(".gz") else one for one in command)
    done = home(*given, "--store", site.url)
    assert (done.code, done.err) == (
        2,
        f"sheaf: {site.url}: a store at a web address can only be read\n",
    )


def test_a_copy_to_it_is_refused(home: Home, site: Site) -> None:
    assert home("copy", site.url).code == 2


def test_damage_is_found(home: Home, site: Site) -> None:
    (name, *_) = sorted((home.folder / "store/records/lookup").iterdir())
    site.alter = lambda path, data: data[:50] + b"?" + data[51:] if name.name in path else data
    done = home("verify", "--json", "--store", site.url)
    assert (done.code, done.json["findings"][0]["code"]) == (1, "file-digest")
    site.status = lambda path: 404 if name.name in path else 200
    done = home("verify", "--json", "--store", site.url)
    assert (done.code, done.json["findings"][0]["code"]) == (1, "file-missing")


def test_what_is_no_store_is_told_in_one_line(home: Home, site: Site) -> None:
    for command in ("status", "verify", "query"):
        more = ["SELECT 1 FROM records"] if command == "query" else []
        done = home(command, "--store", f"{site.url}/nothing", *more)
        assert done.code == 2
        assert done.err.endswith("current.json: it is no store, or not open to readers\n")
    site.ranges = False
    done = home("query", "--store", site.url, "SELECT count(*) FROM records")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "ignores Range" in done.err
