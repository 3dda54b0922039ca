"""References in HTML and style sheets: replaces them, and leaves all else unchanged.

Tags are found by the rules of the HTML tokenizer (section 13.2.5); comments and the texts of
scripts are skipped. In style sheets the references are those by url() and @import. Their grammar
is that of CSS Syntax Module Level 3, section 4; an unterminated string ends with its line. The
time is linear in the length of the text, whatever it contains.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Reference = Callable[[str], str | None]
"""Returns the replacement of a reference, or None to keep it."""

_DOUBLE = r'"(?P<{0}>(?:[^"\\\n]|\\.)*+)"'
_SINGLE = r"'(?P<{0}>(?:[^'\\\n]|\\.)*+)'"
_TOKEN = re.compile(
    r"/\*.*?(?:\*/|\Z)"
    rf"|(?P<url>url\(\s*+(?:{_DOUBLE.format('a')}|{_SINGLE.format('b')}"
    r"|(?P<c>(?:[^\"'()\s\\]|\\[0-9A-Fa-f]{1,6}\s?|\\.)*+))\s*+\))"
    rf"|(?P<imports>@import\s*+)(?:{_DOUBLE.format('d')}|{_SINGLE.format('e')})"
    r"|\"(?:[^\"\\\n]|\\.)*+(?:\"|\n|\Z)|'(?:[^'\\\n]|\\.)*+(?:'|\n|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:([0-9A-Fa-f]{1,6})(?:\r\n|\s)?|(\n)|(.))", re.DOTALL)
_UNSAFE = re.compile(r"[\"\\\x00-\x1f\x7f]")
_OPENED = re.compile(r"<(?:(!--)|([A-Za-z][^\s/>]*)|[!?/])")
_BETWEEN = re.compile(r"[\s/]*")
_NAME = re.compile(r"=?[^\s/>=]*")
_EQUALS = re.compile(r"\s*=\s*")
_UNQUOTED = re.compile(r"[^\s>]*")
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
_DELAY = re.compile(r"\s*+[0-9.]*+\s*+[;,]?\s*+(?:url\s*+=\s*+)?", re.IGNORECASE)
_SPACES = re.compile(r"[\s,]*")
_WORD = re.compile(r"\S+")

_URLS: Mapping[str, frozenset[str] | None] = {
    # attribute: the elements in which it is a URL; None means all elements
    "href": None,
    "src": None,
    "xlink:href": None,
    "poster": None,
    "background": None,
    "longdesc": None,
    "cite": None,
    "lowsrc": None,
    "dynsrc": None,
    "formaction": None,
    "data-src": None,
    "action": frozenset({"form"}),
    "data": frozenset({"object"}),
}
_SETS = frozenset({"srcset", "imagesrcset", "data-srcset"})
_OFF = frozenset({"integrity", "crossorigin"})
"""Attributes that stop a browser from loading local or rewritten files."""


def rewrite_css(text: str, reference: Reference) -> str:
    """Return a style sheet or declaration list with its references replaced by `reference`."""

    def replace_reference(match: re.Match[str]) -> str:
        if match["url"] is None and match["imports"] is None:
            return match[0]
        written = next((match[name] for name in "abcde" if match[name] is not None), "")
        found = reference(_ESCAPE.sub(_unescape, written))
        if found is None:
            return match[0]
        quoted = f'"{_UNSAFE.sub(lambda odd: f"%{ord(odd[0]):02X}", found)}"'
        return f"url({quoted})" if match["url"] is not None else f"{match['imports']}{quoted}"

    return _TOKEN.sub(replace_reference, text)


def _unescape(match: re.Match[str]) -> str:
    """Return the characters of an escape (section 4.3.7)."""
    if match[1]:
        code = int(match[1], 16)
        return "�" if not 0 < code <= 0x10FFFF or 0xD800 <= code < 0xE000 else chr(code)
    return match[3] or ""


@dataclass(frozen=True, slots=True)
class _Attribute:
    """An attribute: its name in lower case, its value as written, and the offsets of both."""

    name: str
    value: str
    start: int
    value_start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Tag:
    name: str
    attributes: tuple[_Attribute, ...]
    end: int

    def value(self, name: str, decode: Callable[[str], str]) -> str:
        """Return the value of the first attribute of that name, or ""."""
        for attribute in self.attributes:
            if attribute.name == name:
                return html.unescape(decode(attribute.value))
        return ""


Decode = Callable[[str], str]
"""Decodes a part of a page, which may have been read byte by byte."""


def html_base(text: str, decode: Decode) -> str | None:
    """Return the first base URL that a page declares."""
    for tag in _tags(text):
        if tag.name == "base" and (found := tag.value("href", decode).strip()):
            return found
    return None


def rewrite_html(text: str, reference: Reference, decode: Decode) -> str:
    """Return a page with its references replaced by `reference`, and its base element disabled.

    Policies and integrity checks in the page that would prevent viewing it from a disk are disabled
    too. Inserted text is ASCII.
    """
    pieces: list[str] = []
    at = 0
    for start, end, new in _changes(text, reference, decode):
        pieces += (text[at:start], new)
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


def _changes(text: str, reference: Reference, decode: Decode) -> Iterator[tuple[int, int, str]]:
    for tag in _tags(text):
        refreshes = (
            tag.name == "meta" and tag.value("http-equiv", decode).strip().lower() == "refresh"
        )
        for attribute in tag.attributes:
            value = html.unescape(decode(attribute.value))
            if _is_off(tag, attribute.name, value):
                yield attribute.start, attribute.start, "data-"
                continue
            change = _change(tag.name, attribute.name, refreshes=refreshes)
            if change is not None and (new := change(value, reference)) != value:
                quoted = new.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
                ascii_only = quoted.encode("ascii", "xmlcharrefreplace").decode("ascii")
                yield attribute.value_start, attribute.end, f'"{ascii_only}"'
        if tag.name == "style":
            end = _raw_end(text, tag)
            inner = text[tag.end : end]
            new = rewrite_css(inner, lambda written: reference(decode(written)))
            if new != inner:
                yield tag.end, end, new


def _is_off(tag: _Tag, name: str, value: str) -> bool:
    if tag.name == "base":
        return name == "href"
    if tag.name == "meta":
        return name == "http-equiv" and value.strip().lower().startswith("content-security")
    return name in _OFF


def _change(element: str, name: str, *, refreshes: bool) -> Callable[[str, Reference], str] | None:
    """Return the function that rewrites an attribute's value; None if it is not a reference."""
    if name in _SETS:
        return _images
    if name == "style":
        return rewrite_css
    if name == "content":
        return _refresh if refreshes else None
    if name in _URLS:
        elements = _URLS[name]
        return _single if elements is None or element in elements else None
    return None


