"""Writes Parquet files. It imports pyarrow, as few modules do."""

import errno
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from builder.store.parquet import data_file
from builder.store.parquet.data_file import Gate, ParquetPart, Written, describe_file, files_of
from builder.threads import map_in_order
from functions.snapshot import layout, schema
from functions.snapshot.errors import NO_SPACE, StoreError
from functions.snapshot.manifest import Key

_TYPES: dict[str, pa.DataType] = {
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "SMALLINT": pa.int16(),
    "BOOLEAN": pa.bool_(),
    "VARCHAR": pa.string(),
    "BLOB": pa.binary(),
    "TIMESTAMP": pa.timestamp("us"),
    "VARCHAR[]": pa.list_(pa.string()),
    "INTEGER[]": pa.list_(pa.int32()),
    "STRUCT(sequence INTEGER, kind VARCHAR, records BIGINT, live BIGINT)[]": pa.list_(
        pa.struct(
            [
                ("sequence", pa.int32()),
                ("kind", pa.string()),
                ("records", pa.int64()),
                ("live", pa.int64()),
            ]
        )
    ),
    "STRUCT(first BIGINT, last BIGINT, copied BOOLEAN)[]": pa.list_(
        pa.struct([("first", pa.int64()), ("last", pa.int64()), ("copied", pa.bool_())])
    ),
}

_SEARCHED = ("url_surtkey", "url_host_registered_domain", "fetch_time")
"""Columns with bounds in the footer, for analysts; bounds of every column would bloat it."""
GROUP_BYTES = 64 << 20
"""Bytes of the documents of a row group at most: what reads one has it in memory."""
_BATCH_BYTES = 8 << 20
"""Bytes of long values in a batch of a RowWriter, at most about."""
_ENCODERS = 4  # files that are encoded at once; each is in memory as a whole


def parse_columns(types: str) -> tuple[schema.Column, ...]:
    """Return the columns of `name TYPE, name TYPE`, for files that only Sheaf reads."""
    pairs = (pair.split() for pair in types.split(", "))
    return tuple(schema.Column(name, kind, "", "") for name, kind in pairs)


class ParquetStream(Protocol):
    """An Arrow C stream: an object from which pyarrow can read batches."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the stream's capsule."""
        ...


def arrow_schema(columns: Iterable[schema.Column]) -> pa.Schema:
    """Return the Arrow schema of a table's columns."""
    return pa.schema([(column.name, _TYPES[column.type]) for column in columns])


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Raise pyarrow's errors while writing below `path` as errors of the store."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise StoreError(f"{NO_SPACE} ({path.parent})") from error
        raise StoreError(f"{path} cannot be written: {error}") from error


class RowWriter:
    """Writes rows one by one; at most `batch` of them are in memory, less if they are long."""

    def __init__(
        self,
        path: Path,
        columns: Sequence[schema.Column],
        batch: int = 4096,
        unlike: Collection[str] = (),
    ) -> None:
        """The values of the columns `unlike` are long and hardly repeat."""
        self._path = path
        self._schema = arrow_schema(columns)
        alike = [name for name in self._schema.names if name not in unlike]
        with _writing(path):
            self._writer = pq.ParquetWriter(
                path,
                self._schema,
                compression="zstd",
                use_dictionary=alike,
                write_statistics=alike,
            )
        self._rows: list[tuple[Any, ...]] = []
        self._batch, self._size = batch, 0
        self._long = self._schema.get_field_index("document")

    def append(self, row: tuple[Any, ...]) -> None:
        """Add a row: one value for each column, in order."""
        self._rows.append(row)
        if self._long >= 0:
            self._size += len(row[self._long] or "")
        if len(self._rows) >= self._batch or self._size >= _BATCH_BYTES:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows and the footer."""
        self._flush()
        with _writing(self._path):
            self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            columns = zip(zip(*self._rows, strict=True), self._schema, strict=True)
            with _writing(self._path):
                self._writer.write_batch(
                    pa.record_batch(
                        [pa.array(values, field.type) for values, field in columns],
                        schema=self._schema,
                    )
                )
            self._rows.clear()
            self._size = 0


def _array(values: Any, type_: pa.DataType) -> pa.Array:
    array = values if isinstance(values, pa.Array) else pa.array(values, type_)
    # A cast imports the computing part of pyarrow, which takes 0.1 s.
    return array if array.type == type_ else array.cast(type_)


def columns_of(values: Mapping[str, Sequence[Any]], types: Mapping[str, str]) -> pa.Table:
    """Return a table of columns in memory; `types` are their types as in schema.Column."""
    return pa.table({name: pa.array(values[name], _TYPES[types[name]]) for name in types})


def write_rows(
    streams: Iterable[ParquetStream], columns: Sequence[schema.Column], path: Path, group: int
) -> None:
    """Write the streams' rows in row groups of `group` rows: the same rows give the same bytes."""
    target, rows = arrow_schema(columns), itertools.chain.from_iterable(map(batches, streams))
    with _writing(path), pq.ParquetWriter(path, target, compression="zstd") as writer:
        for table in _rechunk(_conform(rows, target, {}), group):
            writer.write_table(table.combine_chunks(), row_group_size=group)


