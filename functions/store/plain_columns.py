"""Decodes a row group whose columns are written plain: one page each, without a dictionary.

A look-up needs few values of a row group. To plan a statement of DuckDB for them costs more than to
decode the pages. Apache Parquet: page headers (Thrift's compact protocol), and the encoding PLAIN.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import zstandard

_PLAIN = 0
_TRUE, _BINARY, _STRUCT = 1, 8, 12
_INTEGERS = frozenset({4, 5, 6})  # of 16, 32 and 64 bits
_LENGTH = struct.Struct("<I")
_OF_END = 40  # bytes of a number in a list


class NotPlain(ValueError):
    """The row group is written otherwise: by an earlier version of Sheaf, or with NULL values."""


class PlainTexts(Sequence[str]):
    """The texts of a page, which are decoded when they are read."""

    def __init__(self, page: bytes) -> None:
        self._page = page
        self._ends = []
        end, read = 0, _LENGTH.unpack_from
        while end < len(page):
            end += _LENGTH.size + read(page, end)[0]
            self._ends.append(end)

    @property
    def nbytes(self) -> int:
        """About how much memory it takes, in bytes."""
        return len(self._page) + _OF_END * len(self._ends)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: Any) -> Any:
        start = self._ends[index - 1] if index else 0
        return self._page[start + _LENGTH.size : self._ends[index]].decode()


PlainColumn = PlainTexts | memoryview
"""The values of a column, which several threads may read."""

_READERS: dict[str, Callable[[bytes], PlainColumn]] = {
    "BIGINT": lambda page: memoryview(page).cast("q"),
    "VARCHAR": PlainTexts,
}


def decode_columns(data: bytes, types: Sequence[str], rows: int) -> list[PlainColumn]:
    """Return the columns of a row group of `rows` rows; `data` begins with its first page.

    `types` are the columns' types in order: BIGINT or VARCHAR, without NULL. Raises NotPlain.
    """
    columns: list[PlainColumn] = []
    at = 0
    try:
        for type_ in types:
            header, start = _read_struct(data, at)
            _, _, size, length, *_ = (header.get(number, 0) for number in range(5))
            at = start + length
            if header[5][2] != _PLAIN or header[5][1] != rows:
                raise NotPlain("a page has another encoding")
            decoder = zstandard.ZstdDecompressor()  # threads cannot share it
            page = decoder.decompress(data[start:at], max_output_size=size)
            levels = _LENGTH.size + _LENGTH.unpack_from(page)[0]
            column = _READERS[type_](page[levels:])
            if len(column) != rows:
                raise NotPlain("a column has NULL values")
            columns.append(column)
    except (KeyError, IndexError, TypeError, struct.error, zstandard.ZstdError) as error:
        raise NotPlain("a page cannot be decoded") from error
    return columns


def _read_struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Return a structure's fields by their numbers, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while head := data[at]:
        number, at = number + (head >> 4), at + 1
        kind = head & 15
        if kind == _STRUCT:
            fields[number], at = _read_struct(data, at)
        elif kind in _INTEGERS:
            value, at = _read_number(data, at)
            fields[number] = value >> 1 ^ -(value & 1)
        elif kind == _BINARY:
            length, at = _read_number(data, at)
            at += length
        elif kind > _TRUE + 1:
            raise NotPlain("a page's header has a field of another type")
    return fields, at + 1


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] > 127:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1
