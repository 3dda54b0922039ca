"""Tags of an HTML page, the head of a plain page, and the page's character encoding.

Tags follow the standard's tokenizer (HTML, sections 13.2.5.6 to 13.2.5.40). They are read as
bytes, in any encoding whose bytes for `<`, `>`, `=`, `/` and quotes are ASCII and have no other
meaning. A plain page has only unambiguous markup up to its title's end: complete tags with quoted
or simple attributes, comments, scripts and styles without any `<`, and a title without `<`. Most
pages are plain so far, and the search in `html` takes many times as long for them.

An encoding has its WHATWG name. The order is the standard's (HTML, section 13.2.3.2): byte order
mark, HTTP header, the page's declaration, detection. There are two differences. A declaration is
sought in 4,096 bytes instead of 1,024, since old pages begin with long scripts. UTF-8 is
detected; browsers do not detect it, so that authors do not rely on it. As in browsers, ISO-2022-JP
is not detected: escape sequences could hide markup.
"""

import codecs
import re
from typing import NamedTuple

import webencodings
from chardetng_py import EncodingDetector

SPACE = rb"\t\n\f\r "
"""White space of HTML, for a character class in a regular expression."""

UNLIKE_ASCII = frozenset({"utf-16le", "utf-16be", "iso-2022-jp"})
"""Encodings whose ASCII bytes are not always ASCII characters."""

TAG_NAME = rb"[a-zA-Z][^" + SPACE + rb"/>]*+"
"""A tag's name behind `<` or `</`, as a regular expression."""

# An unclosed quote runs to the end of the page.
_VALUE = rb"(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^" + SPACE + rb">\"'][^" + SPACE + rb">]*+)"
_EQUALS = rb"[" + SPACE + rb"]*+=[" + SPACE + rb"]*+"
_ATTRIBUTE = rb"[^" + SPACE + rb"/>][^" + SPACE + rb"/>=]*+(?:" + _EQUALS + _VALUE + rb"?+)?+"
_ATTRIBUTES = re.compile(rb"(?:[" + SPACE + rb"]++|/(?!>)|" + _ATTRIBUTE + rb")*+(/?)>")
_EACH = re.compile(
    rb"([^" + SPACE + rb"/>][^" + SPACE + rb"/>=]*+)(?:" + _EQUALS + rb"(" + _VALUE + rb"?+))?+"
)
_PRESCAN = 1 << 12  # bytes
_DETECTED = 1 << 14  # bytes, from the first non-ASCII byte on
_BEFORE = 64  # bytes of ASCII before them for the detector
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_UNMARKED = re.compile(rb"(?:<\x00[!-~]\x00)|(\x00<\x00[!-~])")  # UTF-16 without a mark
_HIGH = re.compile(rb"[\x80-\xff]")
_NAMES = {"cp874": "windows-874", "gb18030": "gbk"}
"""Python's names that the detector returns, and their WHATWG names."""
_TOP_LEVEL = re.compile(r"[a-z](?:[a-z0-9\-]{0,61}[a-z0-9])?")

_XML = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']\s*([^"'\s>]+)""")
_OPENED = re.compile(rb"<(?:(!--)|(/?" + TAG_NAME + rb")|[!?/])")
_WITHIN = re.compile(
    rb"charset[" + SPACE + rb"]*+=[" + SPACE + rb"]*+"
    rb"(?:\"([^\"]*+)\"|'([^']*+)'|([^" + SPACE + rb";\"'][^" + SPACE + rb";]*+))",
    re.IGNORECASE,
)


def tag_end(page: bytes, at: int) -> tuple[int, bool] | None:
    """Return the end of a tag whose attributes begin at `at`, and whether it closes itself.

    None if the page ends first: then the tag does not count.
    """
    match = _ATTRIBUTES.match(page, at)
    return (match.end(), bool(match[1])) if match else None


def tag_attributes(page: bytes, at: int, behind: int) -> dict[bytes, bytes]:
    """Return the attributes between `at` and `behind`, the end of their tag.

    Names are in lower case, values as written; the first of a repeated name counts.
    """
    attributes: dict[bytes, bytes] = {}
    for match in _EACH.finditer(page, at, behind - 1):
        value = match[2] or b""
        is_quoted = value[:1] in (b'"', b"'")
        attributes.setdefault(match[1].lower(), value[1:-1] if is_quoted else value)
    return attributes


_PLAIN_ATTRIBUTE = (
    rb"[ \t\r\n\f]++[a-zA-Z][a-zA-Z0-9:_\-]*+"
    rb"""(?:[ \t\r\n\f]*+=[ \t\r\n\f]*+(?:"[^"<>\x00]*+"|'[^'<>\x00]*+'|[a-zA-Z0-9_.:#;,\-]++))?+"""
)
_PLAIN_SPACE = rb"[ \t\r\n]*+"
_DOCTYPE = (
    rb"""(?:<\?xml [^<>?\x00]*+\?>)?+"""
    + _PLAIN_SPACE
    + rb"""(?:<!doctype[ \t\r\n\f]++html(?:[ \t\r\n\f]++public)?+"""
    rb"""(?:[ \t\r\n\f]++"[^"<>\x00]*+"){0,2}+[ \t\r\n\f]*+>)?+""" + _PLAIN_SPACE
)
_BEFORE_TITLE = (
    rb"(?:<(?:head|meta|link|base)(?:" + _PLAIN_ATTRIBUTE + rb")*+[ \t\r\n\f]*+/?+>"
    rb"|<!--(?:[^<>\-\x00]++|-[^<>\-\x00])*+-->"
    rb"|<script(?:" + _PLAIN_ATTRIBUTE + rb")*+[ \t\r\n\f]*+>[^<\x00]*+</script>"
    rb"|<style(?:" + _PLAIN_ATTRIBUTE + rb")*+[ \t\r\n\f]*+>[^<\x00]*+</style>"
    rb"|[ \t\r\n]++)*+"
)
_START = re.compile(
    _PLAIN_SPACE + _DOCTYPE + rb"(?:<html((?:" + _PLAIN_ATTRIBUTE + rb")*+)[ \t\r\n\f]*+>)?+",
    re.IGNORECASE,
)
_TITLE = re.compile(_BEFORE_TITLE + rb"<title>([^<\x00]*+)</title>", re.IGNORECASE)
_LANGUAGE = re.compile(
    rb"""[ \t\r\n\f](xml:)?lang[ \t\r\n\f]*+=[ \t\r\n\f]*+"""
    rb"""(?:"([^"]*+)"|'([^']*+)'|([^ \t\r\n\f"']++))""",
    re.IGNORECASE,
)
_SIMPLE_LANGUAGE = re.compile(rb"[a-zA-Z][a-zA-Z0-9_,\-]*")