def batches(stream: ParquetStream) -> Iterator[pa.RecordBatch]:
    """Yield a stream's batches of rows."""
    yield from pa.RecordBatchReader.from_stream(stream)


def segments(
    rows: Iterable[pa.RecordBatch], column: str
) -> Iterator[tuple[Any, Iterator[pa.RecordBatch]]]:
    """Yield each value of `column` with its batches, without that column.

    Rows with the same value must be adjacent. Each run must be used up before the next is
    requested.
    """
    for value, run in itertools.groupby(_split(rows, column), key=itemgetter(0)):
        yield value, (batch for _, batch in run)


def _split(rows: Iterable[pa.RecordBatch], column: str) -> Iterator[tuple[Any, pa.RecordBatch]]:
    import pyarrow.compute as pc  # takes as long to load as the rest

    for batch in rows:
        runs, rest = pc.run_end_encode(batch.column(column)), batch.drop_columns([column])
        start = 0
        for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield value, rest.slice(start, end - start)
            start = end


def write_table(
    rows: Iterable[pa.RecordBatch],
    table: str,
    folder: Path,
    constants: Mapping[str, int] | None = None,
    threads: int = 1,
) -> Iterator[Written]:
    """Write a table's sorted rows as data files in `folder`, and yield them in order.

    While up to `threads` files are encoded, the rows of the next one are read; so one more is in
    memory, and what is encoded of a file is not. `constants` may give `position` and `sequence` for
    batches without these columns: `position` is that of the first such row and increases by one,
    `sequence` is the same for all.
    """
    target = arrow_schema(schema.TABLES[table])
    gate = Gate(table)
    grouped = _rechunk(_conform(rows, target, dict(constants or {})), layout.group_rows(table))
    files = (
        (folder / f"{table}-{number}.parquet", [_pass_gate(gate, group) for group in groups])
        for number, groups in enumerate(
            files_of(grouped, layout.file_groups(table), lambda group: int(group.nbytes))
        )
    )
    threads = min(threads, _ENCODERS)
    return map_in_order(lambda file: _write_file(*file, table, target), files, threads, threads)


def _pass_gate(gate: Gate, group: pa.Table) -> pa.Table:
    first, last = (
        tuple(group.column(key)[index].as_py() for key in gate.keys)
        for index in (0, group.num_rows - 1)
    )
    gate.check(first, last)
    return group


