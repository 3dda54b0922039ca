"""Data files: the encodings of columns, the row order, row groups and parts.

The encodings were chosen by measurement (bench/README.md). A dictionary helps for values that
repeat within a row group and costs space for others. DuckDB and pyarrow read all of these
encodings. No unsorted data file is published. A part of a file is a valid Parquet file by itself
when cut out. builder.store.parquet.writer writes the files; here nothing needs pyarrow.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from functions.snapshot import layout, schema
from functions.snapshot.errors import SheafError
from functions.snapshot.manifest import Key, RowGroup

_DICTIONARY = "RLE_DICTIONARY"
_FRONT_CODED = (
    *("identifier", "url", "url_surtkey", "refers_to_url", "surt"),
    *("host", "domain", "word", "set_spec"),
)
_DISTINCT = (
    *("content_digest", "fetch_date", "fetch_redirect", "refers_to_date", "title"),
    *("document", "detail", "manifest"),
)
_BY_NAME = {
    **dict.fromkeys(_FRONT_CODED, "DELTA_BYTE_ARRAY"),
    **dict.fromkeys(_DISTINCT, "DELTA_LENGTH_BYTE_ARRAY"),
}
_BY_TYPE = {
    "BIGINT": "DELTA_BINARY_PACKED",
    "INTEGER": "DELTA_BINARY_PACKED",
    "TIMESTAMP": "DELTA_BINARY_PACKED",  # DuckDB 1 cannot read BYTE_STREAM_SPLIT of integers
}
# Neighbours among records share hosts and sets, those among copies do not. A word's rows are alone.
_BY_TABLE = {
    ("copies", "url_host_name"): "DELTA_BYTE_ARRAY",
    ("copies", "url_host_registered_domain"): "DELTA_BYTE_ARRAY",
    ("copies", "sets"): "PLAIN",
    ("words", "following"): _DICTIONARY,
}
# A higher level makes digests larger, and most other columns no smaller.
_THOROUGH = frozenset(
    ("url", "url_surtkey", "surt", "refers_to_url", "title", "document", "manifest", "sets")
)
T = TypeVar("T")
FILE_BYTES = 96 << 20
"""Bytes in memory of the rows of a file, about: captures stay below it, templates do not."""
_NOTHING = memoryview(bytes(1 << 20))
_CHUNK = 1 << 20  # bytes


def encoding_of(table: str) -> dict[str, Any]:
    """Return how the columns of `table` are written, as arguments of pyarrow's writer."""
    if table in layout.PLAIN:  # in a page of any size
        names = schema.names(table)
        return {
            "column_encoding": dict.fromkeys(names, "PLAIN"),
            "use_dictionary": False,
            "compression": "zstd",
            "data_page_size": 1 << 30,
        }
    encodings, levels = {}, {}
    for column in schema.TABLES[table]:
        path = f"{column.name}.list.element" if column.type.endswith("[]") else column.name
        levels[path] = 3 if column.name in _THOROUGH else 1
        encoding = _BY_TABLE.get((table, column.name)) or _BY_TYPE.get(column.type)
        encodings[path] = encoding or _BY_NAME.get(column.name, _DICTIONARY)
    return {
        "column_encoding": {p: e for p, e in encodings.items() if e != _DICTIONARY},
        "use_dictionary": [p for p, e in encodings.items() if e == _DICTIONARY],
        "compression": "zstd",
        "compression_level": levels,
    }


class UnsortedTable(SheafError):
    """Rows are not in their table's order: an error in Sheaf, not in its input."""


