"""The scratch tables that folders share are those of builder.snapshot.scratch_tables."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import builder
from builder.publish.selection import Selection
from builder.snapshot import scratch_tables
from builder.sources.harvest.ingest import HarvestIngest
from builder.sources.harvest.source import find_harvests
from functions.store import engine
from tests.builder.conftest import NAMESPACE, capture
from tests.builder.obi.archive import PREFIX, Repec
from tests.builder.publish.test_revisits import made, revisit
from tests.builder.sources.datasets.outcomes import item, outcome
from tests.builder.sources.datasets.published import ingest as ingest_filesets
from tests.builder.sources.harvest.provider import items
from tests.builder.sources.harvest.written import harvest, row
from tests.builder.sources.redif.trees import paper

BUILDER = Path(builder.__file__).parent
ROOMS = ("kinds", "publish", "snapshot")
_COLUMNS = """
SELECT table_name, list((column_name, data_type) ORDER BY column_index)
FROM duckdb_columns() WHERE NOT internal GROUP BY table_name
"""


class Watched:
    """A connection that notes the tables and views after each statement that makes one."""

    def __init__(self, connection: engine.Connection, seen: dict[str, set[str]]) -> None:
        self._connection = connection
        self._seen = seen

    def execute(self, sql: str, *values: Any) -> engine.Connection:
        done = self._connection.execute(sql, *values)
        if "CREATE" not in sql:
            return done
        for name, columns in self._connection.execute(_COLUMNS).fetchall():
            self._seen[name].add(", ".join(" ".join(column) for column in columns))
        return self._connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Return by name the columns of each table that a change of a store makes."""
    found: dict[str, set[str]] = defaultdict(set)
    connect = engine.connect

    def watched(**arguments: Any) -> Any:
        connection = connect(**arguments)
        folder = arguments.get("scratch")
        change = folder is not None and folder.name.startswith("sheaf-publish-")
        return Watched(connection, found) if change else connection

    monkeypatch.setattr(engine, "connect", watched)
    return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Repec]:
    (tmp_path / "home").mkdir()
    world = Repec(tmp_path / "home" / "store")
    yield world
    world.close()


def gather(world: Repec, name: str, came: str) -> None:
    """Put a harvest into the intake."""
    rows = [row(one, came=came) for one in items(10)]
    folder = world.root.parent / f"harvests-{name}"
    harvest(folder, rows, sets=[("a", f"The set {name}")])
    scratch_folder = world.root.parent / f"scratch-{name}"
    scratch_folder.mkdir()
    work = HarvestIngest(world.store, NAMESPACE, {}, (), {}, scratch_folder, name)
    work.carry_out(find_harvests(str(folder)))


def fill(world: Repec) -> None:
    """Publish items of each kind, and then a change of each."""
    original = made(1, "http://a.cz/1", "D1")
    captures = [original, original, revisit(7, "http://a.cz/1", "D1"), capture(3)]
    world.ingest(captures, ("collection:x:y",))
    ingest_filesets(world, outcome(item("a.csv", "b.csv")))
    gather(world, "one", "2026-11-22T10:00:00Z")
    world.take(a=paper(1), b=paper(2))
    world.publish()
    world.clock.sleep(100)
    world.ingest(
        [
            made(5, "http://a.cz/1", "D1"),
            made(1, "http://a.cz/1", "D1", title="New"),
            revisit(9, "http://a.cz/1", None, refers_to_url="http://a.cz/1"),
        ],
        ("collection:x:y",),
        digest="e",
    )
    ingest_filesets(world, outcome(item("a.csv")))
    gather(world, "two", "2026-11-23T10:00:00Z")
    world.take(a=paper(1, "On Mats"))
    world.publish()
    world.clock.sleep(100)


def takedown(world: Repec) -> None:
    """Withdraw an original, a dataset and a template, purge and restore them."""
    names = (
        f"oai:{NAMESPACE}:{made(1, 'http://a.cz/1', 'D1').identity}",
        f"oai:{NAMESPACE}:{made(5, 'http://a.cz/1', 'D1').identity}",
        f"oai:{NAMESPACE}:dataset,invenio,data.example,41",
        f"{PREFIX}RePEc:aaa:wpaper:1",
        items(1)[0].identifier,
    )
    world.withdraw(Selection(identifiers=names))
    world.clock.sleep(100)
    world.reinstate(Selection(identifiers=names))


def test_tables_that_folders_share_are_declared_with_their_columns(
    world: Repec, seen: dict[str, set[str]]
) -> None:
    fill(world)
    takedown(world)
    declared = scratch_tables.TABLES
    assert {*scratch_tables.REPLAYED, *declared} <= seen.keys()
    assert {name: seen[name] for name in declared} == {
        name: {table.columns} for name, table in declared.items()
    }
    texts: dict[Path, str] = defaultdict(str)
    for room in ROOMS:
        for path in [*(BUILDER / room).rglob("*.py"), *(BUILDER / room).rglob("*.sql")]:
            texts[path.parent] += path.read_text("utf-8")
    for name in seen.keys() - {*scratch_tables.REPLAYED, *declared}:
        family = re.sub("_(faults|sources)$", "_{table}", name)  # as SQL has it
        mention = rf"\b(?:{name}\b|{re.escape(family)})"
        folders = [folder for folder, text in texts.items() if re.search(mention, text)]
        assert len(folders) == 1, name


def test_a_name_is_distinct_and_says_what_the_table_holds() -> None:
    for name, table in scratch_tables.TABLES.items():
        assert re.fullmatch("[a-z]+(_[a-z]+)+", name), name
        assert table.holds.endswith("."), name
