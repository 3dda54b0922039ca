"""WARC/1.1 writer for responses of platforms, with one gzip member for each record.

A response record holds the response's header as received, and the file's bytes. If a content coding
was decoded, header fields that no longer describe the bytes are renamed.
"""

import hashlib
import uuid
import zlib
from base64 import b32encode
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from urllib.parse import urlsplit

from builder.filesets.item import Cdx, FileMeta, PlatformAnswer
from builder.filesets.protocols import Received, ZipSink
from builder.sources import identity
from functions import distribution
from functions.snapshot import instant

WARC = "warc"
"""Compression of a file in a WARC record: its offset is the start of the record's gzip member."""
LENGTH = "warc_length"
"""Key in `extra` of such a file: the size of the record's gzip member, in bytes."""

_CONFORMS = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_MEDIA_TYPE = "application/warc"
_GZIP = zlib.MAX_WBITS | 16
_LEVEL, _STORED = 4, 0
_SHRINKS = 0.95
"""Compression is used only if it shrinks a file's first bytes to this fraction."""
_RENAMED = "X-Archive-Orig-"
_TEXT = dict.fromkeys(range(32), " ")


@dataclass(frozen=True, slots=True)
class Placed:
    """Place of a record: offset and size of its gzip member, in bytes."""

    offset: int
    bytes: int


class WarcRecords:
    """Writes the WARC at `key` to a sink, beginning with a warcinfo record."""

    def __init__(self, sink: ZipSink, key: str, at: str, about: str) -> None:
        self._sink = sink
        self._key = key
        self._at = 0
        self._count = 0
        self._made = [hashlib.new(n, usedforsecurity=False) for n in ("md5", "sha1", "sha256")]
        fields = {
            "software": f"Sheaf {distribution.version()}",
            "format": "WARC File Format 1.1",
            "conformsTo": _CONFORMS,
            "description": about,
        }
        body = _fields(fields.items())
        head = {
            "WARC-Type": "warcinfo",
            "WARC-Filename": key.rpartition("/")[2],
            "WARC-Date": instant.to_text(instant.from_digits(at)),
            "Content-Type": "application/warc-fields",
        }
        self._record(head, len(body), [body], _LEVEL)

    def response(self, received: Received, payload: Iterable[bytes]) -> Placed:
        """Write a response record with the bytes of `payload`. Raises StoreError."""
        http = _head(received)
        pieces = iter(payload)
        first = next(pieces, b"")
        head = {
            "WARC-Type": "response",
            "WARC-Target-URI": received.terminal_url,
            "WARC-Date": instant.to_text(instant.from_digits(received.terminal_dt)),
            "WARC-Payload-Digest": f"sha1:{base32(received.sha1)}",
            "Content-Type": "application/http; msgtype=response",
        }
        blocks = chain([http, first], pieces)
        return self._record(head, len(http) + received.size, blocks, _level(first))

    def exchange(self, answer: PlatformAnswer) -> None:
        """Write a request and its response. Raises StoreError."""
        parts = urlsplit(answer.requested)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        fields = _fields((("Host", parts.netloc), ("Accept", answer.accept)))
        head = f"GET {_line(target)} HTTP/1.1\r\n".encode() + fields + b"\r\n"
        date = instant.to_text(instant.from_digits(answer.at))
        named = {
            "WARC-Type": "request",
            "WARC-Target-URI": answer.requested,
            "WARC-Date": date,
            "Content-Type": "application/http; msgtype=request",
        }
        self._record(named, len(head), [head], _LEVEL)
        self._record(*_response(answer, date), _LEVEL)

    def meta(self) -> FileMeta:
        """Return size and digests of everything written."""
        md5, sha1, sha256 = (one.hexdigest() for one in self._made)
        return FileMeta(
            size_bytes=self._at, md5hex=md5, sha1hex=sha1, sha256hex=sha256, mimetype=_MEDIA_TYPE
        )

    def _record(
        self, head: dict[str, str], length: int, block: Iterable[bytes], level: int
    ) -> Placed:
        self._count += 1
        number = uuid.uuid5(uuid.NAMESPACE_URL, f"{self._key} {self._count}")
        fields = {"WARC-Record-ID": f"<urn:uuid:{number}>", **head, "Content-Length": str(length)}
        start = self._at
        packer = zlib.compressobj(level, zlib.DEFLATED, _GZIP)
        self._write(packer.compress(b"WARC/1.1\r\n" + _fields(fields.items()) + b"\r\n"))
        for data in block:
            self._write(packer.compress(data))
        self._write(packer.compress(b"\r\n\r\n") + packer.flush())
        return Placed(start, self._at - start)

    def _write(self, data: bytes) -> None:
        if data:
            self._sink.write(data)
            self._at += len(data)
            for one in self._made:
                one.update(data)


def _response(answer: PlatformAnswer, date: str) -> tuple[dict[str, str], int, list[bytes]]:
    """Return head, length and blocks of the record of a platform's response."""
    body = b"" if answer.packed is None else zlib.decompress(answer.packed)
    digest = hashlib.sha1(body, usedforsecurity=False).hexdigest()
    http = _http_head(answer.status, answer.reason, answer.headers, len(body), answer.unpacked)
    named = {
        "WARC-Type": "response",
        "WARC-Target-URI": answer.url,
        "WARC-Date": date,
        "WARC-Payload-Digest": f"sha1:{base32(digest)}",
        "Content-Type": "application/http; msgtype=response",
    }
    if answer.packed is None:
        named["WARC-Truncated"] = "length"
    return named, len(http) + len(body), [http, body]


def cdx(received: Received, placed: Placed, key: str) -> Cdx:
    """Return the CDX line of a response."""
    return Cdx(
        surt=identity.parse_address(received.terminal_url.encode()).surt,
        datetime=received.terminal_dt,
        url=received.terminal_url,
        mimetype=received.media_type,
        status_code=received.terminal_status_code,
        sha1b32=base32(received.sha1),
        warc_csize=placed.bytes,
        warc_offset=placed.offset,
        warc_path=key,
    )


def base32(hexadecimal: str) -> str:
    """Return a digest in base32, as in web archives."""
    return b32encode(bytes.fromhex(hexadecimal)).decode()


def _level(first: bytes) -> int:
    """Return the compression level of a file; 0 for data that does not shrink."""
    return _LEVEL if len(zlib.compress(first, 1)) <= _SHRINKS * len(first) else _STORED


def _head(received: Received) -> bytes:
    status, reason = received.terminal_status_code, received.reason
    return _http_head(status, reason, received.headers, received.size, received.unpacked)


def _http_head(
    status: int, reason: str, headers: Iterable[tuple[str, str]], length: int, unpacked: bool
) -> bytes:
    """Return a response's header, with fields that describe the stored bytes."""
    size = str(length)
    untrue = {"transfer-encoding"} | ({"content-encoding"} if unpacked else set())
    fields = []
    measured = False
    for name, value in headers:
        low = name.lower()
        if low == "content-length" and value == size and not measured:
            measured = True
        elif low in untrue or low == "content-length":
            name = _RENAMED + name
        fields.append((name, value))
    if not measured:
        fields.append(("Content-Length", size))
    line = f"HTTP/1.1 {status} {_line(reason)}\r\n"
    return line.encode() + _fields(fields) + b"\r\n"


def _fields(fields: Iterable[tuple[str, str]]) -> bytes:
    return "".join(f"{_line(name)}: {_line(value)}\r\n" for name, value in fields).encode()


def _line(text: str) -> str:
    return text.translate(_TEXT)
