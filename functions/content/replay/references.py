"""References of pages: all those in HTML and in style sheets are found and replaced.

Tags are found by the rules of the HTML tokenizer (section 13.2.5); comments and the texts of
scripts are skipped. In style sheets the references are those by url() and @import. Their grammar
is that of CSS Syntax Module Level 3, section 4; an unterminated string ends with its line. The
time is linear in the length of the text, whatever it contains.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

LINK, IMAGE, STYLE, SCRIPT, FRAME, MEDIA = "link", "image", "style", "script", "frame", "media"
REFRESH = "refresh"
"""What a reference is for. Icons count as images, embedded objects as frames.

Fonts and the images of style sheets are media: nothing stands for those that are missing.

A refresh is a page that replaces this one within SOON seconds.
"""
SOON = 3

OFF = "\0"
"""Stands for a reference that must lead nowhere: its attribute is renamed."""

Reference = Callable[[str, str], str | None]
"""Returns the replacement of a reference with a purpose: None to keep it, or OFF."""

Decode = Callable[[str], str]
"""Decodes a part of a page, which may have been read byte by byte."""

Link = Callable[[str, str], tuple[str | None, str]]
"""Returns the replacement of a link with a target, and its new target ("": none)."""


@dataclass(frozen=True, slots=True)
class ReferenceRules:
    """How the references of a page are replaced.

    With `link`, the page is shown by an archive: links have their own rule, lazy images are loaded
    at once, and whatever could leave the page is disabled. `depth` counts pages within attributes.
    """

    reference: Reference
    decode: Decode
    link: Link | None = None
    target: str = ""
    depth: int = 0


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
_PASSED = re.compile(
    # Most of a page: text, and tags with nothing but attributes of no interest.
    r"(?:[^<]++|</?(?!(?:script|style|textarea|title|xmp|iframe|noembed|noframes)[\s/>])"
    r"[a-z][^\s/><]*+(?:\s++(?:class|id|title|alt|width|height|v?align|border|cell(?:padd|spac)ing"
    r"|(?:col|row)span|name|lang|dir|role|tabindex|type|value|rel|bgcolor|color|face|size|nowrap"
    r"|aria-[a-z]++|on[a-z]++)(?:=(?:\"[^\"]*+\"|'[^']*+'|[^\s\"'>]++))?+)*+\s*+/?+>)*+",
    re.IGNORECASE,
)
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
_BASE = re.compile(r"<base[\s/>]", re.IGNORECASE)
_COMMENT_END = re.compile(r"-?>|.*?--!?>", re.DOTALL)
_DELAY = re.compile(r"\s*+(?P<seconds>[0-9.]*+)\s*+[;,]?\s*+(?:url\s*+=\s*+)?", re.IGNORECASE)
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
_URLS_SHOWN = frozenset({"manifest", "codebase", "icon", "profile"})
_OFF_SHOWN = frozenset({"ping", "attributionsrc"})
_OFF_WORDS = frozenset({"set-cookie", "x-dns-prefetch-control"})
_LINKS = frozenset({"a", "area"})
_LAZY = {
    **dict.fromkeys(("data-src", "data-original", "data-lazy-src", "data-lazy"), "src"),
    **dict.fromkeys(("data-srcset", "data-lazy-srcset"), "srcset"),
}
"""Attributes from which scripts, which do not run, would set those that a browser loads."""
_LAZY_ELEMENTS = frozenset({"img", "source", "iframe"})
_SETS = frozenset({"srcset", "imagesrcset", "data-srcset"})
_NOTED = {*_URLS, *_OFF, *_URLS_SHOWN, *_OFF_SHOWN, *_LAZY, *_SETS} | {
    *("target", "http-equiv", "style", "content", "srcdoc")
}
"""Attributes that may be changed."""
_ROLES = {
    **dict.fromkeys(("iframe", "frame", "object", "embed", "portal"), FRAME),
    **dict.fromkeys(("video", "audio", "source", "track", "bgsound"), MEDIA),
    **dict.fromkeys(("blockquote", "q", "ins", "del", "html", "form"), LINK),
    **dict.fromkeys(("img", "image", "use", "feimage"), IMAGE),
    "script": SCRIPT,
}
_PRELOADED = {"style": STYLE, "script": SCRIPT, "document": FRAME, "font": MEDIA}


def rewrite_css(text: str, reference: Reference) -> str:
    """Return a style sheet or declaration list with its references replaced by `reference`."""

    def replace_reference(match: re.Match[str]) -> str:
        if match["url"] is None and match["imports"] is None:
            return match[0]
        written = next((match[name] for name in "abcde" if match[name] is not None), "")
        before = text[max(0, match.start() - 20) : match.start()].rstrip()
        is_import = match["imports"] or before.lower().endswith("@import")
        target = reference(_ESCAPE.sub(_unescape, written), STYLE if is_import else MEDIA)
        if target is None:
            return match[0]
        target = "" if target == OFF else target
        quoted = f'"{_UNSAFE.sub(lambda odd: f"%{ord(odd[0]):02X}", target)}"'
        return f"url({quoted})" if match["url"] is not None else f"{match['imports']}{quoted}"

    return _TOKEN.sub(replace_reference, text)


def _unescape(match: re.Match[str]) -> str:
    """Return the characters of an escape (section 4.3.7)."""
    if match[1]:
        code = int(match[1], 16)
        return "�" if not 0 < code <= 0x10FFFF or 0xD800 <= code < 0xE000 else chr(code)
    return match[3] or ""


class _Attribute(NamedTuple):
    """An attribute: its name in lower case, its value as written, and the offsets of both."""

    name: str
    value: str
    start: int
    value_start: int
    end: int


class _Tag(NamedTuple):
    name: str
    attributes: tuple[_Attribute, ...]
    end: int

    def value(self, name: str, decode: Callable[[str], str]) -> str:
        """Return the value of the first attribute of that name, or ""."""
        values = (attribute.value for attribute in self.attributes if attribute.name == name)
        return html.unescape(decode(next(values, "")))


def rewrite_html(text: str, rules: ReferenceRules) -> str:
    """Return a page with its references replaced, and its base element disabled.

    Policies and integrity checks in the page that would prevent viewing it elsewhere are disabled
    too. Inserted text is ASCII.
    """
    pieces: list[str] = []
    at = 0
    for start, end, new in _changes(text, rules):
        pieces += (text[at:start], new)
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


def find_base(text: str, decode: Decode) -> tuple[str, str]:
    """Return address and target of the base elements of a page, each "" if there is none."""
    if not _BASE.search(text):
        return "", ""
    bases = [tag for tag in _tags(text) if tag.name == "base"]
    address, target = (
        next(filter(None, (tag.value(name, decode).strip() for tag in bases)), "")
        for name in ("href", "target")
    )
    return address, target


def _changes(text: str, rules: ReferenceRules) -> Iterator[tuple[int, int, str]]:
    for tag in _tags(text):
        yield from _tag_changes(tag, rules)
        if tag.name == "style":
            end = _raw_end(text, tag)
            inner = text[tag.end : end]
            new = rewrite_css(inner, lambda url, role: rules.reference(rules.decode(url), role))
            if new != inner:
                yield tag.end, end, new


def _tag_changes(tag: _Tag, rules: ReferenceRules) -> Iterator[tuple[int, int, str]]:
    is_refresh = (
        tag.name == "meta" and tag.value("http-equiv", rules.decode).strip().lower() == "refresh"
    )
    lazy: Mapping[str, str] = {}
    if rules.link is not None and tag.name in _LAZY_ELEMENTS:
        lazy = {a.name: _LAZY[a.name] for a in tag.attributes if a.name in _LAZY and a.value}
    for attribute in tag.attributes:
        if attribute.name not in _NOTED:
            continue
        value = html.unescape(rules.decode(attribute.value))
        if attribute.name in lazy.values() or _is_off(tag, attribute.name, value, rules):
            yield attribute.start, attribute.start, "data-"
            continue
        name = lazy.get(attribute.name, attribute.name)
        new = _rewrite_value(tag, name, value, rules, is_refresh=is_refresh)
        if isinstance(new, tuple):
            new, target = new
            if target and new not in (None, OFF):
                yield attribute.start, attribute.start, f'target="{_escape(target)}" '
        if new == OFF:
            yield attribute.start, attribute.start, "data-"
        elif name != attribute.name:
            written = value if new is None else new
            yield attribute.start, attribute.end, f'{name}="{_escape(written)}"'
        elif new is not None and new != value:
            yield attribute.value_start, attribute.end, f'"{_escape(new)}"'


def _escape(text: str) -> str:
    """Return a text as the value of an attribute, in ASCII."""
    quoted = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return quoted.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _is_off(tag: _Tag, name: str, value: str, rules: ReferenceRules) -> bool:
    is_shown = rules.link is not None
    if tag.name == "base":
        return name == "href" or (is_shown and name == "target")
    if tag.name == "meta" and name == "http-equiv":
        word = value.strip().lower()
        return word.startswith("content-security") or (is_shown and word in _OFF_WORDS)
    if is_shown and (name in _OFF_SHOWN or (name == "target" and tag.name in _LINKS)):
        return True
    return name in _OFF


def _rewrite_value(
    tag: _Tag, name: str, value: str, rules: ReferenceRules, *, is_refresh: bool
) -> str | tuple[str | None, str] | None:
    """Return the new value of an attribute, of a link also the target; None if it stays."""
    if name in _SETS:
        return _images(value, rules.reference)
    if name == "style":
        return rewrite_css(value, rules.reference)
    if name == "content":
        return _refresh(value, rules.reference) if is_refresh else None
    if name == "srcdoc" and rules.link is not None:
        inner = replace(rules, decode=str, depth=rules.depth + 1)
        return OFF if rules.depth else rewrite_html(value, inner)
    if name not in _URLS and (rules.link is None or name not in _URLS_SHOWN):
        return None
    elements = _URLS.get(name)
    if elements is not None and tag.name not in elements:
        return None
    if rules.link is not None and tag.name in _LINKS and name in ("href", "xlink:href"):
        return rules.link(value, tag.value("target", rules.decode).strip() or rules.target)
    return rules.reference(value, _role(tag, name, rules.decode))


def _role(tag: _Tag, name: str, decode: Decode) -> str:
    """Return what the reference in an attribute is for."""
    if tag.name == "link":
        words = tag.value("rel", decode).lower().split()
        if "stylesheet" in words:
            return STYLE
        if "preload" in words or "prefetch" in words or "modulepreload" in words:
            kind = tag.value("as", decode).strip().lower()
            return _PRELOADED.get(kind, IMAGE)
        return IMAGE if any("icon" in word or word == "image_src" for word in words) else LINK
    if name in ("poster", "lowsrc", "dynsrc"):
        return IMAGE
    if name == "background":
        return MEDIA
    return _ROLES.get(tag.name, LINK if name in ("href", "action", "formaction") else IMAGE)


def _refresh(value: str, reference: Reference) -> str:
    delay = _DELAY.match(value)
    at = delay.end() if delay else 0
    written = value[at:].rstrip()
    if written[:1] in ('"', "'"):
        written = written[1:].partition(written[0])[0]
    seconds = (delay["seconds"] if delay else "").partition(".")[0]
    role = REFRESH if int(seconds[:9] or 0) <= SOON else FRAME
    new = reference(written, role) if written else None
    if new == OFF:
        return OFF
    return value if new is None else value[:at] + new


def _images(value: str, reference: Reference) -> str:
    """Rewrite the candidates of a source set (HTML, section 4.8.4.2.1)."""
    pieces = []
    for match in _CANDIDATE.finditer(value):
        if url := match[1]:
            new = reference(url, IMAGE)
            words = (url if new is None else new, (match[2] or "").strip())
            pieces.append(" ".join(filter(None, words)))
    return ", ".join(pieces)


def _tags(text: str) -> Iterator[_Tag]:
    """Yield the start tags, except those in comments and in raw text."""
    at = 0
    while match := _OPENED.search(text, _PASSED.match(text, at).end()):  # type: ignore[union-attr]
        if match[1]:
            closed = _COMMENT_END.match(text, match.end())
            if closed is None:
                return
            at = closed.end()
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
