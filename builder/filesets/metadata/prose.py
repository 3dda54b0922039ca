"""Converter from HTML descriptions to plain text."""

import re
from html.parser import HTMLParser

_BREAKS = frozenset(
    (
        "address", "article", "br", "dd", "div", "dl", "dt", "h1", "h2", "h3", "h4", "h5", "h6",
        "hr", "li", "ol", "p", "pre", "tr", "ul",
    )
)  # fmt: skip
_HIDDEN = frozenset(("script", "style"))
_MARKUP = re.compile(r"<[a-zA-Z/!]|&(?:#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z]+);")
_SPACE = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n[ \n]*")
_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class _Prose(HTMLParser):
    """Collects the text of a page; a block element starts a new line."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Start a line or hidden content."""
        self._hidden += tag in _HIDDEN
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """End a line or hidden content."""
        self._hidden = max(0, self._hidden - (tag in _HIDDEN))
        if tag in _BREAKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Add visible text."""
        if not self._hidden:
            self.parts.append(data)


def plain(value: object) -> str | None:
    """Return a text without HTML, in stripped lines; None if it is empty.

    A text without markup is returned as it is, and so is a `<` that starts no tag. Characters that
    XML forbids are removed.
    """
    if not isinstance(value, str):
        return None
    found = _REFUSED.sub("", value.replace("\r", "\n"))
    if _MARKUP.search(found):
        reader = _Prose()
        reader.feed(found)
        reader.close()
        found = _REFUSED.sub("", "".join(reader.parts))
    return _LINES.sub("\n", _SPACE.sub(" ", found)).strip() or None
