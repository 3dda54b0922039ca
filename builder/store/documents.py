"""JSON documents as dataclasses: their values are checked against the types of the fields."""

import json
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def build(kind: type[T], document: Any) -> T:
    """Return the dataclass `kind` of a document, as json.loads returns it.

    Nested dataclasses, tuples and paths are built too. Members that are no fields are ignored.
    Raises ValueError with the place in the document: "... - at `$.sources[3].bytes`".
    """
    return msgspec.convert(document, kind, dec_hook=_build_other)


def write_indented(document: Any) -> bytes:
    """Return JSON in UTF-8 with an indent of one, and names in order; lone surrogates are escaped.

    The bytes are those of json.dumps, which writes such JSON by a slow way of its own.
    """

    def dump(indent: int | None) -> bytes:
        text = json.dumps(document, ensure_ascii=False, indent=indent, sort_keys=True)
        return text.encode("utf-8", "backslashreplace")

    try:
        return msgspec.json.format(dump(None), indent=1)
    except msgspec.DecodeError:  # it takes no lone surrogates
        return dump(1)


def _build_other(kind: type[Any], value: Any) -> Any:
    return kind(value)
