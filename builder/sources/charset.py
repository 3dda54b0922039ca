"""The character encoding of a page, by its WHATWG name.

The order is the standard's (HTML, section 13.2.3.2): byte order mark, HTTP header, the page's
declaration, detection. There are two differences. A declaration is sought in 4,096 bytes instead of
1,024, since old pages begin with long scripts. UTF-8 is detected; browsers do not detect it, so
that authors do not rely on it. As in browsers, ISO-2022-JP is not detected: escape sequences could
hide markup.
"""

import codecs
import re
from typing import NamedTuple

import webencodings
from chardetng_py import EncodingDetector

from builder.sources import html_tags

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
_OPENED = re.compile(rb"<(?:(!--)|(/?" + html_tags.TAG_NAME + rb")|[!?/])")
_WITHIN = re.compile(
    rb"charset[" + html_tags.SPACE + rb"]*+=[" + html_tags.SPACE + rb"]*+"
    rb"(?:\"([^\"]*+)\"|'([^']*+)'|([^"
    + html_tags.SPACE
    + rb";\"'][^"
    + html_tags.SPACE
    + rb";]*+))",
    re.IGNORECASE,
)


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
    found = _prescan(start, last) if last >= 0 else None
    return found or xml_declaration(start)


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
    guess, is_better = detector.guess_assess(tld=_top_level(host), allow_utf8=True)
    name = _NAMES.get(guess) or whatwg_name(guess) or "windows-1252"
    return Charset(name, "detected" if is_better else "assumed")


def decoder(name: str) -> codecs.IncrementalDecoder:
    """Return a decoder for the encoding with a WHATWG name, which replaces invalid bytes."""
    encoding = webencodings.lookup(name) or webencodings.UTF8
    return encoding.codec_info.incrementaldecoder("replace")


def _top_level(host: str | None) -> bytes | None:
    """Return a host's last label if it is a top-level domain: the detector takes no other."""
    label = host.rpartition(".")[2] if host else ""
    return label.encode("ascii") if _TOP_LEVEL.fullmatch(label) else None


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
            ended = html_tags.tag_end(start, opened.end())
            if ended is None:
                return None
            if opened[2].lower() == b"meta":
                found = _meta_charset(html_tags.tag_attributes(start, opened.end(), ended[0]))
                if found:
                    return found
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