def read_plain_head(head: bytes) -> tuple[bytes, bytes | None] | None:
    """Return title and language of a page in an ASCII-compatible encoding; None if not plain."""
    start = _START.match(head)
    title = start and _TITLE.match(head, start.end())
    if not start or not title:
        return None
    attributes = start[1]
    if not attributes or b"lang" not in attributes.lower():
        return title[1], None
    languages = _LANGUAGE.findall(attributes)
    if len(languages) != attributes.lower().count(b"lang"):
        return None
    values = {prefix.lower(): a or b or c for prefix, a, b, c in reversed(languages)}
    language = values.get(b"") or values.get(b"xml:")
    if language is None or not _SIMPLE_LANGUAGE.fullmatch(language):
        return None
    return title[1], language


class Charset(NamedTuple):
    """An encoding's WHATWG name; `source` is declared, marked, detected or assumed."""

    name: str
    source: str


def whatwg_name(label: str | None) -> str | None:
    """Return the WHATWG name of the encoding with this label, None if it is unknown."""
    if not label:
        return None
    encoding = webencodings.lookup(label)
    return encoding.name if encoding else None


def detect_bom(head: bytes) -> str | None:
    """Return the encoding of a byte order mark."""
    return next((name for mark, name in _BOMS if head.startswith(mark)), None)


def xml_declaration(head: bytes) -> str | None:
    """Return the encoding that an XML declaration names."""
    match = _XML.match(head[:_PRESCAN])
    return _ascii_compatible(match[1].decode("latin-1")) if match else None


def html_declaration(head: bytes) -> str | None:
    """Return the encoding that a page's meta element or XML declaration names."""
    start = head[:_PRESCAN]
    lower = start.lower()
    last = lower.rfind(b"<meta") if b"charset" in lower else -1
    name = _prescan(start, last) if last >= 0 else None
    return name or xml_declaration(start)


def html_charset(head: bytes, host: str | None) -> Charset:
    """Return the encoding of an HTML page without a mark and without a charset in HTTP."""
    declared = html_declaration(head)
    return Charset(declared, "declared") if declared else detect(head, host)


def detect(head: bytes, host: str | None) -> Charset:
    """Return the encoding of a page without declaration, by its first bytes and its host.

    If the bytes show nothing, ASCII is assumed to be UTF-8. Other pages are assumed to have the
    usual encoding of the host's top-level domain.
    """
    if unmarked := _UNMARKED.match(head):
        return Charset("utf-16be" if unmarked[1] else "utf-16le", "detected")
    high = _HIGH.search(head)
    if high is None:
        return Charset("utf-8", "assumed")
    start = max(high.start() - _BEFORE, 0)
    detector = EncodingDetector()
    # Not marked as last: a truncated payload may end within a character.
    detector.feed(head[start : high.start() + _DETECTED], last=False)
    label = host.rpartition(".")[2] if host else ""
    guess, is_better = detector.guess_assess(
        tld=label.encode("ascii") if _TOP_LEVEL.fullmatch(label) else None, allow_utf8=True
    )
    name = _NAMES.get(guess) or whatwg_name(guess) or "windows-1252"
    return Charset(name, "detected" if is_better else "assumed")


def decoder(name: str) -> codecs.IncrementalDecoder:
    """Return a decoder for the encoding with a WHATWG name, which replaces invalid bytes."""
    encoding = webencodings.lookup(name) or webencodings.UTF8
    return encoding.codec_info.incrementaldecoder("replace")


def _ascii_compatible(label: str) -> str | None:
    """Return a label's encoding. The label was read as ASCII, so it cannot be UTF-16."""
    name = whatwg_name(label)
    if name in ("utf-16le", "utf-16be"):
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name


def _prescan(start: bytes, last: int) -> str | None:
    """Return the encoding that a meta element names (HTML, section 13.2.3.2, prescan).

    `last` is the offset of the last such element.
    """
    at = 0
    while at <= last and (opened := _OPENED.search(start, at)):
        if opened[2]:
            ended = tag_end(start, opened.end())
            if ended is None:
                return None
            if opened[2].lower() == b"meta":
                name = _meta_charset(tag_attributes(start, opened.end(), ended[0]))
                if name:
                    return name
            at = ended[0]
            continue
        mark = b"-->" if opened[1] else b">"
        at = start.find(mark, opened.start() + 2)
        if at < 0:
            return None
    return None


def _meta_charset(attributes: dict[bytes, bytes]) -> str | None:
    if b"charset" in attributes:
        return _ascii_compatible(attributes[b"charset"].decode("latin-1"))
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    within = _WITHIN.search(attributes.get(b"content", b""))
    label = next((text for text in within.groups() if text is not None), b"") if within else b""
    return _ascii_compatible(label.decode("latin-1"))
