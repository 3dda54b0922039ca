"""`sheaf obi`: the life of an object, its bytes as of a date, and what the store has."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builder.obi import key
from builder.obi.claim import Purpose
from builder.obi.content import FailureRow, Incidence, Redirect
from builder.obi.run import claim
from builder.store.folder import FolderStore
from tests.builder.obi.archive import Repec
from tests.builder.obi.logs import describe, put
from tests.builder.sources.redif.trees import archive, paper, tarball
from tests.e2e.conftest import Home, Result, make_home

pytestmark = pytest.mark.shared(2)

HANDLE = "RePEc:aaa:wpaper:1"
URL = "http://example.org/rugs.pdf"
LAST = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = {
    "2025-01-05": paper(1),
    "2025-01-07": paper(1, "Other rugs"),
    "2025-02-18": None,
    "2026-01-01": paper(1, "Other rugs"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Four tarballs were replayed: a paper comes, changes, is lost, and is back as it was.

    It is only read; `own` is a copy of it for one test alone.
    """
    tmp_path = tmp_path_factory.mktemp("replayed")
    home = make_home(tmp_path / "home")
    for day, data in DAYS.items():
        files = {**archive(), "aaa/wpaper/z.rdf": paper(9)}
        if data is not None:
            files["aaa/wpaper/a.rdf"] = data
        path = tarball(
            tmp_path / f"RePEc_{day}.tar.gz", [(f"RePEc/{n}", d) for n, d in files.items()]
        )
        result = home("ingest", "--jobs", 1, "-f", path)
        assert result.code == 0, result.err
    return home


@pytest.fixture
def own(home: Home, tmp_path: Path) -> Home:
    return Home(Path(shutil.copytree(home.folder, tmp_path / "home")))


def told(result: Result) -> list[str]:
    assert result.code == 0, result.err
    return [line.strip() for line in result.out.splitlines()]


def test_the_life_of_a_template(home: Home) -> None:
    lines = told(home("obi", HANDLE))
    assert lines[0] == HANDLE
    assert [" ".join(line.split()[:3]) for line in lines[1:7]] == [
        "2025-01-05T00:00:00Z version 330",
        "2025-01-05T00:00:00Z appearance",
        "2025-01-07T00:00:00Z version 333",
        "2025-01-07T00:00:00Z change",
        "2025-02-18T00:00:00Z deletion",
        "2026-01-01T00:00:00Z appearance again",
    ]
    assert lines[7] == f"file  {URL}"
    found = home("obi", HANDLE, "--json").json
    assert [(e["row"], e.get("what"), e.get("again")) for e in found["events"]] == [
        ("version", None, None),
        ("incidence", "appearance", False),
        ("version", None, None),
        ("incidence", "change", False),
        ("incidence", "deletion", False),
        ("incidence", "appearance", True),
    ]
    assert found["version"]["tist"] == int(datetime(2025, 1, 7, tzinfo=UTC).timestamp())
    for written in ("RePEc:AAA:WPAPER:1", "repec:aaa:wpaper:1"):
        assert told(home("obi", written))[0] == HANDLE


@pytest.mark.parametrize(
    ("date", "title"),
    [
        ("2025-01-05", b"On Rugs"),
        ("2025-01-06T12:00:00Z", b"On Rugs"),
        ("1736208000", b"Other rugs"),
        ("2025-02-17", b"Other rugs"),
        ("2026-06-01", b"Other rugs"),
    ],
)
def test_its_bytes_as_of_a_date(home: Home, tmp_path: Path, date: str, title: bytes) -> None:
    path = tmp_path / "then.rdf"
    told(home("obi", HANDLE, "--as-of", date, "--bytes", path))
    assert b"Title: " + title in path.read_bytes()


@pytest.mark.parametrize("date", ["2025-01-04", "2025-02-18", "2025-12-31"])
def test_before_it_came_and_while_it_was_lost_there_are_none(
    home: Home, tmp_path: Path, date: str
) -> None:
    result = home("obi", HANDLE, "--as-of", date, "--bytes", tmp_path / "x")
    assert result.code == 2
    assert f"{HANDLE} was absent at {date}" in result.err
    assert told(home("obi", HANDLE, "--as-of", date))[-1] == f"absent at {date}T23:59:59Z"


def test_bytes_that_were_altered_are_not_given_out_as_sound(own: Home, tmp_path: Path) -> None:
    store = FolderStore(own.folder / "store")
    tist = int(datetime(2025, 1, 7, tzinfo=UTC).timestamp())
    for place in store.keys(key.PACKS):
        data = store.read(place)
        store.remove(place)
        store.create(place, data.replace(b"Other", b"Older"))
    result = own("obi", HANDLE, "--bytes", tmp_path / "x")
    assert result.code == 2
    assert key.key(tist, HANDLE) in result.err


