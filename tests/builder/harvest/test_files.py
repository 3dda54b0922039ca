"""A harvest from data files keeps what a harvest by pages keeps, whatever happens meanwhile."""

import random
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from builder.harvest import file_walk
from builder.harvest import folder as folders
from builder.harvest.state import HarvestState
from builder.harvest.version import HarvestedRow
from tests.e2e.conftest import Home, Result, sheaf, warc
from tests.extent import examples
from tests.static import Site, on_the_web

HOSTS = ("a.cz", "www.a.cz", "b.cz")
TITLES = (
    "<title>&amp; &lt;b&gt; </title>",
    "<title>\u017elu\u0165&nbsp;ou\u010dk\u00fd</title>",
    "",
)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each row group be a span of its own, read in this process."""
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
        "runs": runs, "since": state.covered and state.covered[0],
    }  # fmt: skip


@pytest.mark.parametrize("form", ["parquet", "jsonl", "xml"])
@pytest.mark.parametrize("seed", range(examples(6)))
def test_random_histories(home: Home, site: Site, tmp_path: Path, seed: int, form: str) -> None:
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
