"""JSON documents as dataclasses: their values are checked against the types of the fields."""

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def build(kind: type[T], document: Any) -> T:
    """Return the dataclass `kind` of a document, as json.loads returns it.

    Nested dataclasses, tuples and paths are built too. Members that are no fields are ignored.
    Raises ValueError with the place in the document: "... - at `$.sources[3].bytes`".
    """
    return msgspec.convert(document, kind, dec_hook=_build_other)


def _build_other(kind: type[Any], value: Any) -> Any:
    return kind(value)
