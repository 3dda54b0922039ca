"""The scratch tables of a publish are those that builder.snapshot.scratch_tables declares."""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import builder
from builder.harvest.ingest import HarvestIngest, find
from builder.snapshot import scratch_tables
from builder.withdraw.selection import Selection
from functions.database import engine
from tests.builder.conftest import NAMESPACE, capture
from tests.builder.filesets.outcomes import item, outcome
from tests.builder.filesets.published import ingest as ingest_filesets
from tests.builder.harvest.provider import items
from tests.builder.harvest.written import harvest, row
from tests.builder.obi.archive import PREFIX, Repec
from tests.builder.publish.test_revisits import made, revisit
from tests.builder.redif.trees import paper

BUILDER = Path(builder.__file__).parent
ROOMS = ("publish", "snapshot", "withdraw")
_WRITES = r"(?:(?<!DROP )(?:TABLE|VIEW)(?: IF NOT EXISTS)?|INSERT INTO|DELETE FROM|UPDATE)\s+"
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
    work = HarvestIngest(world.store, NAMESPACE, {}, (), {})
    work.carry_out(find(str(folder)), scratch_folder, name)


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


def test_a_change_makes_the_tables_that_are_declared(
    world: Repec, seen: dict[str, set[str]]
) -> None:
    fill(world)
    takedown(world)
    made = {name: seen.pop(name) for name in [*seen] if name not in scratch_tables.REPLAYED}
    assert seen.keys() == {*scratch_tables.REPLAYED}
    assert made == {name: {table.columns} for name, table in scratch_tables.TABLES.items()}


def imported(tree: ast.Module) -> list[str]:
    """Return the texts that other modules give this one to execute, as constants of theirs."""
    found: list[str] = []
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("builder"):
            for name in node.names:
                value = getattr(import_module(str(node.module)), name.name)
                found += [value] if isinstance(value, str) else []
                if isinstance(value, ModuleType):
                    modules[name.asname or name.name] = value.__name__
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            value = getattr(sys.modules.get(modules.get(node.value.id, "")), node.attr, None)
            found += [value] if isinstance(value, str) else []
    return found


def sql_of(path: Path) -> str:
    """Return the texts of a module except docstrings, with its file of SQL and what it imports.

    `{...}` stands for an inserted value.
    """
    tree = ast.parse(path.read_text("utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    beside = path.with_suffix(".sql")
    texts = [beside.read_text("utf-8")] if beside.exists() else []
    texts += imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            texts.append(
                "".join(
                    str(p.value) if isinstance(p, ast.Constant) else "{...}" for p in node.values
                )
            )
        elif isinstance(node, ast.Constant) and not {id(node)} & (docs | parts):
            texts.append(str(node.value))
    return "\n".join(texts)


def pattern(name: str) -> str:
    """Return the pattern of a name in SQL; some names end with an inserted table of the store."""
    family = re.sub("_(faults|sources)$", "_{...}", name)
    return rf"\b(?:{name}\b|{re.escape(family)})"


def test_a_module_that_mentions_a_table_is_its_writer_or_reader() -> None:
    paths = [path for room in ROOMS for path in sorted((BUILDER / room).glob("*.py"))]
    modules = {f"{path.parent.name}.{path.stem}": sql_of(path) for path in paths}
    del modules["snapshot.scratch_tables"]
    for name, table in scratch_tables.TABLES.items():
        found = {module for module, sql in modules.items() if re.search(pattern(name), sql)}
        assert found == {*table.writers, *table.readers}, name
        assert not {*table.writers} & {*table.readers}, name
        writing = _WRITES + pattern(name)
        writers = {module for module, sql in modules.items() if re.search(writing, sql)}
        assert writers <= {*table.writers}, name


def test_a_name_is_distinct_and_says_what_the_table_holds() -> None:
    assert len(scratch_tables.TABLES) == len(scratch_tables._DECLARED)
    for name, table in scratch_tables.TABLES.items():
        assert re.fullmatch("[a-z]+(_[a-z]+)+", name), name
        assert table.holds.endswith("."), name
