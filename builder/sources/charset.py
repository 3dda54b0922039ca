"""Character encodings by their WHATWG names, and how the one of a page is determined.

The order is the standard's (HTML, section 13.2.3.2): byte order mark, HTTP header, the page's own
declaration, detection. Two things differ. A declaration is looked for in 4,096 bytes instead of
1,024, since old pages begin with long scripts. UTF-8 is detected, which browsers refuse to do
lest authors rely on it. ISO-2022-JP is not detected, as in browsers: escape sequences could
hide markup.
"""

import codecs
import re
from typing import NamedTuple

import webencodings
from chardetng_py import EncodingDetector

from builder.sources import html_tags

_PRESCAN = 1 << 12  # bytes
_DETECTED = 1 << 14  # bytes, from the first one beyond ASCII on
_BEFORE = 64  # bytes of ASCII before these, which the detector sees as well
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_UNMARKED = re.compile(rb"(?:<\x00[!-~]\x00)|(\x00<\x00[!-~])")  # UTF-16 without a mark
_HIGH = re.compile(rb"[\x80-\xff]")
_NAMES = {"cp874": "windows-874", "gb18030": "gbk"}
"""WHATWG names of what the detector gives by Python's names."""
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
    """An encoding's WHATWG name, and whether it was declared, marked, detected or assumed."""

    name: str
    source: str


def whatwg_name(label: str | None) -> str | None:
    """Return the WHATWG name of the encoding with this label, None if there is none such."""
    if not label:
        return None
    encoding = webencodings.lookup(label)
    return encoding.name if encoding else None


def detect_bom(head: bytes) -> str | None:
    """Return the encoding that a byte order mark shows."""
    return next((name for mark, name in _BOMS if head.startswith(mark)), None)


def xml_declaration(head: bytes) -> str | None:
    """Return the encoding that an XML declaration names."""
    match = _XML.match(head[:_PRESCAN])
    return _ascii_compatible(match[1].decode("latin-1")) if match else None


def html_declaration(head: bytes) -> str | None:
    """Return the encoding that a page's meta element names, or its XML declaration."""
    start = head[:_PRESCAN]
    lower = start.lower()
    last = lower.rfind(b"<meta") if b"charset" in lower else -1
    found = _prescan(start, last) if last >= 0 else None
    return found or xml_declaration(start)


def html_charset(head: bytes, host: str | None) -> Charset:
    """Return what a page of HTML is in of which neither a mark nor HTTP tells."""
    declared = html_declaration(head)
    return Charset(declared, "declared") if declared else detect(head, host)


def detect(head: bytes, host: str | None) -> Charset:
    """Return what a page that declares nothing is in, by its first bytes and its host.

    Of the host its top-level domain counts. Where the bytes show nothing, UTF-8 is assumed for
    ASCII alone, and for others what is usual in the domain.
    """
    if unmarked := _UNMARKED.match(head):
        return Charset("utf-16be" if unmarked[1] else "utf-16le", "detected")
    high = _HIGH.search(head)
    if high is None:
        return Charset("utf-8", "assumed")
    start = max(high.start() - _BEFORE, 0)
    detector = EncodingDetector()
    # It is not told of the end: a payload that was cut off may end within a character.
    detector.feed(head[start : high.start() + _DETECTED], last=False)
    guess, is_better = detector.guess_assess(tld=_top_level(host), allow_utf8=True)
    name = _NAMES.get(guess) or whatwg_name(guess) or "windows-1252"
    return Charset(name, "detected" if is_better else "assumed")


def decoder(name: str) -> codecs.IncrementalDecoder:
    """Return a decoder for the encoding with a WHATWG name, which replaces what is wrong."""
    encoding = webencodings.lookup(name) or webencodings.UTF8
    return encoding.codec_info.incrementaldecoder("replace")


def _top_level(host: str | None) -> bytes | None:
    """Return a host's last label where it is a top-level domain: the detector takes no other."""
    label = host.rpartition(".")[2] if host else ""
    return label.encode("ascii") if _TOP_LEVEL.fullmatch(label) else None


def _ascii_compatible(label: str) -> str | None:
    """Return the encoding with a label that was read as ASCII, so that it is none of UTF-16."""
    name = whatwg_name(label)
    if name in ("utf-16le", "utf-16be"):
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name


def _prescan(start: bytes, last: int) -> str | None:
    """Return the encoding that a meta element names (HTML, section 13.2.3.2, prescan).

    No such element begins behind `last`.
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
