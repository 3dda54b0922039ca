"""Memory of DuckDB: what is larger than that goes to the disk."""

from pathlib import Path

import pytest

from functions.database import engine
from functions.database.engine import OutOfMemory
from functions.snapshot.errors import StoreError

_UNION = """
SELECT * FROM (
    SELECT range AS n, repeat('x', 80) || range AS t FROM range(10)
    UNION ALL SELECT hash(range), repeat('y', 80) || range FROM range(900_000)
) ORDER BY n, t
"""


def test_a_union_of_few_rows_and_many_is_sorted_on_the_disk(tmp_path: Path) -> None:
    connection = engine.connect(threads=1, memory_megabytes=64, scratch=tmp_path)
    with engine.spilling(connection, 300_000_000):
        rows = sum(batch.num_rows for batch in engine.stream(connection, _UNION))
    assert rows == 900_010


def test_what_is_much_larger_than_memory_begins_by_itself(tmp_path: Path) -> None:
    connection = engine.connect(threads=1, memory_megabytes=64, scratch=tmp_path)
    setting = "SELECT current_setting('debug_force_external')"
    for size, forced in ((0, True), (400 << 20, True), (520 << 20, False)):
        with engine.spilling(connection, size):
            assert connection.execute(setting).fetchall() == [(forced,)]
        assert connection.execute(setting).fetchall() == [(False,)]


def test_scratch_space_that_runs_out_in_a_stream_is_one_line(tmp_path: Path) -> None:
    connection = engine.connect(threads=1, memory_megabytes=64, scratch=tmp_path)
    connection.execute("SET max_temp_directory_size = '20MB'")
    with (
        pytest.raises(OutOfMemory, match="the table x: out of memory or of scratch space"),
        engine.reading("the table x"),
        engine.spilling(connection, 0),
    ):
        sum(batch.num_rows for batch in engine.stream(connection, _UNION))


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