def test_what_the_store_has(home: Home) -> None:
    lines = told(home("obi"))
    assert lines[1] == "runs       4 runs"
    found = home("obi", "--json").json
    assert [run["kind"] for run in found["runs"]] == ["ingest"] * 4
    assert found["rows"]["incidence"] == 7
    assert found["open"] == []


def test_an_open_run_is_told_and_can_be_ended(own: Home, tmp_path: Path) -> None:
    world = Repec(own.folder / "store")
    world.clock.now = datetime.now(UTC)
    run = claim(world.store, Purpose("gather", "web", "x"), world.run_outside)
    assert f"sheaf obi --abandon {run.tist}" in own("obi").out
    assert told(own("obi", "--abandon", run.tist))
    assert own("obi", "--json").json["open"] == []
    assert own("obi", "--abandon", run.tist + 1).code == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("RePEc:zzz",), "the obi store has nothing of RePEc:zzz"),
        (("--as-of", "2025-01-01"), "need an ID"),
        ((HANDLE, "--as-of", "yesterday"), "--as-of yesterday: expected a date"),
        ((HANDLE, "--json", "--bytes", "-"), "name a file"),
        ((HANDLE, "--bytes", "/nowhere/at/all"), "cannot be written"),
    ],
)
def test_a_fault_of_the_user_is_one_line(
    home: Home, arguments: tuple[str, ...], expected: str
) -> None:
    result = home("obi", *arguments)
    assert result.code == 2
    assert expected in result.err
    assert result.err.count("\n") == 1


def home_of(repec: Repec) -> Home:
    """Return a home with no settings around a store."""
    (repec.root.parent / "sheaf.toml").write_text("")
    return Home(repec.root.parent)


def test_the_life_of_a_file(repec: Repec) -> None:
    repec.take(a=paper(1))
    repec.gathered(FailureRow(id=URL, code="timeout"))
    repec.gathered(Redirect(origin="http://example.org/x", target=URL, status=301))
    repec.clock.sleep(10)
    run = claim(repec.store, Purpose("gather", "web", "z"), repec.run_outside)
    run.turn()
    place = put(run, URL, b"%PDF")
    soft = describe(place, b"%PDF", URL, "fobi", flags=("soft-404",))
    run.commit([soft, Incidence(id=URL, kind="fobi", what="appearance", key=place)])
    home = home_of(repec)
    found = home("obi", "--store", repec.root, "HTTP://EXAMPLE.org:80/rugs.pdf", "--json").json
    assert [e["row"] for e in found["events"]] == ["failure", "redirect", "version", "incidence"]
    assert found["version"]["flags"] == ["soft-404"]
    assert [one["handle"] for one in found["files"]] == [HANDLE]
    assert json.dumps(found)
    lines = told(home("obi", "--store", repec.root, URL))
    assert lines[3].endswith(f"version     4 bytes, sha256 {soft.sha256}, soft-404")


def test_a_failure_says_each_thing_once(repec: Repec) -> None:
    failures = [
        (404, "HTTP status 404", "not-found: HTTP status 404"),
        (404, "", "not-found: HTTP status 404"),
        (404, "4040 of them", "not-found: HTTP status 404, 4040 of them"),
        (None, "of itself", "not-found: of itself"),
        (None, "", "not-found"),
    ]
    for status, detail, _ in failures:
        repec.gathered(FailureRow(id=URL, code="not-found", status=status, detail=detail))
    lines = told(home_of(repec)("obi", "--store", repec.root, URL))
    assert [line.partition("failure     ")[2] for line in lines[1:6]] == [
        expected for _, _, expected in failures
    ]
    # A terminal is given no controls: of an id, of what servers said, and of what is asked for.
    wild = "http://example.org/\x1b]0;rugs\x07\u202e"
    repec.gathered(FailureRow(id=wild, code="dns", detail="a\x9bb"))
    home = home_of(repec)
    lines = told(home("obi", "--store", repec.root, wild))
    assert lines[0] == "http://example.org/\\x1b]0;rugs\\x07\\u202e"
    assert lines[1].endswith("dns: a\\x9bb")
    unknown = home("obi", "--store", repec.root, "\x1b[2Jx")
    assert "the obi store has nothing of \\x1b[2Jx: " in unknown.err


def test_the_status_tells_of_the_obi_store(own: Home) -> None:
    assert "obi store  nothing published yet; 4 runs not published yet" in own("status").out
    assert own("publish").code == 0
    shown = f"shown up to the run {int(LAST.timestamp())}"
    line = f"obi store  4 templates, deleted ones included, {shown}"
    assert line in told(own("status"))
    found = own("status", "--json").json
    assert found["obi"] == {"run": int(LAST.timestamp()), "waiting": []}
    assert found["snapshot"]["kinds"] == {"template": 4}
    assert told(own("query", "SELECT count(*) FROM incidence"))[-1] == "7"
