"""Escaping of values for XML: one by one, in columns, and between tags."""

from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup
from markupsafe import escape as _markup

_END = "\x1f"
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
        joined = _END.join(column)
    except TypeError:
        if not {*map(type, column)} <= _SIMPLE:
            return [escape(value) for value in column]
        texts = [value if value.__class__ is str else str(value) for value in column]
        joined = _END.join(texts)
    if not has_markup(joined):
        return texts
    parts = escape(joined).split(_END)
    return parts if len(parts) == len(column) else [escape(value) for value in column]


def print_each(values: Iterable[Any], before: str, after: str) -> str:
    """Return the escaped values, each between two texts of XML."""
    if not isinstance(values, list):
        values = [*values]
    if not values:
        return ""
    try:
        joined = values[0] if len(values) == 1 else "".join(values)
        if has_markup(joined):
            values = [*map(escape, values)]
        return before + (after + before).join(values) + after
    except TypeError:  # not only texts
        return before + (after + before).join(map(escape, values)) + after


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
