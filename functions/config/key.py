"""A row of the table of configuration keys."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A configuration key: name, default, test of a value, expected values, meaning.

    `problem` returns the wrong part of a value, that part's value, and the values expected there.
    `complete` adds the default parts to a valid value.
    """

    name: str
    default: Any
    test: Callable[[Any], bool]
    expected: str
    meaning: str
    problem: Callable[[Any], tuple[str, Any, str] | None] | None = None
    complete: Callable[[Any], Any] = _same
