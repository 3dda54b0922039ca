"""Memory of DuckDB: what is larger than that goes to the disk."""

import resource
from datetime import date
from pathlib import Path

import pytest

from functions.database import connection, engine
from functions.database.engine import OutOfMemory
from functions.snapshot.errors import StoreError

_SORT = "SELECT hash(range) AS n, repeat('y', 80) || range AS t FROM range(900_000) ORDER BY n, t"


def test_scratch_space_that_runs_out_in_a_stream_is_one_line(tmp_path: Path) -> None:
    database = engine.connect(threads=1, memory_megabytes=64, scratch=tmp_path)
    database.execute("SET max_temp_directory_size = '20MB'")
    with (
        pytest.raises(OutOfMemory, match="the table x: out of memory or of scratch space"),
        engine.reading("the table x"),
    ):
        sum(batch.num_rows for batch in engine.stream(database, _SORT))


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("IOError: IO Error: No space left on device", StoreError, "scratch files is full"),
        ("IOError: IO Error: Could not read", StoreError, "cannot be read or written"),
        ("IOError: Out of Memory Error: a block", OutOfMemory, "out of memory"),
        ("of the program", OSError, "of the program"),
    ],
)
def test_what_a_stream_passes_on_keeps_its_meaning(
    text: str, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said), engine.reading("the table x"):
        raise OSError(text)


def test_equal_texts_are_parsed_once_and_read_what_is_there_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_KEPT", 3)
    monkeypatch.setattr(connection, "_parsed", {})
    sql = "SELECT a FROM t WHERE a >= $least ORDER BY a"
    with engine.connect() as one, engine.connect() as other:
        one.execute("CREATE TABLE t AS FROM range(4) r(a)")
        other.execute("CREATE TABLE t AS SELECT 'x' || a AS a FROM range(4) r(a)")
        assert one.execute(sql, {"least": 2}).fetchall() == [(2,), (3,)]
        assert other.execute(sql, {"least": "x3"}).fetchall() == [("x3",)]
        assert one.parse(sql) is other.parse(sql)
        assert len(one.parse(sql)) == 1
        one.execute("CREATE OR REPLACE TABLE t AS SELECT DATE '2026-01-01' AS a")
        assert one.execute(sql, {"least": date(2026, 1, 1)}).fetchall() == [(date(2026, 1, 1),)]
        two = "SELECT 1; SELECT 2"
        assert one.parse(two) is other.parse(two)
        assert len(one.parse(two)) == 2
        assert one.execute(two).fetchall() == [(2,)]
        assert len(connection._parsed) <= 3
        with pytest.raises(engine.DamagedStore, match="syntax error"), engine.reading("t"):
            one.execute("SELECT FROM WHERE")


def test_readers_share_a_database_and_nothing_that_they_create() -> None:
    with engine.connect_reader(64) as one, engine.connect_reader(64) as other:
        one.execute("CREATE TEMP VIEW mine AS SELECT 1 AS a")
        assert one.execute("FROM mine").fetchall() == [(1,)]
        with pytest.raises(engine.DamagedStore, match="mine"), engine.reading("it"):
            other.execute("FROM mine")
        assert engine.find_memory(one) == engine.find_memory(other) == 61 * 1024**2
    with engine.connect_reader(64) as later:
        assert later.execute("SELECT 2").fetchall() == [(2,)]


def test_a_scratch_folder_without_room_is_an_error_of_the_store(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9837, before[1]))  # as a disk with as much room
    try:
        with pytest.raises(StoreError, match=r"work\.duckdb"):
            engine.connect(scratch=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
