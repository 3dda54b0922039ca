"""HTTP messages in records: head and chunked coding (RFC 9112).

A block without a status line (HTTP/0.9, other protocols) has no head: all of it is payload.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from functions.archive.declared_digest import parse_digest
from functions.archive.record import BufferedBlock, RecordBlock, RecordFault
from functions.archive.record_header import READ_FIELDS, parse_fields, parse_plain_head
from functions.archive.stream import RECORD_START

_HEAD_LIMIT = 1 << 20  # bytes of a head; longer ones have lost their end
_SHORTEST_STATUS = 16  # the fewest bytes of a status line
_STATUS_LINE = re.compile(
    rb"HTTP(?:/\d+(?:\.\d+)?[ \t]*(\d{3}(?!\d))?|[ \t]+(\d{3})(?!\d))"
    rb"|ICY[ \t]+(\d{3})(?!\d)"  # of Shoutcast; a bare status needs a Content-Type
    rb"|(\d{3})[ \t][^\n]*\n(?=(?:[!-9;-~]+[ \t]*:[^\n]*\n)*Content-Type[ \t]*:)",
    re.IGNORECASE,
)
_BEGINS_STATUS = re.compile(rb"HTTP|ICY[ \t]|\d{3}[ \t]", re.IGNORECASE)
_HEAD_END = re.compile(rb"\n\r*\n")
_BEGINS_FIELD = re.compile(rb"[!#-'*+\-.^_`|~0-9A-Za-z]+[ \t]*:|[ \t\r\n]|\Z")
_UNFINISHED = re.compile(rb"[!#-'*+\-.^_`|~0-9A-Za-z]*[ \t]*\Z")  # may become a field
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([^\s"';,]+)""", re.IGNORECASE)
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_LONGEST_SIZE_LINE = 1 << 12  # bytes of a chunk's size line, with its extensions


@dataclass(slots=True)
class HttpHead:
    """The status of an HTTP response, None without one, and its fields by lower-case name.

    Fields that are not in record_header.READ_FIELDS may be absent.
    """

    status: int | None = None
    fields: dict[bytes, bytes] = field(default_factory=dict)

    def tokens(self, name: bytes) -> list[str]:
        """Return a field's comma-separated tokens, lower case."""
        value = self.fields.get(name)
        if not value:
            return []
        return [token.strip() for token in value.decode("latin-1").lower().split(",")]

    def has_codings(self) -> bool:
        """Tell whether a coding is declared."""
        return b"content-encoding" in self.fields or b"transfer-encoding" in self.fields

    def codings(self) -> list[str]:
        """Return the declared codings but chunked, in the order of their application."""
        transfer = [name for name in self.tokens(b"transfer-encoding") if name != "chunked"]
        return self.tokens(b"content-encoding") + transfer


def read_message(block: RecordBlock) -> tuple[HttpHead | None, bytes, list[RecordFault]]:
    """Return a block's head, None without a status line, the bytes read behind it, and faults."""
    # The payload of a block in memory must not be copied twice.
    if isinstance(block, BufferedBlock):
        data = block.take_through(b"\r\n\r\n", _HEAD_LIMIT)
    else:
        data = _read_head(block)
    match = _STATUS_LINE.match(data)
    if not match:
        return None, data, []
    status = int(match[match.lastindex]) if match.lastindex else None
    end, fields = parse_plain_head(data, _HEAD_LIMIT)
    if _lacks_fields(data):
        return HttpHead(status), data[data.find(b"\n") + 1 :], []
    if fields is not None:
        return HttpHead(status, fields), data[end + 4 :], []
    if match := _HEAD_END.search(data, 0, _HEAD_LIMIT):
        return HttpHead(status, parse_fields(data[: match.end()])), data[match.end() :], []
    if len(data) < _HEAD_LIMIT:
        return HttpHead(status, parse_fields(data)), b"", []
    detail = f"no end in {_HEAD_LIMIT} bytes"
    return HttpHead(status), data, [("http-head-invalid", None, detail, "treated as payload")]


