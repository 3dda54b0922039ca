"""Attributes: lines of the form `Name: value` with the lines that continue them."""

import re
from functools import partial
from typing import NamedTuple

from builder.sources.redif.digest import END_MARK
from builder.sources.redif.specification import NAMES

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


class Attribute(NamedTuple):
    """One attribute of a template, as it stands there."""

    name: str
    """As written."""
    line: int
    """Of the name, in the file."""
    value: str
    """Its lines, each without trailing white space, joined by LF; the first without leading."""


_build_attribute = partial(tuple.__new__, Attribute)  # in half the time of Attribute itself


def parse_attributes(text: str, line: int) -> tuple[list[Attribute], list[str]]:
    """Return the attributes of a template that begins at `line`, and the lines that count.

    A line that begins with a name and a colon, in the first column, begins an attribute, unless it
    is a URL; all others continue the last one. Blank lines, comments (`#` in the first column) and
    lone end-of-file marks end nothing and are no part of a value.
    """
    found: list[Attribute] = []
    kept: list[str] = []
    more: list[str] = []
    name, begun, value = "", line, ""
    for number, raw in enumerate(text.split("\n"), line):
        content = raw.rstrip()
        if not content or content[0] == "#" or content == END_MARK:
            continue
        kept.append(content)
        head, colon, tail = content.partition(":")
        if not colon or not (head in NAMES or _NAME.fullmatch(head)) or tail[:2] == "//":
            more.append(content)
            continue
        if more:
            value, more = _join_lines(value, more), []
        found.append(_build_attribute((name, begun, value)))
        name, begun, value = head, number, tail.lstrip()
    found.append(_build_attribute((name, begun, _join_lines(value, more))))
    return found[1:], kept


def _join_lines(value: str, more: list[str]) -> str:
    return "\n".join((value, *more)) if value else "\n".join(more).lstrip()