def _write_file(path: Path, groups: list[pa.Table], table: str, target: pa.Schema) -> Written:
    keys = schema.ORDER[table][: schema.KEY[table]]
    bounds = [(_key(group, keys, 0), _key(group, keys, group.num_rows - 1)) for group in groups]
    groups.reverse()
    bounded = [name for name in target.names if name in keys or name in _SEARCHED]
    settings: dict[str, Any] = {
        **data_file.encoding_of(table),
        "write_statistics": bounded,
        "store_schema": False,  # each of its types has an equivalent in Parquet
    }
    with _writing(path):
        with path.open("wb") as file:
            ends, footers = [], []
            while groups:
                footers.append(_write_part(file, target, groups.pop(), settings))
                ends.append(file.tell())
            if len(footers) > 1:
                # One footer for all parts ends the file.
                for other in footers[1:]:
                    footers[0].append_row_groups(other)
                sink = pa.BufferOutputStream()
                footers[0].write_metadata_file(sink)
                # It begins with the magic, which the file has already.
                file.write(sink.getvalue().to_pybytes()[4:])
        return describe_file(path, pq.read_metadata(path), bounds, ends)


def _write_part(
    file: BinaryIO, target: pa.Schema, group: pa.Table, settings: Mapping[str, Any]
) -> pq.FileMetaData:
    """Write a row group and its footer to the end of the file; return the metadata."""
    collected: list[pq.FileMetaData] = []
    part = ParquetPart(file)
    with pa.PythonFile(part, mode="w") as sink:
        writer = pq.ParquetWriter(sink, target, metadata_collector=collected, **settings)
        try:
            for piece in part.lead():
                sink.write(piece)
            writer.write_table(group, row_group_size=group.num_rows)
        finally:
            writer.close()
    return collected[0]


def _conform(
    rows: Iterable[pa.RecordBatch], target: pa.Schema, constants: Mapping[str, int]
) -> Iterator[pa.Table]:
    """Yield the rows with the target's columns, types and order; what they lack is NULL."""
    position = constants.get("position", 0)
    for batch in rows:
        values = {name: batch.column(name) for name in batch.schema.names}
        if "position" in constants and "position" not in values:
            count = batch.num_rows
            values["position"] = pa.array(range(position, position + count), pa.int64())
            values["sequence"] = pa.repeat(pa.scalar(constants["sequence"], pa.int32()), count)
            position += count
        yield pa.table(
            [
                _array(values[f.name], f.type) if f.name in values else pa.nulls(len(batch), f.type)
                for f in target
            ],
            schema=target,
        )


def _rechunk(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Yield the same rows in tables of `rows` rows; the last one may be shorter.

    A table ends before its documents have GROUP_BYTES, wherever the given ones end.
    """
    pending: list[pa.Table] = []
    count = size = 0
    for part in tables:
        pending.append(part)
        count += part.num_rows
        size += _measure_documents(part)
        if count < rows and size < GROUP_BYTES:
            continue
        table = pa.concat_tables(pending)
        while (end := _find_end(table, rows)) < table.num_rows or end == rows:
            yield table.slice(0, end)
            table = table.slice(end)
        pending, count, size = [table], table.num_rows, _measure_documents(table)
    if count:
        yield pa.concat_tables(pending)


def _measure_documents(table: pa.Table) -> int:
    """Return the bytes of the documents of a table, 0 if it has none."""
    if "document" not in table.schema.names:
        return 0
    return sum(_measure_texts(chunk) for chunk in table.column("document").chunks)


def _measure_texts(texts: pa.Array) -> int:
    """Return the bytes of an array of texts, by its first and last offset."""
    if not len(texts):
        return 0
    offsets = memoryview(texts.buffers()[1]).cast("i")
    return int(offsets[texts.offset + len(texts)] - offsets[texts.offset])


def _find_end(table: pa.Table, rows: int) -> int:
    """Return how many rows of a table are a group; all if it may go on."""
    most = min(rows, int(table.num_rows))
    if _measure_documents(table.slice(0, most)) < GROUP_BYTES:
        return most
    low, high = 1, most  # a group has a row, however long
    while low < high:
        middle = (low + high + 1) // 2
        is_less = _measure_documents(table.slice(0, middle)) < GROUP_BYTES
        low, high = (middle, high) if is_less else (low, middle - 1)
    return low


def _key(rows: pa.Table, keys: Sequence[str], index: int) -> Key:
    values = tuple(rows.column(key)[index].as_py() for key in keys)
    return values if len(values) > 1 else values[0]
