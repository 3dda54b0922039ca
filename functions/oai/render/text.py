"""Text: what templates do to values, and what XML forbids."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urljoin

from markupsafe import Markup
from markupsafe import escape as _markup

try:  # no public name, but five times as fast as the public ones; to XML all three say the same
    from markupsafe._speedups import _escape_inner as escape_text
except ImportError:
    from html import escape as escape_text

# What XML 1.0 (section 2.2) forbids even as a reference: one such byte spoils a whole document.
_CONTROLS = bytes(b for b in range(0x20) if b not in b"\t\n\r")
_NONCHARACTERS = ("\ufffe".encode(), "\uffff".encode())
_REPLACEMENT = "\ufffd".encode()
_FIRST = _REPLACEMENT[:1]
"""The byte with which each of them begins."""
_END = "\x1f"
_MARKUP = "&<>\"'"
_SIMPLE = frozenset({str, int, type(None)})
"""Types whose texts are the same to `str`, but for the escaping."""


def escape(value: Any) -> str:
    """Escape as markupsafe does, but to a plain text."""
    if value.__class__ is str:
        return escape_text(value)
    return value if value.__class__ is Markup else str(_markup(value))


def escaped(values: Sequence[Any]) -> Sequence[str]:
    """Return values, of which none is markup, as `escape` gives each of them.

    They are escaped all at once where that can be done.
    """
    texts = values
    try:
        joined = _END.join(values)
    except TypeError:
        if not {*map(type, values)} <= _SIMPLE:
            return [escape(value) for value in values]
        texts = [value if value.__class__ is str else str(value) for value in values]
        joined = _END.join(texts)
    if not any(character in joined for character in _MARKUP):
        return texts
    parts = escape_text(joined).split(_END)
    return parts if len(parts) == len(values) else [escape(value) for value in values]


@lru_cache(maxsize=1024)
def parts(value: str | None) -> tuple[str, ...]:
    """Return the parts of a comma separated text, without empty ones."""
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


def utc(value: datetime) -> str:
    """Return a time of the store, which has no zone and is UTC, as XML Schema writes it."""
    return f"{value.isoformat()}Z"


def hexadecimal(value: bytes) -> str:
    """Return bytes as XML Schema's hexBinary has them."""
    return value.hex().upper()


def attribute(value: str) -> Markup:
    """Escape a text so that an attribute keeps its line breaks (XML 1.0, section 3.3.3)."""
    text = str(_markup(value))
    for character in "\t\n\r":
        text = text.replace(character, f"&#{ord(character)};")
    return Markup(text)


def clean(texts: Iterable[str]) -> bytes:
    """Return texts as one in UTF-8, without what XML forbids."""
    # One by one, for most of them are of characters that need no encoding.
    found = b"".join([text.encode("utf-8", "replace") for text in texts])
    if _FIRST in found:  # a single byte is looked for ten times as fast
        for character in _NONCHARACTERS:
            found = found.replace(character, _REPLACEMENT)
    return found.translate(None, _CONTROLS)


def schema(base_url: str, name: str) -> str:
    """Return where a schema of our own is to be had."""
    return urljoin(base_url, f"schema/{name}")
