"""Joins rows of neighbouring positions, as the table of words holds them, while they are written.

It is apart from the writer, and imports pyarrow like it, because rows are joined by columns: a
window of SQL would sort all of them again.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

_BITS = 41
"""Bits of a position: a number of a word and a position are one integer."""
_ROWS = pa.schema([("word", pa.string()), ("position", pa.int64()), ("following", pa.int64())])


def join_ranges(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows `word`, `position`, `following` with overlapping and adjacent ranges joined.

    The rows come sorted. So no position of a word is in two of the rows that are yielded.
    """
    last: pa.RecordBatch | None = None
    for batch in rows:
        typed = pa.record_batch([batch.column(f.name).cast(f.type) for f in _ROWS], schema=_ROWS)
        joined = _join(typed if last is None else pa.concat_batches([last, typed]))
        last = joined.slice(joined.num_rows - 1)
        yield joined.slice(0, joined.num_rows - 1)
    if last is not None:
        yield last


def _join(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Join the rows of a batch, of at least one row."""
    word, first, more = rows.columns
    count = rows.num_rows
    new = pc.not_equal(word.slice(1), word.slice(0, count - 1))
    numbers = pc.cumulative_sum(pc.cast(pa.concat_arrays([pa.array([False]), new]), pa.int64()))
    start = pc.add(pc.shift_left(numbers, pa.scalar(_BITS, pa.int64())), first)
    end = pc.cumulative_max(pc.add(start, more))  # of the ranges so far, also of earlier words
    apart = pc.greater(start.slice(1), pc.add(end.slice(0, count - 1), 1))
    begins = pa.concat_arrays([pa.array([True]), apart])
    ends = pa.concat_arrays([apart, pa.array([True])])
    length = pc.subtract(end.filter(ends), start.filter(begins))
    columns = [word.filter(begins), first.filter(begins), length]
    return pa.record_batch(columns, schema=_ROWS)
