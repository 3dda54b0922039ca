"""Reads Parquet files row by row, and texts as columns; it is apart from the writer."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import accumulate
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


def add_texts(
    rows: Iterable[pa.RecordBatch], paths: Sequence[str], column: str
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with a `column` of texts that stand in other files. Raises StoreError.

    A row has the `number` of a file in `paths`, its `row` there, and a `head`, which stands for the
    first character of the text unless it is empty. These three are taken away. The rows come sorted
    by number and row, so that one row group of one file is in memory. A join of DuckDB would keep
    neither order nor bounds if its texts are long.
    """
    with ExitStack() as stack:
        source = _TextSource(paths, column, stack)
        for batch in rows:
            numbers, places = (batch.column(name).to_pylist() for name in ("number", "row"))
            keys, start = [*zip(numbers, places, strict=True)], 0
            while start < len(keys):
                try:
                    first, texts = source.find(*keys[start])
                except (OSError, pa.ArrowException) as error:
                    raise StoreError(f"{paths[keys[start][0]]} cannot be read: {error}") from error
                end = bisect_left(keys, (numbers[start], first + len(texts)), start)
                chosen = pa.array(places[start:end], pa.int64())
                is_whole = end - start == len(texts)
                texts = texts if is_whole else texts.take(pc.subtract(chosen, first))
                part = batch.slice(start, end - start)
                yield _replace_heads(part.drop_columns(["number", "row"]), texts, column)
                start = end


class _TextSource:
    """The texts of a column of files, by row groups."""

    def __init__(self, paths: Sequence[str], column: str, stack: ExitStack) -> None:
        self._paths, self._column, self._stack = paths, column, stack
        self._number = -1

    def find(self, number: int, row: int) -> tuple[int, pa.Array]:
        """Return the texts of the row group with a row of a file, and the row that is its first."""
        if number != self._number:
            self._stack.close()
            self._file = self._stack.enter_context(pq.ParquetFile(self._paths[number]))
            about = self._file.metadata
            sizes = (about.row_group(at).num_rows for at in range(about.num_row_groups))
            self._starts, self._number = [*accumulate(sizes, initial=0)], number
        group = bisect_right(self._starts, row) - 1
        texts = self._file.read_row_group(group, columns=[self._column]).column(0)
        only = texts.chunk(0) if texts.num_chunks == 1 else texts.combine_chunks()
        return self._starts[group], only


def _replace_heads(rows: pa.RecordBatch, texts: pa.Array, column: str) -> pa.RecordBatch:
    heads = rows.column("head")
    is_changed = pc.not_equal(heads, "")
    if pc.any(is_changed).as_py():
        longer = pc.binary_join_element_wise(heads, pc.utf8_slice_codeunits(texts, 1), "")
        texts = pc.if_else(is_changed, longer, texts)
    return rows.drop_columns(["head"]).append_column(column, texts)


def lines_of(data: bytes) -> pa.Table:
    """Return a table of one column, `line`: the lines of a Latin-1 text.

    The text is not copied if it is ASCII.
    """
    text = data if data.isascii() else data.decode("latin-1").encode("utf-8")
    bounds = pa.array([0, len(text)], pa.int64()).buffers()[1]
    whole = pa.LargeStringArray.from_buffers(1, bounds, pa.py_buffer(text))
    return pa.table({"line": pc.split_pattern(whole, "\n").flatten()})
