"""Columns: rows of a data file as DuckDB hands them over fastest, each column as one text.

DuckDB's client makes Python objects value by value, which takes longer than to read and decode
them; texts that it joins are taken apart again by one call for a column.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from functions.snapshot import schema

# No text of the store holds them: XML forbids them, even as a reference.
_NULL, _INNER, _END = "\x1e", "\x1d", "\x1f"

_POINTER_BYTES = 8
_VALUE_BYTES = 57
"""What an object in a list takes besides its characters."""

Columns = dict[str, list[Any]]

_FILLED = frozenset({"position", "sequence", "identifier", "kind", "deleted"})
"""Columns that have a value in every row."""

_TYPES = {column.name: column.type for column in schema.TABLES["copies"]}
_LISTS = "[]"


def join_columns(names: Sequence[str]) -> str:
    """Return the expressions that make one text of each column, for `parted`."""
    return ", ".join(f"string_agg({_text(name)}, '{_END}')" for name in names)


def plain(names: Sequence[str]) -> str:
    """Return the expressions that make one list of each column: slow, but of any value."""
    return ", ".join(f"list({name})" for name in names)


def split_columns(names: Sequence[str], row: Sequence[str | None]) -> tuple[Columns, int] | None:
    """Return the columns whose texts are `row`, and about how many bytes they take.

    None where a value holds what ends values, which nothing that Sheaf wrote does. The first of
    `names` must be a column without empty texts.
    """
    found: Columns = {}
    size = 0
    if row[0] is None:  # no rows
        return {name: [] for name in names}, 0
    count = row[0].count(_END) + 1
    for name, text in zip(names, row, strict=True):
        if text is None:
            return None
        first = text[: text.find(_END)] if count > 1 else text
        if text == _END.join([first] * count):  # one value for all, as of the kind, or NULL
            found[name] = _values(name, [first], first == _NULL) * count
            size += count * _POINTER_BYTES
            continue
        texts = text.split(_END)
        if len(texts) != count:
            return None
        found[name] = _values(name, texts, _NULL in text)
        size += len(text) + count * _VALUE_BYTES
    return found, size


def _text(name: str) -> str:
    type_, text = _TYPES[name], f"{name}::VARCHAR"
    if type_.endswith(_LISTS):
        text = f"array_to_string({name}, '{_INNER}')"
    elif type_ == "BLOB":
        text = f"hex({name})"
    elif type_ == "VARCHAR":
        text = name
    # Each function in a statement takes its time to plan.
    return text if name in _FILLED else f"coalesce({text}, '{_NULL}')"


def _values(name: str, texts: list[str], nulls: bool) -> list[Any]:
    type_ = _TYPES[name]
    if type_ == "VARCHAR":
        return [None if text == _NULL else text for text in texts] if nulls else texts
    if type_ == "BIGINT":
        return [None if t == _NULL else int(t) for t in texts] if nulls else [*map(int, texts)]
    # Sets, numbers of publishes and the like repeat: each is made once.
    make = _MADE[_LISTS if type_.endswith(_LISTS) else type_]
    made: dict[str, Any] = {text: make(text) for text in {*texts} - {_NULL}}
    if nulls:
        made[_NULL] = None
    return [made[text] for text in texts]


def _list(text: str) -> list[str]:
    return text.split(_INNER) if text else []


def _time(text: str) -> datetime | str:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text  # a time that Python has none for; DuckDB's client gives the text as well


_MADE: dict[str, Callable[[str], Any]] = {
    "INTEGER": int,
    "SMALLINT": int,
    "BOOLEAN": lambda text: text == "true",
    "TIMESTAMP": _time,
    "BLOB": bytes.fromhex,
    _LISTS: _list,
}
