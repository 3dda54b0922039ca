"""Configuration keys whose value is a table of named parts, each with a default."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a table: default, test of a value, expected values."""

    default: Any
    test: Callable[[Any], bool]
    expected: str


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a table, by name. All fields are optional."""

    fields: Mapping[str, Field]

    @property
    def expectation(self) -> str:
        """The expected form of a table, for people."""
        parts = (f"{name} ({field.expected})" for name, field in self.fields.items())
        return f"a table of {', '.join(parts)}"

    def defaults(self) -> dict[str, Any]:
        """Return a table of all defaults."""
        return {name: field.default for name, field in self.fields.items()}

    def is_valid(self, value: Any) -> bool:
        """Return whether `value` is a table of these fields, or of some of them."""
        return isinstance(value, dict) and self.problem(value) is None

    def problem(self, value: Any) -> tuple[str, Any, str] | None:
        """Return the first wrong field, its value and the expected values; None if unknown.

        The field is written as a suffix of the key: `.files`.
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
        """Return the table with defaults for missing fields."""
        return {**self.defaults(), **value}