def _single(value: str, reference: Reference) -> str:
    found = reference(value)
    return value if found is None else found


def _refresh(value: str, reference: Reference) -> str:
    delay = _DELAY.match(value)
    at = delay.end() if delay else 0
    written = value[at:].rstrip()
    if written[:1] in ('"', "'"):
        written = written[1:].partition(written[0])[0]
    new = reference(written) if written else None
    return value if new is None else value[:at] + new


def _images(value: str, reference: Reference) -> str:
    """Rewrite the candidates of a source set (HTML, section 4.8.4.2.1)."""
    pieces: list[str] = []
    at = 0
    while at < len(value):
        spaces = _SPACES.match(value, at)
        at = spaces.end() if spaces else at
        word = _WORD.match(value, at)
        if word is None:
            break
        url = word[0].rstrip(",")
        at = word.end()
        descriptor = ""
        if url == word[0]:
            comma = value.find(",", at)
            end = comma if comma >= 0 else len(value)
            descriptor, at = value[at:end].strip(), end
        new = reference(url)
        pieces.append(" ".join(filter(None, (url if new is None else new, descriptor))))
    return ", ".join(pieces)


def _tags(text: str) -> Iterator[_Tag]:
    """Yield the start tags, except those in comments and in raw text."""
    at = 0
    while found := _OPENED.search(text, at):
        if found[1]:
            at = text.find("-->", found.end())
        elif not found[2]:
            at = text.find(">", found.end())
        else:
            tag = _tag(text, found[2].lower(), found.end())
            if tag is None:
                return
            yield tag
            at = _raw_end(text, tag) if tag.name in _RAW else tag.end
        if at < 0:
            return


def _raw_end(text: str, tag: _Tag) -> int:
    found = _RAW[tag.name].search(text, tag.end)
    return found.start() if found else len(text)


def _tag(text: str, name: str, at: int) -> _Tag | None:
    """Return the tag whose attributes begin at an offset; None if it does not end."""
    attributes: list[_Attribute] = []
    while True:
        between = _BETWEEN.match(text, at)
        at = between.end() if between else at
        if at >= len(text):
            return None
        if text[at] == ">":
            return _Tag(name, tuple(attributes), at + 1)
        named = _NAME.match(text, at)
        start, at = at, named.end() if named else at + 1
        equals = _EQUALS.match(text, at)
        if equals is None:
            attributes.append(_Attribute(text[start:at].lower(), "", start, at, at))
            continue
        value_at = equals.end()
        if text[value_at : value_at + 1] in ('"', "'"):
            end = text.find(text[value_at], value_at + 1)
            if end < 0:
                return None
            value, after = text[value_at + 1 : end], end + 1
        else:
            unquoted = _UNQUOTED.match(text, value_at)
            after = unquoted.end() if unquoted else value_at
            value = text[value_at:after]
        attributes.append(_Attribute(text[start:at].lower(), value, start, value_at, after))
        at = after
