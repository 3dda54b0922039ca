"""The payload of a record: its digest, its length, its first bytes, and its media type.

There are two media types: the declared one, and the one that the first bytes show. The table
follows the WHATWG MIME Sniffing Standard (sections 6 and 7.1) with two differences: a byte order
mark before HTML or XML does not hide them, and XHTML and SVG are told from other XML. Plain bytes
without a mark have no type.
"""

import hashlib
import re
from base64 import b32encode
from dataclasses import dataclass, field
from functools import lru_cache

from functions.archive.coding import decode_head
from functions.archive.declared_digest import DeclaredDigest, parse_digest
from functions.archive.message import ChunkedDecoder, HttpHead
from functions.archive.record import RecordBlock, RecordFault, RecordHeader

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
_FIRST_BYTES = frozenset(m[1][0] for m in _MAGIC if m[0] == 0) | frozenset(b"RF")
_CACHED = 200  # the most bytes of a declaration in the cache
_UNKNOWN = frozenset({"no-type", "unk", "unknown", "unknown/unknown", "application/unknown"})


@dataclass(slots=True)
class Payload:
    """A payload as stored, behind the HTTP head and before decoding."""

    digest: str = ""
    """SHA-1 in base32; empty if the payload's bytes are uncertain."""
    length: int = 0
    head: bytes = b""
    """The first bytes without transfer and content codings; empty if they cannot be decoded."""
    faults: list[RecordFault] = field(default_factory=list)
    matches_declared: bool = False
    """Whether it has the declared digest, which proves it complete."""


def read_declared(
    record: RecordHeader, faults: list[RecordFault], message: HttpHead | None
) -> DeclaredDigest | None:
    """Return the payload digest that a record declares; an unreadable one is a fault.

    Without an HTTP `message` the payload is the block, whose digest counts (ISO 28500, 5.8). That
    of a revisit without a block is the digest of what it leaves out, unless it is of no bytes.
    """
    text = record.fields.get(b"warc-payload-digest")
    if not text and message is None and (record.type != "revisit" or not record.length):
        digest = parse_digest(record.fields.get(b"warc-block-digest", b""))
        if digest and digest.value == hashlib.new(digest.algorithm, usedforsecurity=False).digest():
            return None  # of no bytes
        return digest
    if not text:
        return None
    declared = parse_digest(text)
    if declared is None:
        detail = text[:100].decode("latin-1").encode("unicode_escape").decode("ascii")
        done = "published without it" if record.type == "revisit" else "not compared"
        faults.append(("digest-unreadable", "WARC-Payload-Digest", detail, done))
    return declared


def read_payload(
    block: RecordBlock,
    first: bytes,
    message: HttpHead | None,
    declared: DeclaredDigest | None,
    limit: int,
) -> Payload:
    """Read the rest of `block`, whose bytes `first` were already read.

    `limit` bounds the head, in bytes before and after decoding. The declared digest is compared
    with that of the stored payload and, if it is chunked, with that of the de-chunked one.
    """
    coded = message is not None and message.has_codings()
    chunked = coded and message is not None and "chunked" in message.tokens(b"transfer-encoding")
    hashes, data, length = _Hashes(declared, chunked), b"", 0
    piece = first or block.take()
    while piece:
        hashes.update(piece)
        length += len(piece)
        if len(data) < limit:
            data += piece[: limit - len(data)]
        piece = block.take()
    payload = Payload(length=length)
    if declared is not None and not block.missing:
        payload.faults += hashes.compare(declared)
        payload.matches_declared = not payload.faults
    proven = payload.matches_declared and declared and declared.algorithm == "sha1" and not chunked
    payload.digest = (
        declared.text() if declared and proven else b32encode(hashes.sha1.digest()).decode("ascii")
    )
    if chunked:
        decoder = ChunkedDecoder()
        data = decoder.feed(data) + decoder.flush()
    codings = message.codings() if coded and message else []
    if codings and data:
        decoded, wrong = decode_head(data, codings, limit)
        if wrong:
            done = "type and title not read" if decoded is None else "read without decoding"
            payload.faults.append(("content-encoding-undecoded", "Content-Encoding", wrong, done))
        data = decoded or b""
    payload.head = data
    return payload


class _Hashes:
    """The required digests of one payload, computed in pieces."""

    def __init__(self, declared: DeclaredDigest | None, chunked: bool) -> None:
        self.sha1 = hashlib.sha1(usedforsecurity=False)
        name = declared.algorithm if declared else "sha1"
        self._raw = hashlib.new(name, usedforsecurity=False) if name != "sha1" else None
        self._decoder = ChunkedDecoder() if chunked and declared else None
        self._decoded = hashlib.new(name, usedforsecurity=False) if self._decoder else None

    def update(self, piece: bytes) -> None:
        self.sha1.update(piece)
        if self._raw is not None:
            self._raw.update(piece)
        if self._decoder is not None and self._decoded is not None:
            self._decoded.update(self._decoder.feed(piece))

    def compare(self, declared: DeclaredDigest) -> list[RecordFault]:
        """Return a fault unless the stored or de-chunked bytes have the declared digest."""
        raw = (self._raw or self.sha1).digest()
        if raw == declared.value:
            return []
        if self._decoder is not None and self._decoded is not None:
            self._decoded.update(self._decoder.flush())
            if self._decoded.digest() == declared.value:
                return []
        computed = DeclaredDigest(declared.algorithm, raw).text()
        detail = f"declared {declared.text()}, found {computed}"
        return [
            ("digest-mismatch", "WARC-Payload-Digest", detail, "published with the computed one")
        ]


def essence(declared: bytes) -> str | None:
    """Return the type and subtype of a Content-Type in lower case; None if it is no media type."""
    return _essence(declared) if len(declared) <= _CACHED else _essence.__wrapped__(declared)


@lru_cache(maxsize=1 << 10)
def _essence(declared: bytes) -> str | None:
    match = _ESSENCE.match(declared)
    if not match:
        return None
    media_type = match[1].decode("ascii").lower()
    return None if media_type in _UNKNOWN else media_type


def detect_type(head: bytes) -> str | None:
    """Return the media type that a payload's first bytes show, None if they are not decisive."""
    if not head:
        return None
    if head[0] in _FIRST_BYTES:
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