class Gate:
    """Checks the order of a table's row groups by the `keys` of their first and last rows."""

    def __init__(self, table: str) -> None:
        self._table = table
        self.keys: Sequence[str] = schema.ORDER[table][: schema.KEY[table]]
        if table == "records":  # positions are often assigned here, so check what they derive from
            self.keys = ("sequence", "kind", "url_surtkey", "position")
        self._last: tuple[Any, ...] | None = None

    def check(self, first: tuple[Any, ...], last: tuple[Any, ...]) -> None:
        """Check a row group by its first and last row. Raises UnsortedTable."""
        first, last = (
            tuple("\U0010ffff" if value is None else value for value in key)
            for key in (first, last)
        )
        if first > last or (self._last is not None and first < self._last):
            raise UnsortedTable(f"the rows of {self._table} are not in order near {first}")
        self._last = last


def files_of(
    groups: Iterator[T], size: int, bytes_of: Callable[[T], int] = lambda group: 0
) -> Iterator[Iterator[T]]:
    """Yield groups for each file: `size` of them, or fewer if they have FILE_BYTES.

    Each must be used up before the next is requested.
    """
    for first in groups:

        def run(first: T = first) -> Iterator[T]:
            yield first
            taken, taken_bytes = 1, bytes_of(first)
            while taken < size and taken_bytes < FILE_BYTES:
                group = next(groups, None)
                if group is None:
                    return
                yield group
                taken, taken_bytes = taken + 1, taken_bytes + bytes_of(group)

        yield run()


def group_span(group: Any) -> tuple[int, int, int]:
    """Return a row group's number of rows, and the offset and length of its bytes."""
    starts, ends = [], []
    for index in range(group.num_columns):
        column = group.column(index)
        start = column.data_page_offset
        if column.has_dictionary_page:
            start = min(start, column.dictionary_page_offset)
        starts.append(start)
        ends.append(start + column.total_compressed_size)
    return group.num_rows, min(starts), max(ends) - min(starts)


class ParquetPart:
    """File object for a writer of one row group: bytes and a footer go to the end of `file`.

    The writer counts from 0. So of its output, as many bytes are dropped as `file` has already, and
    all offsets in the footer are those in `file`.
    """

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = file.tell()

    def lead(self) -> Iterator[memoryview]:
        """Yield the bytes that the writer, which has begun, must write before the row group."""
        left = self._left
        while left > 0:
            yield _NOTHING[:left]
            left -= len(_NOTHING)

    def write(self, data: bytes) -> int:
        """Write the bytes after the lead."""
        drop = min(self._left, len(data))
        self._left -= drop
        self._file.write(memoryview(data)[drop:])
        return len(data)

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is closed."""

    def close(self) -> None:
        """Do nothing: the next part goes to the same file."""


@dataclass(frozen=True, slots=True)
class Written:
    """A finished local data file: digest of its bytes, size, footer, row groups."""

    path: Path
    digest: str
    bytes: int
    footer: int
    groups: tuple[RowGroup, ...]


def describe_file(
    path: Path, metadata: Any, bounds: Sequence[tuple[Key, Key]], ends: Sequence[int]
) -> Written:
    """Describe a finished file by its metadata and its row groups' bounds and ends.

    A row group ends with its own footer.
    """
    spans = [group_span(metadata.row_group(n)) for n in range(metadata.num_row_groups)]
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:32]
        checks = [
            checksum(file, offset, end - offset)
            for (_, offset, _), end in zip(spans, ends, strict=True)
        ]
    return Written(
        path,
        digest,
        path.stat().st_size,
        metadata.serialized_size + 8,  # the footer's length and the closing magic follow it
        tuple(
            RowGroup(first, last, rows, offset, length, end - offset - length, check)
            for (first, last), (rows, offset, length), end, check in zip(
                bounds, spans, ends, checks, strict=True
            )
        ),
    )


def checksum(file: BinaryIO, offset: int, length: int) -> int:
    """Return the CRC-32 of `length` bytes of a file from `offset`, or of fewer at its end."""
    file.seek(offset)
    crc = 0
    while length > 0 and (piece := file.read(min(length, _CHUNK))):
        crc = zlib.crc32(piece, crc)
        length -= len(piece)
    return crc
