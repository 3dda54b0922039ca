"""The title and the language of an HTML page, by lxml's pull parser unless the page is plain.

Only as much of a page is parsed as lies before its title's end. Nothing in a page can make this
raise: whatever lxml finds wrong, it mends or gives up on.
"""

import re
from html.entities import name2codepoint

from lxml import etree

from builder.sources.charset import decoder
from builder.sources.page import plain

_CHUNK = 1 << 13
_TITLE_LENGTH = 2000  # characters
_TITLE_END = re.compile(rb"</title[^>]{0,99}>", re.IGNORECASE)
_HTML_TAG = re.compile(rb"<html(?=[\s>])[^>]{0,2000}>", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REFERENCE = re.compile("&(?:([A-Za-z]{2,8}[0-9]{0,2});| )?")
_UNSURE = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef]")
_ASCII_BASED = {
    # WHATWG names and Python's, where both are of the same bytes
    "utf-8": "utf-8",
    "windows-1250": "cp1250",
    "windows-1251": "cp1251",
    "windows-1252": "cp1252",
    "iso-8859-2": "iso8859-2",
}
_LANGUAGE = re.compile(r"[a-z]{2,3}")


_OTHERWISE = frozenset({"lang", "rang"})
"""Names that have meant other characters since HTML 5."""


def title_and_language(head: bytes, charset: str) -> tuple[str | None, str | None, bool]:
    """Return a page's title and its html element's language, by the page's first bytes.

    The third value tells whether the title held characters that XML forbids; they are removed.
    """
    found = plain(head) if charset in _ASCII_BASED else None
    if found:
        text = found[0].decode("ascii" if found[0].isascii() else _ASCII_BASED[charset], "replace")
        text = _REFERENCE.sub(_referred, text)
        if not _UNSURE.search(text):
            title = _SPACE.sub(" ", text).strip()[:_TITLE_LENGTH].rstrip()
            return title or None, found[1].decode("ascii") if found[1] else None, False
    return _parsed(head, charset)


def _referred(match: re.Match[str]) -> str:
    """Return a character that is named by one of HTML 4's names; NUL, of which none is sure."""
    code = name2codepoint.get(match[1] or "") if match[1] not in _OTHERWISE else None
    return chr(code) if code else match[0] if match[0] == "& " else "\0"


def _parsed(head: bytes, charset: str) -> tuple[str | None, str | None, bool]:
    at, end = 0, _first_stop(head, charset)
    if not end:
        return None, None, False
    parser = etree.HTMLPullParser(events=("start", "end"), tag=("html", "title"), encoding="utf-8")
    decode = decoder(charset)
    language: str | None = None
    while at < end:
        text = decode.decode(head[at:end])
        try:
            parser.feed(text.encode("utf-8", "replace"))
        except etree.XMLSyntaxError:
            break
        for event, element in parser.read_events():
            if not isinstance(element, etree._Element):
                continue
            if event == "start" and element.tag == "html":
                language = language or element.get("lang") or element.get("xml:lang")
            elif event == "end" and element.tag == "title" and not _is_drawn(element):
                title, illegal = _clean("".join(map(str, element.itertext())))
                return title, language, illegal
        at, end = end, _next_stop(head, charset, end)
    return None, language, False


def _first_stop(head: bytes, charset: str) -> int:
    """Return how far to parse at first: through the title if one is seen, or the html tag."""
    if charset.startswith("utf-16"):
        return min(len(head), _CHUNK)
    match = _TITLE_END.search(head) or _HTML_TAG.search(head, 0, 1 << 16)
    return match.end() if match else 0


def _next_stop(head: bytes, charset: str, at: int) -> int:
    """Return how far to parse next: nowhere, unless another title's end is ahead."""
    if charset.startswith("utf-16"):
        return min(len(head), at + _CHUNK)
    match = _TITLE_END.search(head, at)
    return match.end() if match else at


def languages(declared: str | None) -> str | None:
    """Return the primary subtags of language tags (RFC 5646), comma separated, each once."""
    if not declared:
        return None
    tags = (tag.strip().lower().replace("_", "-").partition("-")[0] for tag in declared.split(","))
    return ",".join(dict.fromkeys(tag for tag in tags if _LANGUAGE.fullmatch(tag))) or None


def _is_drawn(element: "etree._Element") -> bool:
    """Tell whether a title is that of a drawing (SVG) within the page."""
    return any(above.tag in ("svg", "symbol", "g") for above in element.iterancestors())


def _clean(text: str) -> tuple[str | None, bool]:
    legal = _ILLEGAL.sub("", text)
    title = _SPACE.sub(" ", legal).strip()[:_TITLE_LENGTH]
    return title.rstrip() or None, len(legal) != len(text)
