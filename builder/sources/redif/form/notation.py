"""Notation: the lines of a template, its attributes, and the forms of their values.

An attribute is a line of the form `Name: value`, with the lines that continue it. Its kind
requires a form of the value. Handles name archives, series, documents, persons and institutions.

Digests reveal a change. They include lines without trailing white space, each ended by LF, as
UTF-8. They exclude blank lines, comments and end-of-file marks.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache, partial
from typing import NamedTuple

from builder.sources.redif.form.specification import NAMES
from functions.archive.redif_text import normalize_line_ends
from functions.snapshot.oai_name import canonical_handle

END_MARK = "\x1a"
"""^Z, the end of a text in DOS. A line of it alone is ignored."""

_ARCHIVE = r"(?:RePEc|ReLIS|mapin):[a-z]{3}"
_SERIES = _ARCHIVE + r":[a-z\d]{6}"
_HANDLE_CODE = r"[!\"%&'()*+,\-./:<>=?@\\_`{}~\da-z]+"
HANDLE_FORMS: dict[str, re.Pattern[str]] = {
    "archive": re.compile(_ARCHIVE, re.IGNORECASE),
    "series": re.compile(_SERIES, re.IGNORECASE),
    "document": re.compile(f"{_SERIES}:{_HANDLE_CODE}", re.IGNORECASE),
    "institution": re.compile(_ARCHIVE + r":[a-z\d]{7}", re.IGNORECASE),
    "person": re.compile(_ARCHIVE + r":\d{4}-[01]\d-[0-3]\d:\S+|p[a-z]+\d+", re.IGNORECASE),
}
"""The form of a whole handle, by kind."""


def is_content(line: str) -> bool:
    """Tell whether a line without trailing white space belongs to the template's content."""
    return bool(line) and line[0] != "#" and line != END_MARK


def lines_digest(lines: Iterable[str]) -> tuple[str, str]:
    """Return the MD5 and the SHA-256 of content lines, in hexadecimal digits."""
    data = _encode_lines(lines)
    return _md5(data), hashlib.sha256(data).hexdigest()


def reference_md5(data: bytes) -> str:
    """Return the MD5 of the reference parser for lines without a byte order mark.

    It decodes them as windows-1252 (ReDIF-perl 2.69), so its MD5 differs for UTF-8 beyond ASCII.
    """
    text = normalize_line_ends(data.decode("cp1252", "ignore"))
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
    attributes: list[Attribute] = []
    content_lines: list[str] = []
    more: list[str] = []
    name, begun, value = "", line, ""
    # Files that were joined have byte order marks within them.
    for number, raw in enumerate(text.replace("\ufeff", "").split("\n"), line):
        content = raw.rstrip()
        if not content or content[0] == "#" or content == END_MARK:
            continue
        content_lines.append(content)
        head, colon, tail = content.partition(":")
        if not colon or not (head in NAMES or _NAME.fullmatch(head)) or tail[:2] == "//":
            more.append(content)
            continue
        if more:
            value, more = _join_lines(value, more), []
        attributes.append(_build_attribute((name, begun, value)))
        name, begun, value = head, number, tail.lstrip()
    attributes.append(_build_attribute((name, begun, _join_lines(value, more))))
    return attributes[1:], content_lines


def _join_lines(value: str, more: list[str]) -> str:
    return "\n".join((value, *more)) if value else "\n".join(more).lstrip()


_URL_HEAD = re.compile(r"URL:", re.IGNORECASE)
_SIZE = re.compile(
    r"([\d.,]{1,20})\s*(bytes?|b|k|kb|kbytes?|kilobytes?|m|mb|mbytes?)?\.?", re.IGNORECASE
)
_SEPARATORS = re.compile(r"[,;:.\s]+")
_CODE = r"[A-Za-z]\d{0,2}"

