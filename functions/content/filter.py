"""The sieve: which of the captures that were found become lines.

A filter is `[!][=~]field:value`: `=` for the whole value, `~` for a regular expression that matches
anywhere, `!` for the contrary. With neither it is what the server has it as whose name the field
is called by: pywb's names look for a part, the Internet Archive's (ALIASES) for an expression that
matches the whole. Expressions are RE2's: they take no time that a text's length does not justify.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from functions.content.capture import CaptureRow
from functions.content.cdx_line import ALIASES, FIELDS, value
from functions.snapshot.errors import SheafError

LONGEST = 500
"""Characters of a filter."""

Matching = Callable[[str, Sequence[str], bool], Sequence[bool]]
"""Tells of texts which an expression matches, wholly (True) or anywhere (seam.Searching)."""


class NoSieve(SheafError):
    """That is no filter, or nothing to collapse by; the text is one line that says why."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on a field; `how` is `=`, `~`, "" for a part, or `:` for a whole expression."""

    field: str
    how: str
    text: str
    is_negated: bool

    def matches(self, captures: Sequence[CaptureRow], matching: Matching) -> Sequence[bool]:
        """Tell of each capture whether it passes. Raises QueryError for no expression."""
        values = [value(capture, self.field) for capture in captures]
        if self.how in ("~", ":"):
            found = matching(self.text, values, self.how == ":")
        elif self.how == "=":
            found = [text == self.text for text in values]
        else:
            found = [self.text in text for text in values]
        return [one is not self.is_negated for one in found]


def parse(text: str, *, whole: bool = False) -> Filter:
    """Return the filter that a text is. Raises NoSieve.

    With `whole`, a value without `=` or `~` is an expression for all of any field, as the Internet
    Archive's server has it; else for all of the fields with its names, and part of the others.
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
    """Tell whether a field is called so, by either name."""
    return name in FIELDS or name in ALIASES


@dataclass(frozen=True, slots=True)
class Collapse:
    """Of neighbours with the same value, or the same first characters of it, the first stays."""

    field: str
    length: int | None = None

    def mark(self, capture: CaptureRow) -> str:
        """Return what is the same for captures of which one stays: 16 hexadecimal digits."""
        text = value(capture, self.field)[: self.length]
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def collapse(text: str) -> Collapse:
    """Return what `field` or `field:length` is. Raises NoSieve."""
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
