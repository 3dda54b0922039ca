"""The scratch tables that folders share are those of builder.snapshot.scratch_tables."""

import re
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import builder
from builder.publish.selection import Selection
from builder.snapshot import scratch_tables
from functions.store import engine
from tests.builder.conftest import NAMESPACE
from tests.builder.obi.archive import PREFIX, Repec
from tests.builder.publish.test_revisits import made, revisit
from tests.builder.verify.test_losses import fill

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


def take_down(world: Repec) -> None:
    """Withdraw an original, a dataset and a template, purge and restore them."""
    original = made(1, "http://a.cz/1", "D1")
    world.ingest([original, revisit(7, "http://a.cz/1", "D1")], ("collection:x:y",), digest="e")
    world.publish()
    names = (
        f"oai:{NAMESPACE}:{original.identity}",
        f"oai:{NAMESPACE}:dataset,invenio,data.example,41",
        f"{PREFIX}RePEc:aaa:wpaper:1",
    )
    world.withdraw(Selection(identifiers=names), purge=True)
    world.clock.sleep(100)
    world.reinstate(Selection(identifiers=names))


def test_tables_that_folders_share_are_declared_with_their_columns(
    tmp_path: Path, seen: dict[str, set[str]]
) -> None:
    with closing(Repec(tmp_path / "store")) as world:
        fill(world)
        take_down(world)
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
