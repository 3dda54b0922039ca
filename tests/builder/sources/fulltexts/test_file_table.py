"""The table of files: from the logs at once, in steps, and from a stored table."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from builder.obi import key
from builder.obi.content import FailureRow, Incidence, Redirect, Refipo, Row, SeenRow, Version
from builder.obi.history import IMPORT
from builder.obi.run import Purpose, claim, history
from builder.sources.fulltexts import file_table
from builder.sources.fulltexts.choice import DAY, FileChoice
from builder.sources.fulltexts.file_table import NAMES
from builder.sources.fulltexts.state import FileStates
from builder.store.folder import FolderStore
from builder.verify.verify import verify
from functions.store import engine
from tests.builder.http import site as web
from tests.builder.obi.holding import copy_runs
from tests.builder.obi.test_verify import MEANS
from tests.builder.sources.fulltexts.conftest import World

pytestmark = pytest.mark.shared(2)

URLS = [f"http://{host}.org/{n}" for host in "abc" for n in range(3)]
CODES = ("not-found", "connect", "dns", "server-error", "too-large", "empty")


def row(url: str, tist: int, chance: random.Random) -> Row:
    """A row that a run may log of a file, in no sensible order."""
    kind = chance.randrange(6)
    if kind == 0:
        return Refipo(
            handle=f"RePEc:aaa:wpaper:{chance.randrange(5)}",
            position=0,
            url=url,
            id=url,
            format=chance.choice((None, "application/pdf", "text/html")),
            restriction=chance.choice((None, "members")),
        )
    if kind == 1:
        return Version(
            id=url,
            kind="fobi",
            key=key.key(tist, url),
            bytes=1,
            md5="",
            sha256="ab" * 32,
            etag=chance.choice((None, "x")),
        )
    if kind == 2:
        return SeenRow(id=url, kind="fobi", status=chance.choice((None, 200)), etag="y")
    if kind == 3:
        what = chance.choice(("appearance", "deletion"))
        return Incidence(id=url, kind="fobi", what=what, key=key.key(tist, url))
    if kind == 4:
        end = chance.choice((None, "k"))
        return Redirect(origin=url, target="http://d.org/", status=301, key="r", target_key=end)
    return FailureRow(id=url, code=chance.choice(CODES), detail=chance.choice(("", "x")))


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[engine.Connection]:
    with closing(engine.connect(scratch=tmp_path)) as connection:
        yield connection


def states(connection: engine.Connection) -> list[Any]:
    return connection.execute(f"SELECT {NAMES} FROM file ORDER BY ALL").fetchall()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(5))
def test_steps_give_what_all_logs_give_at_once(
    world: World, connection: engine.Connection, seed: int
) -> None:
    chance = random.Random(seed)
    for number in range(12):
        kind = chance.choice(("gather", IMPORT))
        run = claim(world.store, Purpose(kind, "test", f"{number}"), world.runtime)
        urls = chance.sample(URLS, chance.randrange(len(URLS)))
        rows = [row(url, run.tist, chance) for url in urls for _ in range(chance.randrange(3))]
        run.commit(rows)
        world.clock.sleep(chance.choice((1, DAY)))
    runs = history(world.store)
    file_table.create(connection)
    file_table.add_runs(connection, world.store, runs, world.folder)
    at_once = states(connection)
    assert len(at_once) > 3
    # Captures may be older than their run, so they are no answers of its time.
    found = connection.execute("SELECT answered FROM file WHERE answered IS NOT NULL").fetchall()
    assert {tist for (tist,) in found} <= {run.tist for run in runs if not run.is_import}
    assert found
    table, middle = None, 0
    for upto in (3, 4, 9, 12):
        later = file_table.load(connection, table, runs[:upto])
        assert list(later) == list(runs[middle:upto])
        file_table.add_runs(connection, world.store, later, world.folder)
        table, middle = file_table.save(connection, world.store, runs[upto - 1], world.folder), upto
        assert file_table.find(world.store, runs, connection) == file_table.StoredTable(
            table.key, world.store.path(table.key), table.run
        )
    assert states(connection) == at_once
    assert len(file_table.list_tables(world.store)) == 2
    for where in file_table.list_tables(world.store):
        stored = file_table.read(world.store, where, runs, connection)
        assert stored is not None
        file_table.create(connection)
        shown = runs[: runs.index(stored.run) + 1]
        file_table.add_runs(connection, world.store, shown, world.folder)
        tables = ("file", engine.table(engine.quote(str(stored.path))))
        made_rows, stored_rows = (f"SELECT {NAMES} FROM {table} ORDER BY id" for table in tables)
        assert (
            connection.execute(made_rows).fetchall() == connection.execute(stored_rows).fetchall()
        )


def test_a_table_is_kept_found_and_proved(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_table, "_LEAST", 0)
    for n in range(3):
        world.site.pages[f"/{n}"] = web.text(f"{n}")
    world.refer([world.site.url(f"/{n}") for n in range(3)])
    world.gather()
    world.days(31)
    assert world.gather().counts == {"seen": 3}
    (*_, where) = file_table.list_tables(world.store)
    assert key.parse_file_table(where) is not None
    assert verify(world.store, MEANS).findings == ()
    copy = FolderStore(world.folder / "copy")
    copy_runs(world.store, copy)
    assert file_table.list_tables(copy) == file_table.list_tables(world.store)
    path = copy.path(where)
    path.write_bytes(path.read_bytes()[:-1])
    assert {(f.code, f.object) for f in verify(copy, MEANS).findings} == {
        ("files-table-wrong", where)
    }
    with closing(engine.connect()) as connection:
        older = file_table.find(copy, history(copy), connection)
    assert older is not None
    assert older.key < where


def test_one_host_waits_for_no_other(world: World) -> None:
    """Files are taken in turns of their hosts."""
    many = [f"http://many.org/{n}" for n in range(9)]
    world.refer([*many, "http://one.org/a", "http://two.org/a", "http://two.org/b"])
    choice = FileChoice(30 * DAY, DAY)
    (world.folder / "states").mkdir()
    states = FileStates.load(world.store, history(world.store), world.folder / "states", 512)
    with closing(states):
        now = int(world.clock.now.timestamp())

        def hosts(most: int, *resting: str) -> list[str]:
            found = states.next(choice, now, now, most, resting)
            return sorted(one.host.partition(".")[0] for one in found)

        assert hosts(1) == ["many"]
        assert hosts(3) == ["many", "one", "two"]
        assert hosts(7) == ["many"] * 4 + ["one", "two", "two"]
        assert hosts(3, "many.org") == ["one", "two", "two"]
