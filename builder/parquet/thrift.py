"""Writer of Thrift's compact protocol, used by Parquet's footers and page headers. Pure.

A struct is a mapping of field numbers, ascending, to values; a list holds values of one type.
Values that are None are omitted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Union

Value = Union[bool, "Int32", "Int64", str, Sequence["Value"], Mapping[int, "Value | None"]]
Struct = Mapping[int, Value | None]

_TRUE, _FALSE, _INT32, _INT64, _TEXT, _LIST, _STRUCT = 1, 2, 5, 6, 8, 9, 12
_SHORT = 15  # lists with fewer values have their length in the first byte


@dataclass(frozen=True, slots=True)
class Int32:
    """A number of 32 bits."""

    value: int


@dataclass(frozen=True, slots=True)
class Int64:
    """A number of 64 bits."""

    value: int


def struct(fields: Struct) -> bytes:
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


def varint(number: int) -> bytes:
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
            return varint(number << 1 if number >= 0 else (-number << 1) - 1)
        case str():
            data = value.encode()
            return varint(len(data)) + data
        case Mapping():
            return struct(value)
        case bool():
            return bytes([_TRUE if value else _FALSE])
        case _:
            kind = _type(value[0]) if value else _STRUCT
            many = len(value)
            head = bytes([many << 4 | kind]) if many < _SHORT else b""
            head = head or bytes([_SHORT << 4 | kind]) + varint(many)
            return head + b"".join(map(_encode, value))
