"""Fields: keys of the configuration whose value is a table of named parts, each with a default."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a table: default, test of a value, what is expected."""

    default: Any
    test: Callable[[Any], bool]
    expected: str


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a table, by name. A table may leave out any of them."""

    fields: Mapping[str, Field]

    @property
    def expectation(self) -> str:
        """What a table must be, for people."""
        parts = (f"{name} ({field.expected})" for name, field in self.fields.items())
        return f"a table of {', '.join(parts)}"

    def defaults(self) -> dict[str, Any]:
        """Return a table of all defaults."""
        return {name: field.default for name, field in self.fields.items()}

    def is_valid(self, value: Any) -> bool:
        """Tell whether `value` is a table of these fields, or of some of them."""
        return isinstance(value, dict) and self.problem(value) is None

    def problem(self, value: Any) -> tuple[str, Any, str] | None:
        """Return the first wrong field, its value and what was expected; None if none is known.

        The field is written as it follows the key: `.files`.
        """
        if not isinstance(value, dict):
            return None
        for name, given in value.items():
            if name not in self.fields:
                return f".{name}", given, f"one of the keys {', '.join(self.fields)}"
            if not self.fields[name].test(given):
                return f".{name}", given, self.fields[name].expected
        return None

    def complete(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return a table with the defaults of the fields that `value` leaves out."""
        return {**self.defaults(), **value}
