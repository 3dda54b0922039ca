"""WARC/1.1 writer for exchanges with platforms, with one gzip member for each record.

Each redirect and each final response is a record, followed by that of its request. A response
record holds the response's header as received, and the file's bytes. If a content coding was
decoded, header fields that no longer describe the bytes are renamed. URLs are those that were
requested, without secrets.
"""

import hashlib
import uuid
import zlib
from base64 import b32encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from urllib.parse import urlsplit

from builder import distribution
from builder.sources.datasets.item import Cdx, FileMeta, HttpExchange, PlatformAnswer
from builder.sources.datasets.manifest_file import MeasuredSink
from builder.sources.datasets.protocols import Received, ZipSink
from functions.snapshot import instant, surt

WARC = "warc"
"""Compression of a file in a WARC record: its offset is the start of the record's gzip member."""
LENGTH = "warc_length"
"""Key in `extra` of such a file: the size of the record's gzip member, in bytes."""

_LEVEL, _STORED = 4, 0
_SHRINKS = 0.95
"""Compression is used only if it shrinks a file's first bytes to this fraction."""
_TEXT = dict.fromkeys(range(32), " ")


@dataclass(frozen=True, slots=True)
class Placed:
    """Place of a record: offset and size of its gzip member, in bytes."""

    offset: int
    bytes: int


class WarcRecords:
    """Writes the WARC at `key` to a sink, beginning with a warcinfo record."""

    def __init__(self, sink: ZipSink, key: str, at: str, about: str) -> None:
        self._sink = MeasuredSink(sink, "application/warc")
        self._key = key
        self._count = 0
        fields = {
            "software": f"Sheaf {distribution.version()}",
            "format": "WARC File Format 1.1",
            "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
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

    def response(self, received: Received, payload: Callable[[], Iterable[bytes]]) -> Placed:
        """Write the exchanges that led to a file, and return the place of its response.

        `payload` opens the file's bytes from the start; they are read twice. Raises StoreError.
        """
        for redirect in received.redirects:
            self._redirect(redirect)
        last = received.last
        http = http_head(last, received.size, received.unpacked)
        pieces = iter(payload())
        first = next(pieces, b"")
        block = hashlib.sha1(http, usedforsecurity=False)
        for data in chain([first], pieces):
            block.update(data)
        head = _begin_fields("response", last) | {
            "WARC-Block-Digest": _sha1(block.hexdigest()),
            "WARC-Payload-Digest": _sha1(received.sha1),
        }
        blocks = chain([http], payload())
        shrinks = len(zlib.compress(first, 1)) <= _SHRINKS * len(first)
        level = _LEVEL if shrinks else _STORED
        placed = self._record(head, len(http) + received.size, blocks, level)
        self._request(last)
        return placed

    def exchange(self, answer: PlatformAnswer) -> None:
        """Write the exchanges that led to a platform's answer. Raises StoreError."""
        for redirect in answer.redirects:
            self._redirect(redirect)
        body = None if answer.packed is None else zlib.decompress(answer.packed)
        self._whole(answer.last, body, answer.unpacked, "length")

    def _redirect(self, exchange: HttpExchange) -> None:
        body = None if exchange.body is None else exchange.body.encode("latin-1")
        self._whole(exchange, body, False, "unspecified")

    def _whole(self, exchange: HttpExchange, body: bytes | None, unpacked: bool, why: str) -> None:
        """Write an exchange whose body is in memory, or was not kept (None), and `why` not."""
        block = http_head(exchange, len(body or b""), unpacked) + (body or b"")
        head = _begin_fields("response", exchange) | {
            "WARC-Block-Digest": _digest(block),
            "WARC-Payload-Digest": _digest(body or b""),
        }
        if body is None:
            head["WARC-Truncated"] = why
        self._record(head, len(block), [block], _LEVEL)
        self._request(exchange)

    def _request(self, exchange: HttpExchange) -> None:
        """Write the request of the response that was written last."""
        block = request_head(exchange)
        head = _begin_fields("request", exchange) | {
            "WARC-Concurrent-To": self._id(),
            "WARC-Block-Digest": _digest(block),
        }
        self._record(head, len(block), [block], _LEVEL)

    def meta(self) -> FileMeta:
        """Return size and digests of everything written."""
        return self._sink.meta()

    def _record(
        self, head: dict[str, str], length: int, block: Iterable[bytes], level: int
    ) -> Placed:
        self._count += 1
        fields = {"WARC-Record-ID": self._id(), **head, "Content-Length": str(length)}
        start = self._sink.size
        packer = zlib.compressobj(level, zlib.DEFLATED, zlib.MAX_WBITS | 16)
        self._sink.write(packer.compress(b"WARC/1.1\r\n" + _fields(fields.items()) + b"\r\n"))
        for data in block:
            self._sink.write(packer.compress(data))
        self._sink.write(packer.compress(b"\r\n\r\n") + packer.flush())
        return Placed(start, self._sink.size - start)

    def _id(self) -> str:
        """Return the id of the record that was written last."""
        return f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{self._key} {self._count}')}>"


def _begin_fields(kind: str, exchange: HttpExchange) -> dict[str, str]:
    """Return the first fields of a record of an exchange."""
    return {
        "WARC-Type": kind,
        "WARC-Target-URI": exchange.url,
        "WARC-Date": instant.to_text(instant.from_digits(exchange.at)),
        "Content-Type": f"application/http; msgtype={kind}",
        **({"WARC-IP-Address": exchange.address} if exchange.address else {}),
    }


def _digest(data: bytes) -> str:
    return _sha1(hashlib.sha1(data, usedforsecurity=False).hexdigest())


def _sha1(hexadecimal: str) -> str:
    return f"sha1:{base32(hexadecimal)}"


def cdx(received: Received, placed: Placed, key: str) -> Cdx:
    """Return the CDX line of a response."""
    return Cdx(
        surt=surt.of(received.last.url.encode()),
        datetime=received.last.at,
        url=received.last.url,
        mimetype=received.media_type,
        status_code=received.last.status,
        sha1b32=base32(received.sha1),
        warc_csize=placed.bytes,
        warc_offset=placed.offset,
        warc_path=key,
    )


def base32(hexadecimal: str) -> str:
    """Return a digest in base32, as in web archives."""
    return b32encode(bytes.fromhex(hexadecimal)).decode()


def request_head(exchange: HttpExchange) -> bytes:
    """Return a request's line and header."""
    parts = urlsplit(exchange.url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return f"GET {_line(target)} HTTP/1.1\r\n".encode() + _fields(exchange.sent) + b"\r\n"


def http_head(exchange: HttpExchange, length: int, unpacked: bool) -> bytes:
    """Return a response's header, with fields that describe the stored bytes."""
    size = str(length)
    untrue = {"transfer-encoding"} | ({"content-encoding"} if unpacked else set())
    fields = []
    measured = False
    for name, value in exchange.headers:
        low = name.lower()
        if low == "content-length" and value == size and not measured:
            measured = True
        elif low in untrue or low == "content-length":
            name = "X-Archive-Orig-" + name
        fields.append((name, value))
    if not measured:
        fields.append(("Content-Length", size))
    line = f"HTTP/1.1 {exchange.status} {_line(exchange.reason)}\r\n"
    return line.encode() + _fields(fields) + b"\r\n"


def _fields(fields: Iterable[tuple[str, str]]) -> bytes:
    return "".join(f"{_line(name)}: {_line(value)}\r\n" for name, value in fields).encode()


def _line(text: str) -> str:
    return text.translate(_TEXT)
