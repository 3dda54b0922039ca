"""Memory of DuckDB: what is larger than that goes to the disk."""

import resource
import stat
import tempfile
from pathlib import Path

import duckdb
import pytest

from functions.snapshot.errors import StoreError
from functions.store import engine

_SORT = "SELECT hash(range) AS n, repeat('y', 80) || range AS t FROM range(900_000) ORDER BY n, t"


def test_scratch_space_that_runs_out_in_a_stream_is_one_line(tmp_path: Path) -> None:
    database = engine.connect(threads=1, memory_megabytes=64, scratch=tmp_path)
    database.execute("SET max_temp_directory_size = '20MB'")
    with (
        pytest.raises(engine.OutOfMemory, match="the table x: out of memory or of scratch space"),
        engine.reading("the table x"),
    ):
        sum(batch.num_rows for batch in engine.stream(database, _SORT))


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("IOError: IO Error: No space left on device", StoreError, "scratch files is full"),
        ("IOError: IO Error: Could not read", StoreError, "cannot be read or written"),
        ("IOError: Out of Memory Error: a block", engine.OutOfMemory, "out of memory"),
        ("of the program", OSError, "of the program"),
    ],
)
def test_what_a_stream_passes_on_keeps_its_meaning(
    text: str, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said), engine.reading("the table x"):
        raise OSError(text)


def test_readers_share_a_database_and_nothing_that_they_create() -> None:
    with engine.connect_reader(64) as one, engine.connect_reader(64) as other:
        one.execute("CREATE TEMP VIEW mine AS SELECT 1 AS a")
        assert one.execute("FROM mine").fetchall() == [(1,)]
        with pytest.raises(engine.DamagedStore, match="mine"), engine.reading("it"):
            other.execute("FROM mine")
        assert engine.find_memory(one) == engine.find_memory(other) == 61 * 1024**2
    with engine.connect_reader(64) as later:
        assert later.execute("SELECT 2").fetchall() == [(2,)]


def test_an_engine_is_given_on_without_what_its_last_user_made(tmp_path: Path) -> None:
    query = "SELECT name FROM (SELECT table_name AS name FROM duckdb_tables()) ORDER BY ALL"
    for number, name in enumerate("abc"):
        (tmp_path / name).mkdir()
        with engine.connect(memory_megabytes=67, scratch=tmp_path / name) as one:
            assert one.execute(query).fetchall() == []
            one.execute("CREATE TABLE mine AS SELECT 1 AS a")
            one.execute("CREATE TEMP TABLE passing AS SELECT 1 AS a")
            one.cursor().execute("CREATE TABLE yours AS SELECT a FROM mine")
            assert one.execute("FROM yours").fetchall() == [(1,)]
            assert one.execute("SELECT getvariable('x')").fetchall() == [(None,)]
            one.execute("SET VARIABLE x = 1")
            with engine.connect(memory_megabytes=67) as other:
                assert other.execute(query).fetchall() == []
            if number == 1:
                one.execute("ATTACH ':memory:' AS left_over")
        with pytest.raises(duckdb.Error):
            one.execute("SELECT 1")


def test_an_engine_that_has_spilled_is_not_given_on(tmp_path: Path) -> None:
    sort = "CREATE TABLE t AS SELECT hash(range) AS a, 'x' || range AS b FROM range($n) ORDER BY a"
    for name, rows in (("a", 2_000_000), ("b", 2_000_000)):
        (tmp_path / name).mkdir()
        with engine.connect(memory_megabytes=41, scratch=tmp_path / name) as one:
            one.execute(sort, {"n": rows})
            assert (tmp_path / name / "sheaf-spill").exists()


def test_a_database_in_memory_spills_to_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that others can foresee could be their link, and its files can be read by all."""
    others = tmp_path / "others"
    others.mkdir()
    (tmp_path / "sheaf-spill").symlink_to(others)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sort = "SELECT hash(range) AS a, 'x' || range AS b FROM range(2_000_000) ORDER BY a"
    with engine.connect(memory_megabytes=43) as one:
        rows = engine.batches(one, sort)
        next(rows)
        (folder,) = {path.parent for path in tmp_path.rglob("*.tmp")}
        assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
        rows.close()
    assert list(others.iterdir()) == []


def test_a_scratch_folder_without_room_is_an_error_of_the_store(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9837, before[1]))  # as a disk with as much room
    try:
        with pytest.raises(StoreError, match=r"work\.duckdb"):
            engine.connect(scratch=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
