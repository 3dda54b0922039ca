"""Reads Parquet files row by row, and texts as columns; it is apart from the writer."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from functions.snapshot import schema
from functions.snapshot.errors import StoreError


def read_rows(path: Path, columns: Sequence[schema.Column], many: int) -> Iterator[tuple[Any, ...]]:
    """Yield a file's rows in order, `many` of them in memory. Raises StoreError.

    The value of a column that the file lacks is None.
    """
    names = [column.name for column in columns]
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(many, columns=names):
                values = {name: batch.column(name).to_pylist() for name in batch.schema.names}
                lacking = [None] * batch.num_rows
                yield from zip(*(values.get(name, lacking) for name in names), strict=True)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error


def lines_of(data: bytes) -> pa.Table:
    """Return a table of one column, `line`: the lines of a Latin-1 text.

    The text is not copied if it is ASCII.
    """
    text = data if data.isascii() else data.decode("latin-1").encode("utf-8")
    bounds = pa.array([0, len(text)], pa.int64()).buffers()[1]
    whole = pa.LargeStringArray.from_buffers(1, bounds, pa.py_buffer(text))
    return pa.table({"line": pc.split_pattern(whole, "\n").flatten()})
