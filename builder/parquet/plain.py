"""Writes small Parquet files without pyarrow, which needs much memory.

Each column of a row group is one page: levels, then values in the encoding PLAIN, compressed with
gzip. Larger tables are written by builder.parquet.writer, which compresses better and is faster.

Footers and page headers are in Thrift's compact protocol. A struct is a mapping of field numbers,
ascending, to values; a list holds values of one type. Values that are None are omitted.
"""

import itertools
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Union

from functions.snapshot.item_tables import Column

Value = Union[bool, "Int32", "Int64", str, Sequence["Value"], Mapping[int, "Value | None"]]
Struct = Mapping[int, Value | None]

_TRUE, _FALSE, _INT32, _INT64, _TEXT, _LIST, _STRUCT = 1, 2, 5, 6, 8, 9, 12
_SHORT = 15  # lists with fewer values have their length in the first byte
_MAGIC = b"PAR1"
_EPOCH = datetime(1970, 1, 1)  # UTC


@dataclass(frozen=True, slots=True)
class Int32:
    """A number of 32 bits."""

    value: int


@dataclass(frozen=True, slots=True)
class Int64:
    """A number of 64 bits."""

    value: int


def encode_struct(fields: Struct) -> bytes:
    """Return a struct's bytes. Its field numbers may be at most 15 apart."""
    made = bytearray()
    last = 0
    for number, value in fields.items():
        if value is not None:
            made.append((number - last) << 4 | _type(value))
            if not isinstance(value, bool):
                made += _encode(value)
            last = number
    made.append(0)
    return bytes(made)


def encode_varint(number: int) -> bytes:
    """Return a number that is not negative in groups of 7 bits, the lowest first."""
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _type(value: Value) -> int:
    match value:
        case bool():
            return _TRUE if value else _FALSE
        case Int32():
            return _INT32
        case Int64():
            return _INT64
        case str():
            return _TEXT
        case Mapping():
            return _STRUCT
        case _:
            return _LIST


def _encode(value: Value) -> bytes:
    match value:
        case Int32(number) | Int64(number):
            return encode_varint(number << 1 if number >= 0 else (-number << 1) - 1)
        case str():
            data = value.encode()
            return encode_varint(len(data)) + data
        case Mapping():
            return encode_struct(value)
        case bool():
            return bytes([_TRUE if value else _FALSE])
        case _:
            kind = _type(value[0]) if value else _STRUCT
            many = len(value)
            head = bytes([many << 4 | kind]) if many < _SHORT else b""
            head = head or bytes([_SHORT << 4 | kind]) + encode_varint(many)
            return head + b"".join(map(_encode, value))


_GZIP, _PLAIN, _RLE = Int32(2), Int32(0), Int32(3)
_OPTIONAL, _REPEATED = Int32(1), Int32(2)
_LIST_SUFFIX = "[]"

_TEXT_TYPE: Struct = {6: Int32(0), 10: {1: {}}}
_MICROSECONDS: Struct = {10: {8: {1: False, 2: {2: {}}}}}
_LISTED: Struct = {6: Int32(3), 10: {3: {}}}
_TYPES: dict[str, tuple[Int32, Struct]] = {
    # DuckDB's type: Parquet's physical type, and the other fields of the schema element
    "BOOLEAN": (Int32(0), {}),
    "INTEGER": (Int32(1), {}),
    "BIGINT": (Int32(2), {}),
    "TIMESTAMP": (Int32(2), _MICROSECONDS),
    "VARCHAR": (Int32(6), _TEXT_TYPE),
}


