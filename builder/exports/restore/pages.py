"""Conversion of pages: references in HTML and style sheets are rewritten to the restored files.

References to restored files become relative paths. Other references become the original URL, so
that the page still shows its targets. The encoding of a page, and all other bytes, are unchanged.

Tags are found by the rules of the HTML tokenizer (section 13.2.5); comments and the texts of
scripts are skipped. In style sheets the references are those by url() and @import. Their grammar
is that of CSS Syntax Module Level 3, section 4; an unterminated string ends with its line. The
time is linear in the length of the text, whatever it contains.
"""

import hashlib
import html
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO
from urllib.parse import quote, urldefrag, urljoin, urlsplit

import webencodings

from builder import charset
from builder.exports.restore.plan import Plan, Planned

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
_ATTRIBUTE = re.compile(
    r"[\s/]*+(?:(?P<end>>)|(?P<name>=[^\s/>=]*|[^\s/>=]+)(?:\s*=\s*(?:"
    r"(?P<quote>[\"'])(?P<quoted>.*?)(?:(?P=quote)|(?P<cut>\Z))|(?P<plain>[^\s>]*)))?)",
    re.DOTALL,
)
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
_DELAY = re.compile(r"\s*+[0-9.]*+\s*+[;,]?\s*+(?:url\s*+=\s*+)?", re.IGNORECASE)
_CANDIDATE = re.compile(r"[\s,]*+(?:(\S*[^\s,])(?:,+|([^,]*))|\Z)")

_URLS: Mapping[str, frozenset[str] | None] = {
    # attribute: the elements in which it is a URL; None means all elements
    **dict.fromkeys(("href", "src", "xlink:href", "poster", "background", "longdesc", "cite")),
    **dict.fromkeys(("lowsrc", "dynsrc", "formaction", "data-src")),
    "action": frozenset({"form"}),
    "data": frozenset({"object"}),
}
_OFF = frozenset({"integrity", "crossorigin"})
"""Attributes that stop a browser from loading local or rewritten files."""


def rewrite_css(text: str, reference: Reference) -> str:
    """Return a style sheet or declaration list with its references replaced by `reference`."""

    def replace_reference(match: re.Match[str]) -> str:
        if match["url"] is None and match["imports"] is None:
            return match[0]
        written = next((match[name] for name in "abcde" if match[name] is not None), "")
        target = reference(_ESCAPE.sub(_unescape, written))
        if target is None:
            return match[0]
        quoted = f'"{_UNSAFE.sub(lambda odd: f"%{ord(odd[0]):02X}", target)}"'
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
        values = (attribute.value for attribute in self.attributes if attribute.name == name)
        return html.unescape(decode(next(values, "")))


Decode = Callable[[str], str]
"""Decodes a part of a page, which may have been read byte by byte."""


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
    if name in {"srcset", "imagesrcset", "data-srcset"}:
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
    target = reference(value)
    return value if target is None else target


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
    pieces = []
    for match in _CANDIDATE.finditer(value):
        if url := match[1]:
            new = reference(url)
            words = (url if new is None else new, (match[2] or "").strip())
            pieces.append(" ".join(filter(None, words)))
    return ", ".join(pieces)


def _tags(text: str) -> Iterator[_Tag]:
    """Yield the start tags, except those in comments and in raw text."""
    at = 0
    while match := _OPENED.search(text, at):
        if match[1]:
            at = text.find("-->", match.end())
        elif not match[2]:
            at = text.find(">", match.end())
        else:
            tag = _tag(text, match[2].lower(), match.end())
            if tag is None:
                return
            yield tag
            at = _raw_end(text, tag) if tag.name in _RAW else tag.end
        if at < 0:
            return


def _raw_end(text: str, tag: _Tag) -> int:
    match = _RAW[tag.name].search(text, tag.end)
    return match.start() if match else len(text)


def _tag(text: str, name: str, at: int) -> _Tag | None:
    """Return the tag whose attributes begin at an offset; None if it does not end."""
    attributes: list[_Attribute] = []
    while match := _ATTRIBUTE.match(text, at):
        at = match.end()
        if match["end"]:
            return _Tag(name, tuple(attributes), at)
        if match["cut"] is not None:
            return None
        start = max(match.start("quote"), match.start("plain"))
        attributes.append(
            _Attribute(
                match["name"].lower(),
                match["quoted"] or match["plain"] or "",
                match.start("name"),
                at if start < 0 else start,
                at,
            )
        )
    return None


LARGEST = 32 << 20
"""Maximum bytes of a page; larger pages are not converted."""

