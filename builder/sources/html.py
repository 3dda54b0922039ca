"""The title and the language of an HTML page, as browsers read them.

Only as much of a page is read as lies before its title's end. Nothing in a page raises.
"""

import re
from html import unescape

from builder.sources import page, title
from builder.sources.charset import decoder

_TITLE_LENGTH = 2000  # characters
_TITLE_WITHIN = 1 << 14  # bytes of a title that are looked at
_SPACE = re.compile(r"\s+")
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ILLEGAL_REFERENCE = re.compile(
    r"&#(?:0*(?:[1-8]|11|1[4-9]|2\d|3[01])(?!\d)|x0*(?:[1-8bef]|1[\da-f])(?![\da-f]))",
    re.IGNORECASE,
)
"""References to characters that XML forbids, of which nothing is left where they are resolved."""
_OTHERWISE = frozenset({"utf-16le", "utf-16be", "iso-2022-jp"})
"""Encodings in which bytes of ASCII are not always ASCII."""
_LANGUAGE = re.compile(r"[a-z]{2,3}")


def title_and_language(
    head: bytes, charset: str, *, is_xml: bool = False
) -> tuple[str | None, str | None, bool]:
    """Return a page's title and its html element's language, by the page's first bytes.

    With `is_xml` the page is XHTML that is served as such. The third value tells whether the title
    held characters that XML forbids; they are removed.
    """
    if charset in _OTHERWISE:
        head = decoder(charset).decode(head).encode("utf-8", "replace")
        charset = "utf-8"
    found, declared = page.read_plain_head(head) or title.find_title(head, is_xml=is_xml)
    language = unescape(_decode_text(declared, charset)) if declared else None
    if not found:
        return None, language, False
    cleaned, illegal = _clean(_decode_text(found[:_TITLE_WITHIN], charset))
    return cleaned, language, illegal


def languages(declared: str | None) -> str | None:
    """Return the primary subtags of language tags (RFC 5646), comma separated, each once."""
    if not declared:
        return None
    tags = (tag.strip().lower().replace("_", "-").partition("-")[0] for tag in declared.split(","))
    return ",".join(dict.fromkeys(tag for tag in tags if _LANGUAGE.fullmatch(tag))) or None


def _decode_text(data: bytes, charset: str) -> str:
    """Decode text of a page; NUL becomes U+FFFD, as in titles (HTML, section 13.2.5.2)."""
    return decoder(charset).decode(data, final=True).replace("\0", "\ufffd")


def _clean(raw: str) -> tuple[str | None, bool]:
    text = unescape(raw)
    legal = _ILLEGAL.sub("", text)
    title = _SPACE.sub(" ", legal).strip()[:_TITLE_LENGTH]
    illegal = len(legal) != len(text) or _ILLEGAL_REFERENCE.search(raw) is not None
    return title.rstrip() or None, illegal