_FORMS: dict[str, re.Pattern[str]] = {
    "url": re.compile(
        r"(?:https?|ftp|gopher)://[^/?#\s:<>{}|\\^\[\]]+(?::\d+)?(?:[/?#]\S*)?", re.I
    ),
    "email": re.compile(r"[\w#+.=%&'*/!?^{|}~-]+@[\w.=-]+\.[\w=-]+"),
    "date": re.compile(r"\d{4}(?:-(?:0\d|1[0-2])(?:-[0-3]\d)?|(?:0\d|1[0-2])(?:[0-3]\d)?)?"),
    "jel": re.compile(rf"{_CODE}(?:[,;:.\s]+{_CODE})*[,;:.\s]*"),
    "mime": re.compile(r"[\w.+-]+/[\w.+-]*(?:\s*;.*)?"),
    "status": re.compile(r"(?:forthcoming|published).*", re.IGNORECASE),
    "type": re.compile(r"ReDIF-(?:Paper|Article|Chapter|Book|Software)(?: 1\.0)?", re.IGNORECASE),
    "doi": re.compile(r"(?:doi:\s*|https?://(?:dx\.)?doi\.org/)?10\.\d{4,9}/\S+", re.IGNORECASE),
    **HANDLE_FORMS,
}
KINDS: dict[str, str] = {
    "url": "a URL (http, https, ftp or gopher)",
    "email": "an e-mail address",
    "date": "a date (yyyy-mm-dd, yyyy-mm or yyyy)",
    "jel": "JEL codes",
    "mime": "a MIME type",
    "status": "a status (it begins with Published or Forthcoming)",
    "type": "a type of templates (as ReDIF-Paper)",
    "doi": "a DOI",
    "archive": "an archive's handle (RePEc:aaa)",
    "series": "a series' handle (RePEc:aaa:ssssss)",
    "document": "a document's handle (RePEc:aaa:ssssss:code)",
    "institution": "an institution's handle (RePEc:edi:sssssss)",
    "person": "a person's handle or short-id",
}
"""The name of each kind, for people."""


def normalize(value: str, kind: str) -> str | None:
    """Return a value in the canonical form of its kind, or None if it does not fit.

    Dates get hyphens, JEL codes capitals and single spaces, media types lower case. Handles become
    canonical, sizes bytes if possible. The caller removes white space around and within.
    """
    if kind == "size":
        in_bytes = parse_size(value)
        return collapse_space(value) if in_bytes is None else f"{in_bytes} bytes"
    if _FORMS[kind].fullmatch(value) is None:
        return None
    if kind == "url":
        return value
    if kind == "date":
        return value if "-" in value else "-".join(filter(None, (value[:4], value[4:6], value[6:])))
    if kind == "jel":
        return " ".join(_SEPARATORS.split(value.upper())).strip()
    if kind == "mime":
        return value.lower()
    return canonical_handle(value) if kind in HANDLE_FORMS else value


normalize_cached = lru_cache(1 << 12)(normalize)
"""`normalize` with a cache, for short values: dates, media types and institutions recur."""
SHORT = 120
"""Characters of a value that is worth caching."""


def collapse_space(value: str) -> str:
    """Return a value with each run of white space, line ends included, as one space.

    White space means tabs, line ends, and normal and non-breaking spaces.
    """
    if "\n" in value:
        value = " ".join(map(str.strip, value.split("\n")))
    for character in "\t\r\u00a0":
        if character in value:
            value = value.replace(character, " ")
    while "  " in value:
        value = value.replace("  ", " ")
    return value.strip(" ")


def clean_url(value: str) -> str:
    """Clean a URL by ReDIF's rule: remove all white space and a leading `URL:`."""
    joined = "".join(value.split())
    return _URL_HEAD.sub("", joined, count=1) if joined[:4].upper() == "URL:" else joined


def parse_size(value: str) -> int | None:
    """Return a File-Size in bytes, None if it has no number.

    The unit is kilobytes of 1,024 bytes, unless it names another.
    """
    match = _SIZE.fullmatch(collapse_space(value))
    if match is None:
        return None
    unit = (match[2] or "k").lower()
    digits = match[1].replace(",", "")
    try:
        number = float(digits)
    except ValueError:
        return None
    return round(number * (1 if unit[0] == "b" else 1 << 20 if unit[0] == "m" else 1 << 10))
