"""The title and the language of an HTML page, as browsers find them (HTML, 13.2.5 and 13.2.6).

The search follows only what decides where a title begins and ends: comments, tags, elements with
text content, scripts with their escapes, templates, frame sets, and the foreign content of SVG and
MathML. As in a browser that runs scripts, the content of `noscript` is text. Reading ends at the
title's end. Nothing in a page raises.

No tree is built. Parsers that build the standard's tree take gigabytes of memory for some pages of
256 KB. The search takes little memory, and time in proportion to the page. lxml's parser (libxml2
2.14) takes `<title/>` for closed, and reads titles in `noscript`: it differs in 14 of the 65 pages
of the tests.
"""

import re
from collections import Counter
from html import unescape
from typing import NamedTuple

from functions.archive.charset import (
    SPACE,
    TAG_NAME,
    UNLIKE_ASCII,
    decoder,
    read_plain_head,
    tag_attributes,
    tag_end,
)

_END = rb"(?=[" + SPACE + rb"/>])"
_OPENED = re.compile(rb"<(?:(!--)|(/?)(" + TAG_NAME + rb")|(!\[CDATA\[)|[!?/])")
_COMMENT_END = re.compile(rb"--!?>")
_NO_COMMENT = re.compile(rb"-?>")
_TITLE = re.compile(rb"<title" + _END, re.IGNORECASE)
_TEXTS = {
    # element with text content: the end of its content
    name: re.compile(rb"</" + name + _END, re.IGNORECASE)
    for name in b"textarea style xmp iframe noembed noframes noscript title".split()
}
_SCRIPT = re.compile(rb"<!--(-*+>)?+|(-->)|<(/?)script" + _END, re.IGNORECASE)
_LANGUAGE_WITHIN = 1 << 16  # bytes that are searched for an html element without any title

_HEAD = frozenset(
    b"html head base basefont bgsound link meta noframes noscript script style template".split()
)
"""Elements after which a frame set may still begin."""
_POINTS = frozenset(
    [(b"svg", name) for name in b"foreignobject desc title".split()]
    + [(b"math", name) for name in b"mi mo mn ms mtext".split()]
)
"""Elements of SVG and MathML whose content is HTML again."""
_BREAKING = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img "
    b"li listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul "
    b"var".split()
)
"""HTML elements that end SVG and MathML."""


def find_title(page: bytes, *, is_xml: bool = False) -> tuple[bytes | None, bytes | None]:
    """Return the title and the html element's language of a page; None for each that is absent.

    The page has an ASCII-compatible encoding. With `is_xml`, any element can close itself, as in
    XHTML that is served as such.
    """
    search = _TitleSearch(page, is_xml)
    title = search.title()
    languages = search.languages
    return title, (languages.get(b"lang") or languages.get(b"xml:lang"))


class _Foreign(NamedTuple):
    """An open element of SVG or MathML."""

    name: bytes
    kind: bytes
    """The root element around it: svg or math."""
    is_point: bool


