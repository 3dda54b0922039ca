"""Configuration keys: a row of their table, and keys whose value has several parts.

A value is a table of named parts, each with a default, or the rules of an operator's own sets
(`sets.rules`).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from functions.snapshot import oai_name

RESERVED_SETS = ("domain", "mime", "collection")
"""First levels of generated sets, not allowed in rules."""

_TYPE = r"[a-z0-9!#$&^_.+\-]+"


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


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a table: default, test of a value, expected values."""

    default: Any
    test: Callable[[Any], bool]
    expected: str


def row(name: str, field: Field, meaning: str) -> ConfigKey:
    """Return the key of a field that is no part of a table."""
    return ConfigKey(name, field.default, field.test, field.expected, meaning)


def flag(default: bool | None) -> Field:
    """Return a field that is true or false."""
    return Field(default, lambda v: isinstance(v, bool), "true or false")


def between(low: int, high: int) -> Callable[[Any], bool]:
    """Return a test for whole numbers from `low` to `high`."""
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and low <= v <= high


def number(default: object, low: int, high: int, unit: str = "a number") -> Field:
    """Return a field of whole numbers from `low` to `high`; a limit of bytes is not named."""
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


def some_of(default: list[str], *names: str) -> Field:
    """Return a field of a list of some of these names."""
    test = names.__contains__
    expected = f"a list of {', '.join(names)}"
    return Field(default, lambda v: isinstance(v, list) and all(map(test, v)), expected)


def optional(test: Callable[[Any], bool], expected: str) -> Field:
    """Return a field that is empty by default."""
    return Field("", lambda v: v == "" or test(v), f"{expected}, or empty")


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

    def row(self, name: str, meaning: str) -> ConfigKey:
        """Return the key of this table."""
        test, expected = self.is_valid, self.expectation
        return ConfigKey(
            name, self.defaults(), test, expected, meaning, self.problem, self.complete
        )


def _like(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE | re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


CONDITIONS: dict[str, tuple[Callable[[str], bool], str]] = {
    # condition: test of each of its values, and the expected values
    "hosts": (
        _like(r"[a-z0-9_]([a-z0-9_.\-]*[a-z0-9_\-])?|[0-9a-f:.]*:[0-9a-f:.]*"),
        "host names such as idnes.cz, internationalized ones as punycode",
    ),
    "url_prefixes": (
        lambda text: bool(re.match(r"[A-Za-z][A-Za-z0-9+\-]*:", text)) and text.isprintable(),
        "URL prefixes with the scheme, such as http://www.idnes.cz/news/",
    ),
    "types": (_like(rf"{_TYPE}/(\*|{_TYPE})"), "media types such as text/html or image/*"),
    "languages": (_like(r"[a-z]{1,8}"), "language codes without a region, such as cs or en"),
    "collections": (
        lambda text: all(text.split(":")) and text.isprintable(),
        "collections as in `sheaf ingest --collection`, such as serials:novinky",
    ),
}
_ONE_OR_MORE = f"one or more of {', '.join(CONDITIONS)}"
SET_RULES_EXPECTED = f"a list of tables, each with set and {_ONE_OR_MORE}"


def set_rules_problem(value: Any) -> tuple[str, Any, str] | None:
    """Return the fault of a value of `sets.rules`; None if it is valid.

    The fault is its place, such as `[0].hosts`, the value there, and the expected values.
    """
    if not isinstance(value, list):
        return "", value, SET_RULES_EXPECTED
    found = (_rule_problem(f"[{number}]", rule) for number, rule in enumerate(value))
    return next((one for one in found if one is not None), None)


def _rule_problem(where: str, rule: Any) -> tuple[str, Any, str] | None:
    if not isinstance(rule, dict):
        return where, rule, f"a table with set and {_ONE_OR_MORE}"
    spec = rule.get("set")
    root = spec.partition(":")[0] if isinstance(spec, str) and oai_name.is_set(spec) else ""
    if not root or root in RESERVED_SETS:
        reserved = f"{', '.join(RESERVED_SETS[:-1])} or {RESERVED_SETS[-1]}"
        expected = f"a setSpec such as topic:news, whose first level is not {reserved}"
        if "set" not in rule:
            return where, rule, f"a set: {expected}"
        return f"{where}.set", spec, expected
    for name, values in rule.items():
        if name == "set":
            continue
        if name not in CONDITIONS:
            return f"{where}.{name}", values, f"one of the keys set, {', '.join(CONDITIONS)}"
        fits, what = CONDITIONS[name]
        texts = isinstance(values, list) and all(isinstance(one, str) for one in values)
        if not (texts and values and all(map(fits, values))):
            return f"{where}.{name}", values, f"a list of {what}"
    return (where, rule, f"{_ONE_OR_MORE} besides the set") if len(rule) == 1 else None
