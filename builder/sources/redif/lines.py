"""The lines of a template: its attributes, and the digests that reveal a change.

An attribute is a line of the form `Name: value`, with the lines that continue it.

Digests include lines without trailing white space, each ended by LF, as UTF-8. They exclude blank
lines, comments and end-of-file marks. So another encoding or line end, blank lines, comments and a
move to another file make no difference.
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
"""^Z, the end of a text in DOS. A line of it alone is ignored."""


def normalize_line_ends(text: str) -> str:
    """Replace CRLF and CR by LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def is_content(line: str) -> bool:
    """Tell whether a line without trailing white space belongs to the template's content."""
    return bool(line) and line[0] != "#" and line != END_MARK


def lines_digest(lines: Iterable[str]) -> tuple[str, str]:
    """Return the MD5 and the SHA-256 of content lines, in hexadecimal digits."""
    data = _encode_lines(lines)
    return _md5(data), hashlib.sha256(data).hexdigest()


def reference_md5(data: bytes) -> str:
    """Return the MD5 of the reference parser for lines without a byte order mark.

    It decodes them as windows-1252, so its MD5 differs for UTF-8 beyond ASCII.
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
    """One attribute of a template, as written."""

    name: str
    line: int
    """The line of the name in the file."""
    value: str
    """Its lines, joined by LF, without trailing white space; the first without leading."""


_build_attribute = partial(tuple.__new__, Attribute)  # takes half the time of Attribute(...)


def parse_attributes(text: str, line: int) -> tuple[list[Attribute], list[str]]:
    """Return the attributes of a template that begins at `line`, and its content lines.

    A name and a colon in the first column begin an attribute, unless the line is a URL. Other lines
    continue the last attribute. Blank lines, comments (`#` in the first column) and lone
    end-of-file marks end nothing and belong to no value.
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
