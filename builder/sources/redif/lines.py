"""Attributes: lines of the form `Name: value` with the lines that continue them.

The digests of a template's text, by which a changed template is known.

They are taken over its lines without trailing white space, blank lines, comments and end-of-file
marks, each ended by LF, as UTF-8. So another encoding or line end, blank lines, comments and a move
to another file make no difference.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from builder.sources.redif import template_text
from builder.sources.redif.specification import NAMES

END_MARK = "\x1a"
"""^Z, with which DOS ended a text. A line of it alone is left out."""


def normalize_line_ends(text: str) -> str:
    """Return a text in which CRLF, LF or CR end a line with LF for each."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def is_content(line: str) -> bool:
    """Tell whether a line without trailing white space is any of the template's text."""
    return bool(line) and line[0] != "#" and line != END_MARK


def lines_digest(lines: Iterable[str]) -> tuple[str, str]:
    """Return the MD5 and the SHA-256 of lines that count, in hexadecimal digits."""
    data = _encode_lines(lines)
    return _md5(data), hashlib.sha256(data).hexdigest()


def reference_md5(data: bytes) -> str:
    """Return the MD5 that the reference parser gives to lines without a byte order mark.

    It takes them for windows-1252, so that it differs where they are UTF-8 beyond ASCII.
    """
    text = normalize_line_ends(template_text.decode_reference(data))
    lines = map(str.rstrip, text.split("\n"))
    return _md5(_encode_lines(filter(is_content, lines)))


def to_base64(md5: str) -> str:
    """Return an MD5 as the reference parser writes it: in base64 without padding."""
    return base64.b64encode(bytes.fromhex(md5)).decode("ascii").rstrip("=")


def _encode_lines(lines: Iterable[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


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
