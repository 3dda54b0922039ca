"""Configuration keys, and the forms of their values: numbers, lists, tables of parts, rules."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

Fault = tuple[str, Any, str]
"""The wrong part of a value such as `[0].hosts`, that part's value, what is expected there."""


@dataclass(frozen=True, slots=True)
class Field:
    """A configuration key, or a part of a table: default, test of a value, expected values.

    `problem` returns the fault of a part of a value, or None if the whole value is the fault.
    `complete` adds the default parts to a valid value. Only keys have a name and a meaning.
    """

    default: Any
    test: Callable[[Any], bool]
    expected: str
    problem: Callable[[Any], Fault | None] = lambda _: None
    complete: Callable[[Any], Any] = lambda value: value
    name: str = ""
    meaning: str = ""

    def find_fault(self, value: Any) -> Fault | None:
        """Return the fault of a value; None if it is valid."""
        return None if self.test(value) else self.problem(value) or ("", value, self.expected)


def row(name: str, field: Field, meaning: str) -> Field:
    """Return a configuration key: the field with its name and its meaning."""
    return replace(field, name=name, meaning=meaning)


def flag(default: bool | None) -> Field:
    """Return a field that is true or false."""
    return Field(default, lambda v: isinstance(v, bool), "true or false")


def between(low: int, high: int) -> Callable[[Any], bool]:
    """Return a test for whole numbers from `low` to `high`."""
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and low <= v <= high


def number(default: object, low: int, high: int, unit: str = "a number") -> Field:
    """Return a field of whole numbers from `low` to `high`, which is not told for bytes."""
    end = "" if "bytes" in unit else f" to {high}"
    return Field(default, between(low, high), f"{unit} from {low}{end}")


def seconds(default: object, low: float, high: float) -> Field:
    """Return a field of seconds from `low` to `high`, which may be fractions."""
    return Field(
        default,
        lambda v: isinstance(v, int | float) and not isinstance(v, bool) and low <= v <= high,
        f"seconds from {low} to {high}",
    )


def choice(*names: str) -> Field:
    """Return a field of one of these names; the first is its default."""
    return Field(names[0], lambda v: v in names, f"{', '.join(names[:-1])} or {names[-1]}")


def list_of(
    test: Callable[[Any], Any], expected: str, default: Iterable[Any] = (), least: int = 0
) -> Field:
    """Return a field of lists of values that pass `test`, of at least `least` of them."""
    return Field(
        list(default),
        lambda v: isinstance(v, list) and len(v) >= least and all(map(test, v)),
        f"a list of {expected}",
    )


def some_of(default: list[str], *names: str) -> Field:
    """Return a field of a list of some of these names."""
    return list_of(names.__contains__, ", ".join(names), default)


def table_of(is_name: Callable[[str], Any], test: Callable[[Any], Any], expected: str) -> Field:
    """Return a field of tables whose names pass `is_name`, and whose values pass `test`."""
    return Field(
        {},
        lambda v: isinstance(v, dict) and all(is_name(k) and test(v[k]) for k in v),
        f"a table {expected}",
    )


def optional(test: Callable[[Any], bool], expected: str) -> Field:
    """Return a field that is empty by default."""
    return Field("", lambda v: v == "" or test(v), f"{expected}, or empty")


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a table, by name; each may be missing. Messages call the names `noun`."""

    fields: Mapping[str, Field]
    noun: str = "keys"

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

    def problem(self, value: Any) -> Fault | None:
        """Return the fault of the first wrong field; None if there is none, or no table.

        The field is written as a suffix of the key: `.files`.
        """
        if not isinstance(value, dict):
            return None
        for name, part in value.items():
            if name not in self.fields:
                return f".{name}", part, f"one of the {self.noun} {', '.join(self.fields)}"
            if (fault := self.fields[name].find_fault(part)) is not None:
                place, wrong, expected = fault
                return f".{name}{place}", wrong, expected
        return None

    def complete(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table with defaults for missing fields."""
        return {**self.defaults(), **value}

    def row(self, name: str, meaning: str) -> Field:
        """Return the key of this table, whose defaults are filled in."""
        form = self.part(self.expectation)
        return replace(
            form, default=self.defaults(), complete=self.complete, name=name, meaning=meaning
        )

    def part(self, expected: str) -> Field:
        """Return a field of such tables, empty by default."""
        return Field({}, self.is_valid, expected, self.problem)

    def rules(self, expected: str, find_lack: Callable[[Mapping[str, Any]], str]) -> Field:
        """Return a field of a list of such tables, in which nothing is missing.

        `find_lack` returns what else is expected of a table, or an empty text.
        """

        def find(value: Any) -> Fault | None:
            for number, rule in enumerate(value if isinstance(value, list) else ()):
                fault = self.problem(rule)
                if not isinstance(rule, dict):
                    fault = "", rule, f"a table with {expected}"
                elif fault is None and (lack := find_lack(rule)):
                    fault = "", rule, lack
                if fault is not None:
                    return f"[{number}]{fault[0]}", fault[1], fault[2]
            return None

        return Field(
            [],
            lambda v: isinstance(v, list) and find(v) is None,
            f"a list of tables, each with {expected}",
            find,
        )
