"""Columns of a data file, transferred from DuckDB in the fastest way: one text per column.

DuckDB's client makes Python objects value by value. That takes longer than reading and decoding
them. Texts joined by DuckDB are split again by one call for each column.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from functions.snapshot import schema

# No text of the store contains these: XML forbids them, even as references.
_NULL, _INNER, _END = "\x1e", "\x1d", "\x1f"

_POINTER_BYTES = 8
_VALUE_BYTES = 57
"""Bytes of an object in a list, besides its characters."""

Columns = dict[str, list[Any]]

_FILLED = frozenset({"position", "sequence", "identifier", "kind", "deleted"})
"""Columns without NULL values."""

_TYPES = {column.name: column.type for column in schema.TABLES["copies"]}
_LISTS = "[]"


def join_columns(names: Sequence[str]) -> str:
    """Return expressions that join each column into one text, for `split_columns`."""
    return ", ".join(f"string_agg({_text(name)}, '{_END}')" for name in names)


def plain(names: Sequence[str]) -> str:
    """Return expressions that make a list of each column: slow, but for any values."""
    return ", ".join(f"list({name})" for name in names)


def split_columns(names: Sequence[str], row: Sequence[str | None]) -> tuple[Columns, int] | None:
    """Return the columns joined in the texts of `row`, and their approximate size in bytes.

    None if a value contains a separator, which no value written by Sheaf does. The first of `names`
    must be a column without empty texts.
    """
    values: Columns = {}
    size = 0
    if row[0] is None:  # no rows
        return {name: [] for name in names}, 0
    count = row[0].count(_END) + 1
    for name, text in zip(names, row, strict=True):
        if text is None:
            return None
        first = text[: text.find(_END)] if count > 1 else text
        if text == _END.join([first] * count):  # all values are equal, such as the kind, or NULL
            values[name] = _values(name, [first], first == _NULL) * count
            size += count * _POINTER_BYTES
            continue
        texts = text.split(_END)
        if len(texts) != count:
            return None
        values[name] = _values(name, texts, _NULL in text)
        size += len(text) + count * _VALUE_BYTES
    return values, size


def join_row(names: Sequence[str]) -> str:
    """Return an expression that joins the columns of a row into one text, for `split_row`."""
    return f"concat_ws('{_END}', {', '.join(map(_text, names))})"


def split_row(wanted: tuple[str, ...], names: tuple[str, ...], text: str) -> dict[str, Any] | None:
    """Return the wanted columns of a row, whose text joins `names`; None as in `split_columns`."""
    texts = text.split(_END)
    if len(texts) != len(names):
        return None
    return {
        name: None if (part := texts[place]) == _NULL else parse(part)
        for name, place, parse in _find_parsers(wanted, names)
    }


@cache
def _find_parsers(
    wanted: tuple[str, ...], names: tuple[str, ...]
) -> list[tuple[str, int, Callable[[str], Any]]]:
    """Return the place of each wanted column among the names, and the parser of its texts."""
    parsers: dict[str, Callable[[str], Any]] = {**_PARSERS, "VARCHAR": str, "BIGINT": int}
    types = {name: _LISTS if _TYPES[name].endswith(_LISTS) else _TYPES[name] for name in wanted}
    return [(name, names.index(name), parsers[types[name]]) for name in wanted]


def _text(name: str) -> str:
    type_, text = _TYPES[name], f"{name}::VARCHAR"
    if type_.endswith(_LISTS):
        text = f"array_to_string({name}, '{_INNER}')"
    elif type_ == "BLOB":
        text = f"hex({name})"
    elif type_ == "VARCHAR":
        text = name
    # Each function in a statement adds planning time.
    return text if name in _FILLED else f"coalesce({text}, '{_NULL}')"


def _values(name: str, texts: list[str], nulls: bool) -> list[Any]:
    type_ = _TYPES[name]
    if type_ == "VARCHAR":
        return [None if text == _NULL else text for text in texts] if nulls else texts
    if type_ == "BIGINT":
        return [None if t == _NULL else int(t) for t in texts] if nulls else [*map(int, texts)]
    # Sets, numbers of publishes and the like repeat: each is converted once.
    parse = _PARSERS[_LISTS if type_.endswith(_LISTS) else type_]
    values: dict[str, Any] = {text: parse(text) for text in {*texts} - {_NULL}}
    if nulls:
        values[_NULL] = None
    return [values[text] for text in texts]


def _time(text: str) -> datetime | str:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text  # a time beyond Python's range; DuckDB's client gives the text as well


_PARSERS: dict[str, Callable[[str], Any]] = {
    "INTEGER": int,
    "SMALLINT": int,
    "BOOLEAN": lambda text: text == "true",
    "TIMESTAMP": _time,
    "BLOB": bytes.fromhex,
    _LISTS: lambda text: text.split(_INNER) if text else [],
}