class PlainWriter:
    """Writes rows one by one; at most `batch` of them are in memory.

    Columns are of the types BOOLEAN, INTEGER, BIGINT, TIMESTAMP, VARCHAR and VARCHAR[]. Raises
    OSError if the file cannot be written, and UnicodeEncodeError for text with lone surrogates.
    """

    def __init__(self, path: Path, columns: Sequence[Column], batch: int = 4096) -> None:
        self._columns = columns
        self._batch = batch
        self._rows: list[tuple[Any, ...]] = []
        self._groups: list[Struct] = []
        self._count = 0
        self._file = path.open("wb")
        self._file.write(_MAGIC)

    def append(self, row: tuple[Any, ...]) -> None:
        """Add a row: one value for each column, in order. A time without a zone is UTC."""
        self._rows.append(row)
        if len(self._rows) >= self._batch:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows and the footer. After an error it may be called again."""
        self._flush()
        footer = encode_struct(
            {
                1: Int32(2),
                2: _schema(self._columns),
                3: Int64(self._count),
                4: self._groups,
                6: "sheaf",
            }
        )
        self._file.write(footer + struct.pack("<I", len(footer)) + _MAGIC)
        self._file.flush()
        self._file.close()

    def _flush(self) -> None:
        if not self._rows:
            return
        chunks, size = [], 0
        for column, values in zip(self._columns, zip(*self._rows, strict=True), strict=True):
            start = self._file.tell()
            levels, count, data = _level_bytes(column.type, values)
            page = levels + data
            packed = _pack(page)
            head = encode_struct(
                {
                    1: Int32(0),
                    2: Int32(len(page)),
                    3: Int32(len(packed)),
                    5: {1: Int32(count), 2: _PLAIN, 3: _RLE, 4: _RLE},
                }
            )
            self._file.write(head)
            self._file.write(packed)
            plain = len(head) + len(page)
            chunks.append(_chunk(column, count, plain, len(head) + len(packed), start))
            size += plain
        self._groups.append({1: chunks, 2: Int64(size), 3: Int64(len(self._rows))})
        self._count += len(self._rows)
        self._rows.clear()


def _schema(columns: Sequence[Column]) -> list[Struct]:
    elements: list[Struct] = [{4: "schema", 5: Int32(len(columns))}]
    for column in columns:
        own, more = _TYPES[column.type.removesuffix(_LIST_SUFFIX)]
        if column.type.endswith(_LIST_SUFFIX):
            elements.append({3: _OPTIONAL, 4: column.name, 5: Int32(1), **_LISTED})
            elements.append({3: _REPEATED, 4: "list", 5: Int32(1)})
            elements.append({1: own, 3: _OPTIONAL, 4: "element", **more})
        else:
            elements.append({1: own, 3: _OPTIONAL, 4: column.name, **more})
    return elements


def _chunk(column: Column, count: int, plain: int, packed: int, start: int) -> Struct:
    """Return the footer's metadata of a column of a row group."""
    inner = ["list", "element"] if column.type.endswith(_LIST_SUFFIX) else []
    told: Struct = {
        1: _TYPES[column.type.removesuffix(_LIST_SUFFIX)][0],
        2: [_PLAIN, _RLE],
        3: [column.name, *inner],
        4: _GZIP,
        5: Int64(count),
        6: Int64(plain),
        7: Int64(packed),
        9: Int64(start),
    }
    return {2: Int64(start), 3: told}


def _level_bytes(type_: str, values: Sequence[Any]) -> tuple[bytes, int, bytes]:
    """Return a column's levels, their number, and its values.

    Levels mark NULL, and where each list begins: 0 for a NULL list, 1 for an empty one, 2 for a
    NULL element and 3 for a value.
    """
    if not type_.endswith(_LIST_SUFFIX):
        defined = [int(value is not None) for value in values]
        return _levels(defined), len(defined), _data(type_, values)
    repeated, defined = [], []
    for value in values:
        inner = [2 + (one is not None) for one in value] if value else [int(value is not None)]
        defined += inner
        repeated += [0] + [1] * (len(inner) - 1)
    flat = [one for value in values if value is not None for one in value]
    levels = _levels(repeated) + _levels(defined)
    return levels, len(defined), _data(type_.removesuffix(_LIST_SUFFIX), flat)


def _levels(levels: Iterable[int]) -> bytes:
    """Return levels, each at most 255, as run-length encoding."""
    runs = b"".join(
        encode_varint(sum(1 for _ in run) << 1) + bytes([level])
        for level, run in itertools.groupby(levels)
    )
    return struct.pack("<I", len(runs)) + runs


def _data(type_: str, values: Iterable[Any]) -> bytes:
    known = [value for value in values if value is not None]
    match type_:
        case "BOOLEAN":
            bits = sum(1 << n for n, value in enumerate(known) if value)
            return bits.to_bytes((len(known) + 7) // 8, "little")
        case "INTEGER":
            return struct.pack(f"<{len(known)}i", *known)
        case "BIGINT":
            return struct.pack(f"<{len(known)}q", *known)
        case "TIMESTAMP":
            return struct.pack(f"<{len(known)}q", *map(_microseconds, known))
        case _:
            texts = [value.encode() for value in known]
            return b"".join(
                piece for text in texts for piece in (struct.pack("<I", len(text)), text)
            )


def _microseconds(time: datetime) -> int:
    naive = time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
    return (naive - _EPOCH) // timedelta(microseconds=1)


def _pack(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()
