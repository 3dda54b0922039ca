"""Media types: the declared one, and the one that the first bytes show.

The table follows the WHATWG MIME Sniffing Standard (sections 6 and 7.1) with two differences: a
byte order mark before HTML or XML does not hide them, and XHTML and SVG are told from other XML.
Plain bytes without a mark have no type.
"""

import re
from functools import lru_cache

_ESSENCE = re.compile(
    rb"\s*([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,80}/[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,80})\s*(?:[;,]|$)"
)

_HTML = re.compile(
    rb"[\t\n\x0c\r ]*<(?:(?:!DOCTYPE HTML|HTML|HEAD|SCRIPT|IFRAME|H1|DIV|FONT|TABLE|A"
    rb"|STYLE|TITLE|B|BODY|BR|P)[ >]|!DOCTYPE HTML[\t\n\x0c\r]|(?:HTML|HEAD|BODY)[\t\n\x0c\r]|!--)",
    re.IGNORECASE,
)
_XML = re.compile(rb"[\t\n\x0c\r ]*<\?xml")
_XML_ROOT = re.compile(rb"<(?:[A-Za-z0-9_.\-]+:)?(html|svg)[\s>]", re.IGNORECASE)
_XML_TYPES = {b"html": "application/xhtml+xml", b"svg": "image/svg+xml"}
_SVG = re.compile(rb"[\t\n\x0c\r ]*<svg[\s>]")
_BOMS = (b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")

_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"%PDF-", "application/pdf"),
    (0, b"%!PS-Adobe-", "application/postscript"),
    (0, b"\x00\x00\x01\x00", "image/x-icon"),
    (0, b"\x00\x00\x02\x00", "image/x-icon"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (8, b"WEBPVP", "image/webp"),
    (8, b"AIFF", "audio/aiff"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"OggS\x00", "application/ogg"),
    (0, b"MThd\x00\x00\x00\x06", "audio/midi"),
    (8, b"AVI ", "video/avi"),
    (8, b"WAVE", "audio/wave"),
    (0, b"\x1a\x45\xdf\xa3", "video/webm"),
    (0, b"\x00\x01\x00\x00\x00", "font/ttf"),
    (0, b"OTTO", "font/otf"),
    (0, b"ttcf", "font/collection"),
    (0, b"wOFF", "font/woff"),
    (0, b"wOF2", "font/woff2"),
    (0, b"\x1f\x8b\x08", "application/gzip"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"Rar!\x1a\x07", "application/x-rar-compressed"),
)
_CONTAINERS = {b"WEBPVP": b"RIFF", b"AIFF": b"FORM", b"AVI ": b"RIFF", b"WAVE": b"RIFF"}
_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"M4A ": "audio/mp4",
}
_FIRST = frozenset(m[1][0] for m in _MAGIC if m[0] == 0) | frozenset(b"RF")
_CACHED = 200  # the most bytes of a declaration in the cache
_UNKNOWN = frozenset({"no-type", "unk", "unknown", "unknown/unknown", "application/unknown"})


def essence(declared: bytes) -> str | None:
    """Return the type and subtype of a Content-Type in lower case; None if it is no media type."""
    return _essence(declared) if len(declared) <= _CACHED else _essence.__wrapped__(declared)


@lru_cache(maxsize=1 << 10)
def _essence(declared: bytes) -> str | None:
    match = _ESSENCE.match(declared)
    if not match:
        return None
    found = match[1].decode("ascii").lower()
    return None if found in _UNKNOWN else found


def detect(head: bytes) -> str | None:
    """Return the media type that a payload's first bytes show, None if they are not decisive."""
    if not head:
        return None
    if head[0] in _FIRST:
        for at, magic, name in _MAGIC:
            if head.startswith(magic, at) and head.startswith(_CONTAINERS.get(magic, b"")):
                return name
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/quicktime" if head[8:12] == b"qt  " else "video/mp4")
    return _detect_markup(head)


def _detect_markup(head: bytes) -> str | None:
    start = head[3:] if head.startswith(_BOMS[0]) else head
    marked = head.startswith(_BOMS)
    if head[:2] in _BOMS:
        start = head[2:2050].replace(b"\x00", b"")  # enough to see ASCII markup in UTF-16
    if _HTML.match(start):
        return "text/html"
    if _XML.match(start):
        root = _XML_ROOT.search(start, 0, 1024)
        return _XML_TYPES[root[1].lower()] if root else "text/xml"
    if _SVG.match(start):
        return "image/svg+xml"
    return "text/plain" if marked else None
