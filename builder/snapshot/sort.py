"""Sorts of more rows than memory holds.

DuckDB 2.0 has two limits. It never begins to use the disk once the first part of a UNION ALL was
read, or of a join on disk. Such a sort would run out of memory, so its rows are written to a
scratch file first. And the scratch files of a sort are up to twice as large as its rows. So a very
large sort is made of ranges of its first column, one after the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from functions.store import engine

_SMALL = 0.25
"""A sort of this part of the memory, in bytes as estimated, never needs the disk."""
_LARGEST = 4
"""Bytes of a range, as a multiple of the memory."""
_SAMPLE = 200
"""Rows drawn for each range: so, the sizes of ranges hardly differ."""
_VECTOR, _GROUP_BYTES = 2048, 8 << 20
"""Rows that DuckDB handles at once, and bytes of a row group of the scratch file: both a copy and
what reads it have several in memory."""
_UNSORTED = engine.table("$unsorted")

Rows = tuple[str, Mapping[str, Any]]
"""A query, and the values of its parameters."""


def sort(
    connection: engine.Connection,
    folder: Path,
    rows: Rows,
    order: str,
    size: int,
    united: bool,
    width: int = 0,
) -> Iterator[Rows]:
    """Yield queries whose rows, one query after the other, are `rows` in that order.

    `order` is as after ORDER BY: names of columns, or ALL. The first column makes the ranges; its
    NULL is last. The rows have about `size` bytes, each `width`. `united`: they come from a UNION
    ALL or a join. Executes statements before it yields, and keeps a file in `folder` until the last
    query was used.
    """
    memory = engine.find_memory(connection)
    ranges = -(-size // int(_LARGEST * memory))
    path = folder / "unsorted.parquet"
    try:
        if united and size > _SMALL * memory:
            group = max(_VECTOR, min(16384, _GROUP_BYTES // max(1, width)))
            target = (
                f"{engine.quote(str(path))} "
                f"(FORMAT parquet, COMPRESSION lz4, ROW_GROUP_SIZE {group})"
            )
            connection.execute(f"COPY ({rows[0]}) TO {target}", rows[1])
            rows = f"SELECT * FROM {_UNSORTED}", {"unsorted": [str(path)]}
        yield from _divide(connection, rows, order, ranges)
    finally:
        path.unlink(missing_ok=True)


def _divide(connection: engine.Connection, rows: Rows, order: str, ranges: int) -> Iterator[Rows]:
    """Yield a sort for each range of the first column."""
    column, (sql, values) = "#1" if order == "ALL" else order.partition(",")[0], rows
    bounds = _draw_bounds(connection, f"SELECT {column} FROM ({sql})", values, ranges)
    if not bounds:
        yield f"{sql} ORDER BY {order}", values
        return
    ordered = f"SELECT * FROM ({sql}) WHERE {{}} ORDER BY {order}"
    yield ordered.format(f"{column} < $end"), {**values, "end": bounds[0]}
    for start, end in pairwise(bounds):
        between = f"{column} >= $start AND {column} < $end"
        yield ordered.format(between), {**values, "start": start, "end": end}
    last = f"{column} >= $start OR {column} IS NULL"
    yield ordered.format(last), {**values, "start": bounds[-1]}


def _draw_bounds(
    connection: engine.Connection, column: str, values: Mapping[str, Any], ranges: int
) -> Sequence[Any]:
    """Return values between ranges of about equal size, in order: `ranges` - 1, or fewer."""
    if ranges < 2:
        return []
    drawn = connection.execute(
        f"SELECT * FROM (FROM ({column}) USING SAMPLE {ranges * _SAMPLE} ROWS) "
        "WHERE #1 IS NOT NULL ORDER BY ALL",
        values,
    ).fetchall()
    places = (number * len(drawn) // ranges for number in range(1, ranges))
    return list(dict.fromkeys(drawn[place][0] for place in places)) if drawn else []