KINDS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "image/svg+xml": "html",
    "text/css": "css",
}
"""The kinds of references of media types."""
_TEXT_OF_ITS_OWN = frozenset({"utf-16le", "utf-16be", "iso-2022-jp"})
"""Encodings in which an ASCII byte need not be that character."""
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s;\"']+)", re.IGNORECASE)
_PLAIN = re.compile("[!-~]*")
_AT_CHARSET = re.compile(rb'@charset "([^"]{1,40})";')
_ELSEWHERE = re.compile(r"\s*(?:#|(?!https?:|ftp:)[A-Za-z][A-Za-z0-9+.\-]*:)", re.IGNORECASE)
_BREAKS = {ord(c): None for c in "\t\n\r"}


def convert(file: BinaryIO, planned: Planned, headers: Mapping[str, str], plan: Plan) -> str | None:
    """Rewrite a page in place; return its new SHA-256, or None if it is unchanged."""
    if file.tell() > LARGEST:
        return None
    file.seek(0)
    new = rewritten(file.read(), planned, headers.get("content-type", ""), plan)
    if new is None:
        return None
    file.seek(0)
    file.truncate()
    file.write(new)
    return hashlib.sha256(new).hexdigest()


def rewritten(data: bytes, planned: Planned, content_type: str, plan: Plan) -> bytes | None:
    """Return a page with its references rewritten; None if its encoding forbids it."""
    form = KINDS.get(planned.media_type)
    name = _encoding(data, content_type, form, planned.url)
    codec = (webencodings.lookup(name) or webencodings.UTF8).codec_info.name
    if name in _TEXT_OF_ITS_OWN:
        text = data.decode(codec, "replace")
        if text.encode(codec, "replace") != data:
            return None
        references = _References(planned, plan, codec, bytewise=False)
        return references.rewrite(form, text).encode(codec, "replace")
    # In this encoding every byte is one character, so all other bytes stay, even invalid ones.
    references = _References(planned, plan, codec, bytewise=True)
    return references.rewrite(form, data.decode("latin-1")).encode("latin-1")


class _References:
    """Replaces the references of one page."""

    def __init__(self, planned: Planned, plan: Plan, codec: str, *, bytewise: bool) -> None:
        self._planned = planned
        self._plan = plan
        self._codec = codec
        self._bytewise = bytewise
        self._base = planned.url

    def rewrite(self, form: str | None, text: str) -> str:
        """Return the text with its references rewritten; they are ASCII."""
        if form == "css":
            return rewrite_css(text, lambda written: self._reference(self._text(written)))
        bases = (tag.value("href", self._text) for tag in _tags(text) if tag.name == "base")
        if base := next(filter(None, map(str.strip, bases)), None):
            with suppress(ValueError):
                self._base = urljoin(self._planned.url, base)
        return rewrite_html(text, self._reference, self._text)

    def _reference(self, written: str) -> str | None:
        """Return the relative path of a restored file, else the full URL; None if it is no URL."""
        text = written.translate(_BREAKS).strip()
        if not text or _ELSEWHERE.match(text):
            return None
        try:
            url, fragment = urldefrag(urljoin(self._base, text))
        except ValueError:
            return None
        mark = f"#{_quote(fragment)}" if fragment else ""
        for form in self._forms(url):
            if (path := self._plan.path(form)) is not None:
                if path == self._planned.path and mark:
                    return mark
                folder = posixpath.dirname(self._planned.path)
                return quote(posixpath.relpath(path, folder), safe="!$&+,;=@~/") + mark
        whole = next(self._forms(url)) + mark
        return None if whole == text else whole

    def _forms(self, url: str) -> Iterator[str]:
        """Yield the URL as browsers send it, then as older browsers and crawlers sent it.

        The path is UTF-8 and the query is in the page's encoding (URL Standard, section 4.4), or
        all is.
        """
        path, question, query = url.partition("?")
        yield _quote(path) + question + _quote(query, self._codec)
        if not url.isascii():
            yield _quote(path, self._codec) + question + _quote(query, self._codec)

    def _text(self, written: str) -> str:
        """Return the characters of text whose bytes were read as one character each."""
        if not self._bytewise or written.isascii():
            return written
        try:
            return written.encode("latin-1").decode(self._codec)
        except UnicodeError:
            return written


def _quote(text: str, codec: str = "utf-8") -> str:
    """Return a part of a URL in ASCII; existing escapes stay."""
    if _PLAIN.fullmatch(text):
        return text
    return quote(text, safe="!\"#$%&'()*+,/:;<=>?@[\\]^_`{|}~", encoding=codec, errors="replace")


def _encoding(data: bytes, content_type: str, form: str | None, url: str) -> str:
    declared = _CHARSET.search(content_type)
    name = charset.detect_bom(data) or charset.whatwg_name(declared[1] if declared else None)
    if form == "css":
        match = _AT_CHARSET.match(data)
        return name or charset.whatwg_name(match[1].decode("latin-1") if match else None) or "utf-8"
    host = None
    with suppress(ValueError):
        host = urlsplit(url).hostname
    return name or charset.html_charset(data, host).name
