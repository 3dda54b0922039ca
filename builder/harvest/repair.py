"""Cleaning: answers that are no XML made XML, with what was mended and where. Pure.

It is for what a strict reader refused: nothing is changed in an answer that is as it should be.
"""

import codecs
import re
from bisect import bisect_left
from dataclasses import dataclass
from html.entities import html5

BYTES = "bytes that are not UTF-8 were read as windows-1252"
CHARACTERS = "characters that XML does not have were left out"
ENTITIES = "entities that XML does not know were spelled out"
MARKUP = "an ampersand or a less-than sign was escaped"
_XML = frozenset({"amp", "lt", "gt", "quot", "apos"})
_DECLARATION = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._:-]+)[\"'][^>]*\?>")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"\0<\0?", "utf-16-be"),
    (b"<\0?\0", "utf-16-le"),
)
_ROOT = re.compile(r"<((?:[A-Za-z_][\w.-]*:)?OAI-PMH)(?=[\s>])[^>]*>")
_DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL)
_SURROGATES = "(?:\udced[\udca0-\udcbf][\udc80-\udcbf])+"
_ILLEGAL = "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]"
_ODD = re.compile(
    rf"(?P<plain><!\[CDATA\[|\]\]>|<!--.*?-->|<\?.*?\?>)|(?P<illegal>{_ILLEGAL}|{_SURROGATES})"
    r"|(?P<byte>[\udc80-\udcff])"
    r"|(?P<number>&#(?:x[0-9A-Fa-f]+|[0-9]+);)|(?P<name>&[A-Za-z][A-Za-z0-9]*;)"
    r"|(?P<sign>&(?!#?\w+;)|<(?![A-Za-z_/!?]))",
    re.DOTALL,
)
_KNOWN = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "oai_dc": "http://www.openarchives.org/OAI/2.0/oai_dc/",
    "xlink": "http://www.w3.org/1999/xlink",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
}
"""Prefixes that some use without declaring them."""


@dataclass(frozen=True, slots=True)
class Mended:
    """An answer in UTF-8, and what was mended in it: by the offset of each place, in order."""

    data: bytes
    places: tuple[int, ...]
    words: tuple[str, ...]

    def fault(self, start: int, end: int) -> str | None:
        """Return what was mended between two offsets, None for nothing."""
        some = self.words[bisect_left(self.places, start) : bisect_left(self.places, end)]
        return "; ".join(sorted(set(some))) or None


def mended(data: bytes, charset: str | None, unbound: bool = False) -> Mended:
    """Return an answer without what XML does not allow.

    `charset` is that of the Content-Type. With `unbound`, well-known prefixes are declared where
    the root does not declare them.
    """
    text = _within(_decoded(data, charset))
    if unbound:
        text = _bound(text)
    out, at = bytearray(), 0
    places: list[int] = []
    words: list[str] = []
    literal = False
    for match in _ODD.finditer(text):
        kind = match.lastgroup
        if kind == "plain":
            literal = match[0] == "<![CDATA[" or (literal and match[0] != "]]>")
            continue
        found = _instead(kind, match[0], literal)
        if found is None:
            continue
        out += text[at : match.start()].encode()
        at = match.end()
        places.append(len(out))
        words.append(found[1])
        out += found[0].encode()
    out += text[at:].encode()
    return Mended(bytes(out), tuple(places), tuple(words))


def is_wide(data: bytes) -> bool:
    """Tell whether an answer is in UTF-16 or UTF-32: offsets of a reader are not those of it."""
    return any(data.startswith(mark) for mark, known in _MARKS if known != "utf-8")


def _instead(kind: str | None, odd: str, literal: bool) -> tuple[str, str] | None:
    """Return what stands instead of it and why, None where it may stay."""
    if kind == "illegal":
        return _paired(odd), CHARACTERS
    if kind == "byte":
        return bytes([ord(odd) - 0xDC00]).decode("cp1252", "replace"), BYTES
    if literal:
        return None
    if kind == "number":
        number = odd[2:-1]
        code = int(number[1:], 16) if number[0] == "x" else int(number[:9])
        return None if _is_character(code) else ("", CHARACTERS)
    if kind == "name":
        if odd[1:-1] in _XML:
            return None
        known = html5.get(odd[1:])
        return (f"&amp;{odd[1:]}", MARKUP) if known is None else (_escaped(known), ENTITIES)
    return _escaped(odd), MARKUP


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _is_character(code: int) -> bool:
    """Tell whether XML 1.0 has the character (2.2)."""
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )


def _paired(odd: str) -> str:
    """Return what surrogates that were each written as UTF-8 mean, "" for what means nothing."""
    if odd[0] < "\udc80" or odd[0] > "\udcff":
        return ""
    halves = odd.encode("utf-8", "surrogateescape").decode("utf-8", "surrogatepass")
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def _decoded(data: bytes, charset: str | None) -> str:
    """Return the text; a byte that means nothing stands as a lone surrogate (PEP 383)."""
    for mark, known in _MARKS:
        if data.startswith(mark):
            marked = data.decode(known, "surrogateescape" if known == "utf-8" else "replace")
            return marked.removeprefix("\ufeff")
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    declared = _DECLARATION.search(data[:1000])
    for name in (declared[1].decode() if declared else None, charset):
        try:
            if name and codecs.lookup(name).name not in ("utf-8", "ascii"):
                return data.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    return data.decode("utf-8", "surrogateescape")


def _within(text: str) -> str:
    """Return the root element without what stands around it, where there is one."""
    root = _ROOT.search(text)
    if root is None:
        return _DOCTYPE.sub("", text, count=1)
    end = text.rfind(f"</{root[1]}")
    close = text.find(">", end)
    return text[root.start() : close + 1] if end >= 0 and close >= 0 else text[root.start() :]


def _bound(text: str) -> str:
    """Declare what is declared nowhere; where that is nothing, what the root does not declare."""
    root = _ROOT.search(text)
    if root is None:
        return text
    used = [p for p in _KNOWN if f"{p}:" in text and not _declares(root[0], p)]
    missing = [p for p in used if not _declares(text, p)] or used
    at = root.start() + 1 + len(root[1])
    added = "".join(f' xmlns:{prefix}="{_KNOWN[prefix]}"' for prefix in missing)
    return text[:at] + added + text[at:]


def _declares(text: str, prefix: str) -> bool:
    return re.search(rf"\sxmlns:{prefix}\s*=", text) is not None
