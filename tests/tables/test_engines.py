"""Engines give the answers of `sheaf query` from the tables (`make prove-tables`).

Each engine is a process with the packages that `make prove-tables` puts into a folder of `.tables`.
Without it, the engine is skipped. tests/builder/outputs/tables reads them by the specification.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.change import changed
from bench.generate import captures
from builder.publish.reinstate import reinstate
from builder.publish.selection import Selection
from builder.publish.withdraw import withdraw
from builder.snapshot.query import _STORED, statements
from functions.snapshot import layout
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.conftest import World

ROOT = Path(__file__).parents[2]
ASK = Path(__file__).parent / "ask.py"
TOOLS = ROOT / ".tables"
pytestmark = pytest.mark.skipif(
    not TOOLS.is_dir(), reason="engines are not installed: `make prove-tables` installs them"
)
ENGINES = (
    # the folder of its packages, its name in ask.py
    ("duckdb-1.4", "duckdb"),
    ("duckdb-1.5", "duckdb"),
    ("duckdb-2.0", "views"),
    ("python", "pyiceberg"),
    ("python", "polars"),
    ("clickhouse", "clickhouse"),
    ("spark", "spark"),
)
TABLES = ["records", "captures", "snapshots", "sets", "sources"]
COUNT = 5_000
QUESTIONS = {
    "How did the archive grow?": (
        "SELECT substr(fetch_date, 1, 4) AS year, count(*) AS captures, "
        "count(DISTINCT fetch_time) AS times, "
        "sum(content_length) AS bytes FROM captures GROUP BY substr(fetch_date, 1, 4)"
    ),
    "Which media types are there, and with how many errors?": (
        "SELECT content_mime_type, count(*) AS captures, "
        "sum(CASE WHEN fetch_status >= 400 THEN 1 ELSE 0 END) AS errors "
        "FROM captures GROUP BY content_mime_type"
    ),
    "Which domains have most captures, and since when?": (
        "SELECT url_host_registered_domain, count(*) AS captures, min(fetch_date) AS since "
        "FROM captures GROUP BY url_host_registered_domain"
    ),
    "Which titles changed?": (
        "SELECT title, count(*) AS captures, count(DISTINCT content_digest) AS states, "
        "max(url_surtkey) AS last FROM captures WHERE title LIKE 'Changed%' GROUP BY title"
    ),
    "What does each publish still list?": (
        "SELECT r.kind AS kind, r.deleted AS deleted, s.sequence AS sequence, count(*) AS records, "
        "max(s.last_position) AS position, sum(r.position) AS positions "
        "FROM records AS r JOIN snapshots AS s ON r.sequence = s.sequence "
        "GROUP BY r.kind, r.deleted, s.sequence"
    ),
    "Counts": "SELECT count(*) AS records, sum(position) AS positions FROM records",
    "Sets": "SELECT count(*) AS sets, sum(records) AS records, sum(live) AS live FROM sets",
    "Sources": "SELECT count(*) AS sources, sum(captures) AS captures FROM sources",
}
Answer = list[list[Any]]


@dataclass
class History:
    """A store and its answers, by snapshot and question."""

    world: World
    answers: dict[int, list[Answer]]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """A store with changes, withdrawals, reinstatements, and merges of small publishes."""
    world = World(tmp_path_factory.mktemp("tables") / "store")
    on = {"SHEAF_PUBLISH_TABLES": "true"}
    some = [*captures(COUNT)]
    world.ingest(some[:-100], ("collection:a",))
    world.publish(**on)
    before = records(world)
    for number in range(4):
        one = [*changed(COUNT, 900, 7 + number, f"Changed {number % 3}")]
        world.ingest([*one, *some[-100 + 10 * number : -90 + 10 * number]], ("collection:a",))
        world.publish(**on)
    selection = Selection(set="mime:application:pdf")
    withdraw(world.store, world.configuration(**on), world.runtime(), selection, "asked for")
    names = [row[0] for row in ask(world, 6, "SELECT identifier FROM records WHERE deleted")]
    assert names
    back = Selection(identifiers=tuple(names[: len(names) // 2]))
    reinstate(world.store, world.configuration(**on), world.runtime(), back)
    world.ingest([*changed(COUNT, 10, 1, "Changed again")], ("collection:a",))
    world.publish(**on)
    assert before <= records(world)  # that is, nothing was copied or rewritten
    return History(
        world, {n: [ask(world, n, sql) for sql in QUESTIONS.values()] for n in (1, 6, 7, 8)}
    )


def records(world: World) -> set[str]:
    return {*world.store.keys(layout.RECORDS)}


def ask(world: World, snapshot: int, sql: str) -> Answer:
    """Return the answer of the views of a snapshot, as `sheaf query` makes them."""
    manifest = Catalogue(world.store).manifest(snapshot)
    with engine.connect() as connection:
        connection.execute(statements(world.store, manifest, _STORED))
        return normalize(connection.execute(sql).fetchall())


def normalize(rows: Any) -> Answer:
    """Return rows in one order, with numbers as they are in JSON."""
    plain = [[v if isinstance(v, str | None) else int(v) for v in row] for row in rows]
    return sorted(plain, key=repr)


@pytest.mark.parametrize(("folder", "name"), ENGINES)
def test_an_engine_gives_equal_answers(history: History, folder: str, name: str) -> None:
    if name == "spark" and not shutil.which("java"):
        pytest.skip("Spark is not proved: there is no Java")
    compare(history, folder, name, str(history.world.root))


def compare(history: History, folder: str, name: str, root: str) -> None:
    """Compare an engine's answers from the store at `root`, at all snapshots."""
    if not (TOOLS / folder).is_dir():
        pytest.skip(f"{name} is not installed: `make prove-tables` installs it into .tables")
    order = {
        "root": root,
        "tables": TABLES,
        "questions": [*QUESTIONS.values()],
        "snapshots": [*history.answers],
    }
    done = subprocess.run(
        [sys.executable, str(ASK), name],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TOOLS / folder)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    for (snapshot, expected), found in zip(history.answers.items(), answers, strict=True):
        for question, one, other in zip(QUESTIONS, expected, found, strict=True):
            assert normalize(other) == one, (snapshot, question)


def test_the_history_has_what_is_to_be_proved(history: History) -> None:
    """Changes, withdrawals and merges are in the newest snapshot and in the one before."""
    counts = {n: answers[5] for n, answers in history.answers.items()}
    assert len({str(count) for count in counts.values()}) == 4
    for number in (7, 8):
        manifest = Catalogue(history.world.store).manifest(number)
        assert manifest.tombstones
        assert any(one.records["capture"] < one.last - one.first + 1 for one in manifest.sequences)
        runs = {leaf.span for leaf in manifest.tables["records"]}
        assert len(runs) < len(manifest.sequences)


def test_no_data_is_copied(history: History) -> None:
    """Below tables/ are positions of deleted rows, and the rows of `snapshots`."""
    store = history.world.store
    written = {e.key: e.bytes for e in store.entries("tables/") if e.key.endswith(".parquet")}
    assert all(key.startswith(("tables/deletes/", "tables/snapshots/")) for key in written)
    with engine.connect() as connection:
        for key in written:
            rows = connection.execute(f"DESCRIBE FROM '{store.local(key)}'").fetchall()
            names = ["sequence"] if key.startswith("tables/snapshots/") else ["file_path", "pos"]
            assert [row[0] for row in rows][: len(names)] == names
    assert sum(written.values()) < 0.05 * sum(e.bytes for e in store.entries(layout.RECORDS))