def prove_length(fields: Mapping[bytes, bytes], data: bytes, at: int = 0) -> int | None:
    """Return the length of a WARC block from `at` to its member's end; None if nothing proves it.

    A declared digest of the block or of the payload proves it. An HTTP message needs no proof if
    the header declares no length and no other record follows.
    """
    payload = parse_digest(fields.get(b"warc-payload-digest", b""))
    whole = parse_digest(fields.get(b"warc-block-digest", b""))
    needs_no_proof = not fields.get(b"content-length") and not RECORD_START.search(data, at)
    if not (payload or whole or needs_no_proof):
        return None
    for border in (b"\r\n\r\n", b"\r\n", b""):  # what may end the record behind its block
        length = len(data) - at - len(border)
        if length < 0 or not data.endswith(border):
            continue
        block = BufferedBlock(data, at, length)
        message, first, _ = read_message(block)
        proofs = ((whole, data[at : at + length]), (payload, first + block.take()))
        if (needs_no_proof and message) or any(
            digest
            and hashlib.new(digest.algorithm, part, usedforsecurity=False).digest() == digest.value
            for digest, part in proofs
        ):
            return length
    return None


def _read_head(block: RecordBlock) -> bytes:
    """Return the block's first bytes through its head; pieces may end anywhere in it."""
    data = block.take()
    sought = 0
    while len(data) < _HEAD_LIMIT and (len(data) < _SHORTEST_STATUS or _BEGINS_STATUS.match(data)):
        line_end = data.find(b"\n")
        has_line = line_end >= 0 and not _UNFINISHED.match(data, line_end + 1)
        if has_line and _HEAD_END.search(data, sought):
            break
        sought = max(len(data) - _SHORTEST_STATUS, 0) if has_line else 0
        piece = block.take()
        if not piece:
            break
        data += piece
    return data


def _lacks_fields(data: bytes) -> bool:
    """Tell whether the body follows the status line at once, without fields.

    A malformed first line does not end a head that has a known field before its empty line.
    """
    line_end = data.find(b"\n")
    if line_end < 0 or _BEGINS_FIELD.match(data, line_end + 1):
        return False
    end = _HEAD_END.search(data, 0, _HEAD_LIMIT)
    return end is None or READ_FIELDS.isdisjoint(parse_fields(data[: end.end()]))


def charset_of(content_type: bytes) -> str | None:
    """Return the charset parameter of a Content-Type, as written."""
    match = _CHARSET.search(content_type[:1000])
    return match[1].decode("latin-1") if match else None


def begins_chunk(start: bytes) -> bool:
    """Tell whether a body with these first bytes is chunked."""
    return _CHUNK_SIZE.match(start) is not None


class ChunkedDecoder:
    """Decodes the chunked transfer coding in pieces; other bytes pass unchanged."""

    def __init__(self) -> None:
        self._rest = b""
        self._left = 0  # bytes missing from the current chunk
        self._first = True
        self._broken = False
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """Return the decoded bytes of the next `data`."""
        if self._broken:
            return data
        if self._over:
            return b""
        data = self._rest + data
        self._rest = b""
        pieces: list[bytes] = []
        at = 0
        while at < len(data):
            if self._left:
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                continue
            start = at
            if not self._first:  # a newline ends the chunk before this one
                start += 2 if data.startswith(b"\r\n", at) else int(data.startswith(b"\n", at))
            match = _CHUNK_SIZE.match(data, start)
            if match:
                self._first = False
                at = match.end()
                self._left = int(match[1], 16)
                if not self._left:
                    self._over = True
                    break
            elif len(data) - at < _LONGEST_SIZE_LINE and b"\n" not in data[start:]:
                self._rest = data[at:]
                break
            else:
                # Archives hold de-chunked bodies whose header still says chunked.
                self._broken = True
                pieces.append(data[at:])
                break
        return b"".join(pieces)

    def flush(self) -> bytes:
        """Return bytes that were held back as an unfinished size line."""
        rest, self._rest = self._rest, b""
        return rest if self._first else b""
