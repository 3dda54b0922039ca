"""Keys: a row of the table of the configuration's keys."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A key of the configuration: name, default, test of a value, what is expected, meaning.

    `problem` returns the wrong part of a value, that part's value, and what was expected there.
    `complete` adds the default parts to a valid value.
    """

    name: str
    default: Any
    test: Callable[[Any], bool]
    expected: str
    meaning: str
    problem: Callable[[Any], tuple[str, Any, str] | None] | None = None
    complete: Callable[[Any], Any] = _same
