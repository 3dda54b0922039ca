"""Filters and collapsing: select the captures that become lines.

A filter is `[!][=~]field:value`. `=` compares the whole value, `~` is a regular expression that
matches anywhere, and `!` negates. Without `=` or `~`, the field's name decides. A pywb name
searches for a part. An Internet Archive name (ALIASES) takes an expression that matches the whole
value. Expressions are RE2's, so their time is linear in the length of the text.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from functions.content.capture import CaptureRow
from functions.content.cdx_line import ALIASES, FIELDS, value
from functions.snapshot.errors import SheafError

LONGEST = 500
"""Longest filter in characters."""

Matching = Callable[[str, Sequence[str], bool], Sequence[bool]]
"""Returns for each text whether an expression matches, wholly (True) or anywhere."""


class NoSieve(SheafError):
    """The filter or the collapse is invalid; the text is a one-line reason."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on a field; `how` is `=`, `~`, "" for a part, or `:` for a whole expression."""

    field: str
    how: str
    text: str
    is_negated: bool

    def matches(self, captures: Sequence[CaptureRow], matching: Matching) -> Sequence[bool]:
        """Return for each capture whether it passes.

        Raises QueryError for an invalid expression.
        """
        values = [value(capture, self.field) for capture in captures]
        if self.how in ("~", ":"):
            found = matching(self.text, values, self.how == ":")
        elif self.how == "=":
            found = [text == self.text for text in values]
        else:
            found = [self.text in text for text in values]
        return [one is not self.is_negated for one in found]


def parse(text: str, *, whole: bool = False) -> Filter:
    """Parse a filter. Raises NoSieve.

    With `whole`, a value without `=` or `~` is an expression for the whole value, as on the
    Internet Archive's server. Otherwise this holds for its field names only; other fields search
    for a part.
    """
    rest = text.removeprefix("!")
    how = rest[:1] if rest[:1] in ("=", "~") else ""
    field, colon, wanted = rest[len(how) :].partition(":")
    if len(text) > LONGEST or not colon or not is_field(field):
        raise NoSieve(
            f"expected [!][=~]field:value of up to {LONGEST} characters, by a known field"
        )
    return Filter(field, how or (":" if whole or field in ALIASES else ""), wanted, rest != text)


def is_field(name: str) -> bool:
    """Return whether a field has this name or alias."""
    return name in FIELDS or name in ALIASES


@dataclass(frozen=True, slots=True)
class Collapse:
    """Keeps the first of adjacent captures with the same value, or the same start of it."""

    field: str
    length: int | None = None

    def mark(self, capture: CaptureRow) -> str:
        """Return a hash of the value, equal for captures that collapse: 16 hexadecimal digits."""
        text = value(capture, self.field)[: self.length]
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def collapse(text: str) -> Collapse:
    """Parse `field` or `field:length`. Raises NoSieve."""
    field, colon, length = text.partition(":")
    is_number = length.isascii() and length.isdecimal() and len(length) <= 4 and int(length) > 0
    if not is_field(field) or (colon and not is_number):
        raise NoSieve("expected field or field:length, by a known field")
    return Collapse(field, int(length) if colon else None)


def apply_filters(
    captures: Sequence[CaptureRow], filters: Sequence[Filter], matching: Matching
) -> Sequence[CaptureRow]:
    """Return the captures that pass all filters."""
    for one in filters:
        if captures:
            passed = one.matches(captures, matching)
            captures = [c for c, is_in in zip(captures, passed, strict=True) if is_in]
    return captures
