"""Filters of templates: escaping, look-ups, and characters of XML."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from markupsafe import Markup
from markupsafe import escape as _markup

from functions.oai.format import find_file
from functions.snapshot.errors import ConfigurationError, describe_failure

# XML 1.0 (section 2.2) forbids these even as references: one such byte spoils a whole document.
_CONTROLS = bytes(b for b in range(0x20) if b not in b"\t\n\r")
_NONCHARACTERS = ("\ufffe".encode(), "\uffff".encode())
_REPLACEMENT = "\ufffd".encode()
_FIRST = _REPLACEMENT[:1]
"""The first byte of each of them in UTF-8."""

_SPLIT = "\x1f"
_SIMPLE = frozenset({str, int, type(None)})
"""Types that `escape` prints like `str`, except for the escaping."""


def has_markup(text: str) -> bool:
    """Return whether a text has characters that are to be escaped.

    Most have none, and five searches take half of the time of five replacements.
    """
    return "&" in text or "<" in text or ">" in text or '"' in text or "'" in text


def escape(value: Any) -> str:
    """Escape like markupsafe, but to a plain text: making Markup takes longer than escaping.

    Markup is returned unchanged.
    """
    if value.__class__ is str:
        text: str = value
        if has_markup(text):
            text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            return text.replace('"', "&#34;").replace("'", "&#39;")
        return text
    return value if value.__class__ is Markup else str(_markup(value))


def escape_all(column: Sequence[Any]) -> Sequence[str]:
    """Return `escape` of each value, in one step if possible."""
    texts = column
    try:
        joined = _SPLIT.join(column)
    except TypeError:
        if not {*map(type, column)} <= _SIMPLE:
            return [escape(value) for value in column]
        texts = [value if value.__class__ is str else str(value) for value in column]
        joined = _SPLIT.join(texts)
    if not has_markup(joined):
        return texts
    parts = escape(joined).split(_SPLIT)
    return parts if len(parts) == len(column) else [escape(value) for value in column]


def attribute(value: str) -> Markup:
    """Escape a text so that an attribute keeps its line breaks (XML 1.0, section 3.3.3)."""
    return Markup(attribute_text(value))


def attribute_text(value: str) -> str:
    """Return `attribute` as a plain text."""
    text = escape(value)
    for character in "\t\n\r":
        if character in text:
            text = text.replace(character, f"&#{ord(character)};")
    return str(text)


def attributes(column: Sequence[Any]) -> Sequence[str]:
    """Return `attribute` of each value, in one step if possible."""
    texts = escape_all(column)
    if any(character in text for text in texts for character in "\t\n\r"):
        return [attribute_text(value) for value in column]
    return texts


@lru_cache(maxsize=1024)
def parts(value: str | None) -> tuple[str, ...]:
    """Return the parts of a comma-separated text, without empty ones."""
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


def clean(texts: Iterable[str]) -> bytes:
    """Return texts joined in UTF-8, without characters that XML forbids."""
    # One by one, because most texts consist of characters that need no encoding.
    data = b"".join([text.encode("utf-8", "replace") for text in texts])
    if _FIRST in data:  # a search for a single byte is ten times as fast
        for character in _NONCHARACTERS:
            data = data.replace(character, _REPLACEMENT)
    return data.translate(None, _CONTROLS)


class Tables:
    """The tables of some folders, each read once. Thread-safe."""

    def __init__(self, places: Sequence[Path]):
        self._places = places
        self._rows: dict[str, Mapping[str, Any]] = {}
        self._cached = lru_cache(maxsize=4096)(self._find_entry)

    def look_up(self, value: str | None, table: str) -> str:
        """Return a table's entry for a media type, or an empty text.

        Raises ConfigurationError if the table does not exist.
        """
        return self._cached(value, table) if value else ""

    def rows(self, table: str) -> Mapping[str, Any]:
        """Return the table tables/`table`.toml. Raises ConfigurationError."""
        if table not in self._rows:
            path = find_file(self._places, "tables", f"{table}.toml")
            if path is None:
                raise ConfigurationError(f"there is no table tables/{table}.toml")
            try:
                self._rows[table] = tomllib.loads(path.read_text("utf-8"))
            except (OSError, ValueError) as error:
                raise ConfigurationError(
                    f"{path} cannot be read: {describe_failure(error)}"
                ) from error
        return self._rows[table]

    def _find_entry(self, value: str, table: str) -> str:
        rows = self.rows(table)
        exact = value.partition(";")[0].strip().lower()
        return str(rows.get(exact) or rows.get(exact.partition("/")[0] + "/*") or "")
