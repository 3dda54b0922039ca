"""Keys: what a row of the table of the configuration's keys is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the configuration: name, default, test of a value, what is expected, meaning.

    `problem` narrows down what is wrong with a value of many parts (see rule.problem).
    """

    name: str
    default: Any
    test: Callable[[Any], bool]
    expected: str
    meaning: str
    problem: Callable[[Any], tuple[str, Any, str] | None] | None = None