class _TitleSearch:
    """The search of one page, with the state of its open elements."""

    def __init__(self, page: bytes, is_xml: bool) -> None:
        self.languages: dict[bytes, bytes] = {}
        self._page = page
        self._is_xml = is_xml
        self._foreign: list[_Foreign] = []
        self._depths: Counter[bytes] = Counter()  # of _foreign, by name
        self._names: set[bytes] = set()  # of open or closed HTML elements
        self._templates = 0
        self._may_have_frames = True

    def title(self) -> bytes | None:
        """Return the title's bytes. Reading ends where no title can follow."""
        page = self._page
        at: int | None = 0
        ahead = _TITLE.search(page)
        while at is not None and (opened := _OPENED.search(page, at)):
            start = opened.start()
            if ahead and ahead.start() < start:
                ahead = _TITLE.search(page, start)
            if ahead is None and (b"html" in self._names or start > _LANGUAGE_WITHIN):
                return None
            if self._may_have_frames and page[at:start].strip():
                self._may_have_frames = False
            if not opened[3]:
                at = self._no_tag_end(opened)
                continue
            ended = tag_end(page, opened.end())
            if ended is None:
                return None
            name = opened[3].lower()
            if opened[2]:
                self._leave(name)
                at = ended[0]
            elif self._is_foreign(name, opened, ended[0]):
                if not ended[1]:
                    self._push(name, self._foreign[-1].kind)
                at = ended[0]
            elif name == b"title" and not self._templates:
                if ended[1] and self._is_xml:
                    return b""
                end = _TEXTS[name].search(page, ended[0])
                return page[ended[0] : end.start() if end else len(page)]
            elif ended[1] and self._is_xml:
                at = ended[0]
            else:
                at = self._enter(name, opened, *ended)
        return None

    def _no_tag_end(self, opened: re.Match[bytes]) -> int | None:
        """Return the end of a comment, or of what the standard treats as one."""
        page, at = self._page, opened.end()
        if opened[1]:
            comment = _NO_COMMENT.match(page, at) or _COMMENT_END.search(page, at)
            return comment.end() if comment else None
        if opened[4] and self._foreign and not self._foreign[-1].is_point:
            behind = page.find(b"]]>", at)
            return behind + 3 if behind >= 0 else None
        behind = page.find(b">", opened.start() + 2)
        return behind + 1 if behind >= 0 else None

    def _is_foreign(self, name: bytes, opened: re.Match[bytes], behind: int) -> bool:
        """Tell whether an element belongs to SVG or MathML; some HTML elements end these."""
        if not self._foreign or self._foreign[-1].is_point:
            return False
        breaks = name in _BREAKING
        if name == b"font":
            attributes = tag_attributes(self._page, opened.end(), behind)
            breaks = not attributes.keys().isdisjoint((b"color", b"face", b"size"))
        if breaks:
            self._break()
        return not breaks

    def _push(self, name: bytes, kind: bytes) -> None:
        self._foreign.append(_Foreign(name, kind, (kind, name) in _POINTS))
        self._depths[name] += 1

    def _pop(self) -> bytes:
        name = self._foreign.pop().name
        self._depths[name] -= 1
        return name

    def _break(self) -> None:
        """Close SVG and MathML elements up to one whose content is HTML."""
        while self._foreign and not self._foreign[-1].is_point:
            self._pop()

    def _enter(self, name: bytes, opened: re.Match[bytes], behind: int, closes: bool) -> int | None:
        """Note an HTML element's start; return the offset to continue at, None to stop."""
        self._names.add(name)
        if name == b"html" and not self._templates:
            for key, value in tag_attributes(self._page, opened.end(), behind).items():
                self.languages.setdefault(key, value)
        elif name in (b"svg", b"math"):
            if not closes:
                self._push(name, name)
        elif name == b"template":
            self._templates += 1
        elif name == b"plaintext" or (name == b"frameset" and self._may_have_frames):
            return None
        self._may_have_frames = self._may_have_frames and name in _HEAD
        if name == b"script":
            return self._script_end(behind)
        if name in _TEXTS:
            end = _TEXTS[name].search(self._page, behind)
            return end.start() if end else None
        return behind

    def _leave(self, name: bytes) -> None:
        if self._depths.get(name):
            while self._pop() != name:
                pass
            return
        if name in (b"p", b"br") or name in self._names:
            self._break()
        if name == b"template" and self._templates:
            self._templates -= 1

    def _script_end(self, at: int) -> int | None:
        """Return the offset of a script's end tag (section 13.2.5.15 on)."""
        is_escaped = is_nested = False
        for match in _SCRIPT.finditer(self._page, at):
            if match[2] or match[1]:
                is_escaped = is_nested = False
            elif match[3] is None:
                is_escaped = True
            elif not match[3]:
                is_nested = is_escaped
            elif is_nested:
                is_nested = False
            else:
                return match.start()
        return None


_TITLE_LENGTH = 2000  # characters
_TITLE_WITHIN = 1 << 14  # the most bytes of a title
_SPACE = re.compile(r"\s+")
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ILLEGAL_REFERENCE = re.compile(
    r"&#(?:0*(?:[1-8]|11|1[4-9]|2\d|3[01])(?!\d)|x0*(?:[1-8bef]|1[\da-f])(?![\da-f]))",
    re.IGNORECASE,
)
"""References to characters that XML forbids; resolving them leaves nothing."""
_LANGUAGE = re.compile(r"[a-z]{2,3}")


def title_and_language(
    head: bytes, charset: str, *, is_xml: bool = False
) -> tuple[str | None, str | None, bool]:
    """Return a page's title and its html element's language from the page's first bytes.

    With `is_xml`, the page is XHTML that is served as such. The third value tells whether the title
    held characters that XML forbids; they are removed.
    """
    if charset in UNLIKE_ASCII:
        head = decoder(charset).decode(head).encode("utf-8", "replace")
        charset = "utf-8"
    title, declared = read_plain_head(head) or find_title(head, is_xml=is_xml)
    language = unescape(_decode_text(declared, charset)) if declared else None
    if not title:
        return None, language, False
    raw = _decode_text(title[:_TITLE_WITHIN], charset)
    text = unescape(raw)
    legal = _ILLEGAL.sub("", text)
    illegal = len(legal) != len(text) or _ILLEGAL_REFERENCE.search(raw) is not None
    cleaned = _SPACE.sub(" ", legal).strip()[:_TITLE_LENGTH].rstrip()
    return cleaned or None, language, illegal


def languages(declared: str | None) -> str | None:
    """Return the primary subtags of language tags (RFC 5646), comma separated, without repeats."""
    if not declared:
        return None
    tags = (tag.strip().lower().replace("_", "-").partition("-")[0] for tag in declared.split(","))
    return ",".join(dict.fromkeys(tag for tag in tags if _LANGUAGE.fullmatch(tag))) or None


def _decode_text(data: bytes, charset: str) -> str:
    """Decode text of a page; NUL becomes U+FFFD, as in titles (HTML, section 13.2.5.2)."""
    return decoder(charset).decode(data, final=True).replace("\0", "\ufffd")
