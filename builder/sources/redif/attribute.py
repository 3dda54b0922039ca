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


_made = partial(tuple.__new__, Attribute)  # in half the time of Attribute itself


def attributes_of(text: str, line: int) -> tuple[list[Attribute], list[str]]:
    """Return the attributes of a template that begins at `line`, and the lines that count.

    A line that begins with a name and a colon, in the first column, begins an attribute, unless it
    is a URL; all others continue the last one. Blank lines, comments (`#` in the first column) and
    lone end-of-file marks end nothing and are no part of a value.
    """
    found: list[Attribute] = []
    kept: list[str] = []
    name, begun, more = "", line, [""]
    for number, raw in enumerate(text.split("\n"), line):
        content = raw.rstrip()
        if not content or content[0] == "#" or content == END_MARK:
            continue
        kept.append(content)
        head, colon, tail = content.partition(":")
        if not colon or not (head in NAMES or _NAME.fullmatch(head)) or tail[:2] == "//":
            more.append(content)
            continue
        if name:
            found.append(_made((name, begun, more[0] if len(more) == 1 else _joined(more))))
        name, begun, more = head, number, [tail.lstrip()]
    if name:
        found.append(_made((name, begun, _joined(more))))
    return found, kept


def _joined(lines: list[str]) -> str:
    return "\n".join(lines).lstrip() if not lines[0] else "\n".join(lines)
