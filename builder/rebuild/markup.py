"""Markup: the references of an HTML page replaced; every other byte of it stays as it is.

Tags are told as the tokenizer of HTML does it (section 13.2.5), comments and the texts of scripts
passed over. It takes time in proportion to the page, whatever that holds.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from builder.rebuild import sheet
from builder.rebuild.sheet import Reference

_OPENED = re.compile(r"<(?:(!--)|([A-Za-z][^\s/>]*)|[!?/])")
_BETWEEN = re.compile(r"[\s/]*")
_NAME = re.compile(r"=?[^\s/>=]*")
_EQUALS = re.compile(r"\s*=\s*")
_UNQUOTED = re.compile(r"[^\s>]*")
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
_REFRESH = re.compile(r"(\s*[0-9.]*\s*[;,]?\s*(?:url\s*=\s*)?)([\"']?)(.*?)\2\s*", re.I | re.DOTALL)
_SPACES = re.compile(r"[\s,]*")
_WORD = re.compile(r"\S+")

_URLS: Mapping[str, frozenset[str] | None] = {
    # attribute: the elements in which it is a URL, None for all
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
"""Attributes that keep a browser from loading what lies on a disk, or was rewritten."""


@dataclass(frozen=True, slots=True)
class _Attribute:
    """An attribute: its name in lower case, its value as written, and where both stand."""

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

    def value(self, name: str) -> str:
        """Return the value of an attribute, the first of its name, without what stands for it."""
        for attribute in self.attributes:
            if attribute.name == name:
                return html.unescape(attribute.value)
        return ""


def base(text: str) -> str | None:
    """Return the first base URL that a page declares, as it is written."""
    for tag in _tags(text):
        if tag.name == "base" and (found := tag.value("href").strip()):
            return found
    return None


def rewritten(text: str, reference: Reference) -> str:
    """Return a page with what `reference` gives for its references, and its base switched off.

    So are policies and checks within the page that would keep it from being seen from a disk.
    """
    pieces: list[str] = []
    at = 0
    for start, end, new in _changes(text, reference):
        pieces += (text[at:start], new)
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


def _changes(text: str, reference: Reference) -> Iterator[tuple[int, int, str]]:
    for tag in _tags(text):
        for attribute in tag.attributes:
            if _is_off(tag, attribute):
                yield attribute.start, attribute.start, "data-"
                continue
            change = _change(tag, attribute)
            if change is None:
                continue
            value = html.unescape(attribute.value)
            new = change(value, reference)
            if new != value:
                quoted = new.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
                yield attribute.value_start, attribute.end, f'"{quoted}"'
        if tag.name == "style":
            end = _raw_end(text, tag)
            inner = text[tag.end : end]
            if (new := sheet.rewritten(inner, reference)) != inner:
                yield tag.end, end, new


def _is_off(tag: _Tag, attribute: _Attribute) -> bool:
    if tag.name == "base":
        return attribute.name == "href"
    if tag.name == "meta":
        policy = html.unescape(attribute.value).strip().lower().startswith("content-security")
        return attribute.name == "http-equiv" and policy
    return attribute.name in _OFF


def _change(tag: _Tag, attribute: _Attribute) -> Callable[[str, Reference], str] | None:
    """Return what rewrites the value of an attribute, None where it is no reference."""
    if attribute.name in _SETS:
        return _images
    if attribute.name == "style":
        return sheet.rewritten
    if attribute.name == "content" and tag.name == "meta":
        return _refresh if tag.value("http-equiv").strip().lower() == "refresh" else None
    if attribute.name in _URLS:
        elements = _URLS[attribute.name]
        return _single if elements is None or tag.name in elements else None
    return None


def _single(value: str, reference: Reference) -> str:
    found = reference(value)
    return value if found is None else found


def _refresh(value: str, reference: Reference) -> str:
    found = _REFRESH.fullmatch(value)
    new = reference(found[3]) if found and found[3] else None
    return value if found is None or new is None else found[1] + new


def _images(value: str, reference: Reference) -> str:
    """Rewrite candidates of a source set (HTML, section 4.8.4.2.1)."""
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
    """Yield the start tags, but those in comments and in texts that are no markup."""
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
    """Return the tag whose attributes begin there, None where it does not end."""
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
