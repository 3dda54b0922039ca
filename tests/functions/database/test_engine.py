"""Memory of DuckDB: what is larger than that goes to the disk."""

from pathlib import Path

import pytest

from functions.database import engine
from functions.database.engine import OutOfMemory
from functions.snapshot.errors import StoreError

_SORT = "SELECT hash(range) AS n, repeat('y', 80) || range AS t FROM range(900_000) ORDER BY n, t"


def test_scratch_space_that_runs_out_in_a_stream_is_one_line(tmp_path: Path) -> None:
    connection = engine.connect(threads=1, memory_megabytes=64, scratch=tmp_path)
    connection.execute("SET max_temp_directory_size = '20MB'")
    with (
        pytest.raises(OutOfMemory, match="the table x: out of memory or of scratch space"),
        engine.reading("the table x"),
    ):
        sum(batch.num_rows for batch in engine.stream(connection, _SORT))


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
