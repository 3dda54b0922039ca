"""Reads Parquet files: rows, and row groups of the table of records as columns.

It is apart from the writer, and imports pyarrow like it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from functions.snapshot import schema
from functions.snapshot.errors import DamagedStore, StoreError

Arrays = Mapping[str, pa.Array]
"""Columns of one length by name."""


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A row group: its file, which holds `count` of them or only this one, and its number."""

    path: Path
    number: int
    count: int


def read_groups(groups: Iterable[StoredGroup], names: Sequence[str]) -> pa.Table:
    """Return columns of row groups, one behind the other. Raises DamagedStore."""
    tables = []
    for group in groups:
        try:
            with pq.ParquetFile(group.path) as file:
                number = group.number if file.num_row_groups == group.count else 0
                tables.append(file.read_row_group(number, columns=[*names], use_threads=False))
        except (OSError, pa.ArrowException) as error:
            raise DamagedStore(f"{group.path} cannot be read: {error}") from error
    return pa.concat_tables(tables)


def choose_rows(
    table: pa.Table, first: int, last: int, kinds: Sequence[str], dead: Sequence[pa.Table]
) -> Arrays:
    """Return the rows at positions in `first`..`last`, of these kinds, and not at `dead` ones."""
    place = table.column("position")
    inside = pc.and_(pc.greater_equal(place, first), pc.less_equal(place, last))
    chosen = pc.and_(inside, pc.is_in(table.column("kind"), value_set=pa.array(kinds)))
    for other in dead:
        gone = pc.is_in(place, value_set=other.column("position").combine_chunks())
        chosen = pc.and_(chosen, pc.invert(gone))
    if not pc.all(chosen).as_py():
        table = table.filter(chosen)
    return {name: _whole(table.column(name)) for name in table.column_names}


def distinct(column: pa.Array) -> Sequence[Any]:
    """Return the different values of a column."""
    values: Sequence[Any] = column.unique().to_pylist()
    return values


def map_values(column: pa.Array, texts: Mapping[Any, str]) -> pa.StringArray:
    """Return the text of each value."""
    coded = column.dictionary_encode()
    found = pa.array([texts[value] for value in coded.dictionary.to_pylist()], pa.string())
    return found.take(coded.indices)


def arrays_of(columns: Mapping[str, Sequence[Any]]) -> Arrays:
    """Return columns in memory as arrays."""
    found = {name: pa.array(values) for name, values in columns.items()}
    return {n: a.cast(pa.string()) if pa.types.is_null(a.type) else a for n, a in found.items()}


def _whole(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def read_rows(path: Path, columns: Sequence[schema.Column], many: int) -> Iterator[tuple[Any, ...]]:
    """Yield a file's rows in order, `many` of them in memory. Raises StoreError."""
    try:
        with pq.ParquetFile(path) as file:
            for some in file.iter_batches(many, columns=[column.name for column in columns]):
                yield from zip(*(one.to_pylist() for one in some.columns), strict=True)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
