"""Questions in SQL: what they read is there, or they are refused."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from builder.snapshot import query
from builder.snapshot.views import TABLES
from builder.store.folder import FolderStore
from builder.store.s3 import S3Store
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.manifest import Manifest
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.conftest import World, capture

pytestmark = pytest.mark.shared(2)

BUCKET = cast(S3Store, None)  # what a question reads is told without a look at the store
STATEMENTS = {
    # each with the answer, and with the view that it reads
    "CREATE VIEW html AS SELECT * FROM captures WHERE fetch_status = 200; "
    "SELECT count(*) FROM html": (50, "captures"),
    "FROM query('SELECT count(*) FROM cap' || 'tures')": (50, None),
    "FROM query('SELECT count(*) FROM captures')": (50, "captures"),
    "SELECT 1; SELECT count(*) FROM records": (50, "records"),
    "CREATE MACRO m() AS TABLE FROM captures; SELECT count(*) FROM m()": (50, "captures"),
    "PREPARE p AS SELECT count(*) FROM captures; EXECUTE p": (50, "captures"),
    "CREATE TABLE t AS FROM captures; SELECT count(*) FROM t": (50, "captures"),
    "SELECT count(*) > 20 FROM (SHOW captures)": (True, "captures"),
    "SELECT count(*) > 20 FROM pragma_table_info('captures')": (True, "captures"),
    "WITH captures AS (SELECT 1) SELECT count(*) FROM captures": (1, None),
    "SELECT count(*) FROM captures, sets": (50 * 25, "captures sets"),
}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("question") / "store")
    world.add([capture(n) for n in range(50)])
    return world


@pytest.fixture
def manifest(published: World) -> Manifest:
    return Catalogue(published.store).manifest(1)


@pytest.fixture
def connection() -> Iterator[engine.Connection]:
    with engine.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def bare(published: World) -> Iterator[engine.Connection]:
    """A connection that has the views, and none of the tables that they read."""
    with engine.connect() as connection:
        manifest = Catalogue(published.store).manifest(1)
        connection.execute(query.statements(published.store, manifest, set()))
        yield connection


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_folder_answers_whatever_reads_it(
    published: World, manifest: Manifest, connection: engine.Connection, sql: str
) -> None:
    wanted = query.tables(published.store, manifest, sql)
    connection.execute(query.statements(published.store, manifest, wanted))
    _, rows = engine.query(connection, sql)
    assert [tuple(row) for row in rows] == [(STATEMENTS[sql][0],)]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_of_a_bucket_what_is_named_is_wanted(manifest: Manifest, sql: str) -> None:
    views = (STATEMENTS[sql][1] or "").split()
    wanted = query.tables(BUCKET, manifest, sql)
    assert wanted == {table for view in views for table in TABLES[view]}


class Overtaken(FolderStore):
    """A store that somebody publishes to and expires while the first file is fetched from it."""

    def __init__(self, world: World, left: int = 1) -> None:
        super().__init__(world.root)
        self.world = world
        self.left = left

    def local(
        self, key: str, spans: Sequence[tuple[int, int]] | None = None, size: int | None = None
    ) -> Path:
        if self.left:
            self.left -= 1
            world = self.world
            world.add([capture(n, title=str(world.runs)) for n in range(50)])
            world.clock.sleep(100)
            assert world.expire(keep=1).objects
        return super().local(key, spans, size)


def test_a_snapshot_that_is_expired_meanwhile_gives_way_to_the_next(
    world: World, connection: engine.Connection
) -> None:
    world.add([capture(n) for n in range(50)])
    store = Overtaken(world, left=2)
    sql = "SELECT DISTINCT title FROM captures"
    query.prepare(connection, store, sql)
    _, rows = engine.query(connection, sql)
    assert [tuple(row) for row in rows] == [("2",)]


def test_a_file_that_is_gone_for_good_is_told(world: World, connection: engine.Connection) -> None:
    world.add([capture(1)])
    (key,) = world.store.keys("records/records/")
    (world.root / key).write_bytes(b"no Parquet")
    with pytest.raises(DamagedStore, match=f"{key} is damaged: its content does not match"):
        query.prepare(connection, world.store, "FROM captures")
    (world.root / key).unlink()
    with pytest.raises(MissingObject, match=key):
        query.prepare(connection, world.store, "FROM captures")
    query.prepare(connection, world.store, "FROM sets")


@pytest.mark.parametrize("view", TABLES)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM {}",
        "SELECT count(*) FROM {} WHERE false",
        "SELECT 1 WHERE EXISTS (FROM {}) AND false",
        "CREATE VIEW v AS FROM {}; FROM v",
        "FROM query('FROM ' || '{}')",
    ],
)
def test_a_view_whose_tables_are_not_there_is_refused(
    bare: engine.Connection, view: str, sql: str
) -> None:
    with pytest.raises(engine.QueryError, match="name this view in the statement"):
        engine.query(bare, sql.format(view))
    _, rows = engine.query(bare, "SELECT count(*) FROM snapshots")
    assert [tuple(row) for row in rows] == [(1,)]
