"""JSON codec for dataclasses; decoding rejects values of the wrong type."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def plain(value: Any) -> Any:
    """Convert a value to JSON types; dataclass fields at their default are left out."""
    if dataclasses.is_dataclass(value):
        return {
            f.name: plain(one)
            for f in dataclasses.fields(value)
            if not _is_default(f, one := getattr(value, f.name))
        }
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    return value


def _is_default(spec: "dataclasses.Field[Any]", value: Any) -> bool:
    if spec.default_factory is not dataclasses.MISSING:
        return bool(value == spec.default_factory())
    return spec.default is not dataclasses.MISSING and bool(value == spec.default)


def build(kind: type[T], given: Any) -> T:
    """Build a dataclass of `kind` from its JSON. Raises ValueError or TypeError."""
    if not isinstance(given, dict):
        raise ValueError(f"a {kind.__name__} is not an object")
    hints = get_type_hints(kind)
    if unknown := sorted(given.keys() - hints.keys()):
        raise ValueError(f"a {kind.__name__} has no {unknown[0]}")
    return kind(**{name: _value(hints[name], name, value) for name, value in given.items()})


def _value(hint: Any, name: str, value: Any) -> Any:
    kinds = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for kind in kinds:
        if value is None and kind is type(None):
            return None
        if dataclasses.is_dataclass(kind) and value is not None:
            return build(kind, value)  # type: ignore[arg-type]
        if get_origin(kind) is tuple and isinstance(value, list):
            return tuple(_value(get_args(kind)[0], name, one) for one in value)
        plain = get_origin(kind) or kind
        if plain is Mapping and isinstance(value, dict):
            return value
        flag = isinstance(value, bool) and plain is not bool  # Python counts a bool as an int
        if isinstance(plain, type) and isinstance(value, plain) and not flag:
            return value
    raise ValueError(f"{name} has the wrong type")
