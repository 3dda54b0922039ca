"""The head of an HTTP message (RFC 9112): status and fields.

A block without a status line (HTTP/0.9, other protocols) has no head: all of it is payload.
"""

import re
from dataclasses import dataclass, field

from functions.archive.record import BufferedBlock, RecordBlock, RecordFault
from functions.archive.warc import parse_fields, parse_plain_head

_LIMIT = 1 << 20  # bytes of a head; longer ones have lost their end
_STARTS = 16  # the fewest bytes of a status line
_STATUS = re.compile(
    rb"HTTP(?:/\d+(?:\.\d+)?[ \t]*(\d{3}(?!\d))?|[ \t]+(\d{3})(?!\d))", re.IGNORECASE
)
_END = re.compile(rb"\n\r*\n")
_FIELD = re.compile(rb"[!#-'*+\-.^_`|~0-9A-Za-z]+[ \t]*:|[ \t\r\n]|\Z")
_UNFINISHED = re.compile(rb"[!#-'*+\-.^_`|~0-9A-Za-z]*[ \t]*\Z")  # may become a field
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([^\s"';,]+)""", re.IGNORECASE)


@dataclass(slots=True)
class HttpHead:
    """The status of an HTTP response, None without one, and its fields by lower-case name.

    Fields that are not in warc.READ_FIELDS may be absent.
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
        moved = [name for name in self.tokens(b"transfer-encoding") if name != "chunked"]
        return self.tokens(b"content-encoding") + moved


def read_message(block: RecordBlock) -> tuple[HttpHead | None, bytes, list[RecordFault]]:
    """Return a block's head, None without a status line, the bytes read behind it, and faults."""
    # The payload of a block in memory must not be copied twice.
    if isinstance(block, BufferedBlock):
        data = block.take_through(b"\r\n\r\n", _LIMIT)
    else:
        data = _read_head(block)
    match = _STATUS.match(data)
    if not match:
        return None, data, []
    code = match[1] or match[2]
    status = int(code) if code else None
    end, fields = parse_plain_head(data, _LIMIT)
    if _is_alone(data):
        return HttpHead(status), data[data.find(b"\n") + 1 :], []
    if fields is not None:
        return HttpHead(status, fields), data[end + 4 :], []
    match = _END.search(data, 0, _LIMIT)
    if match:
        return HttpHead(status, parse_fields(data[: match.end()])), data[match.end() :], []
    if len(data) < _LIMIT:
        return HttpHead(status, parse_fields(data)), b"", []
    fault: RecordFault = (
        "http-head-invalid",
        None,
        f"no end in {_LIMIT} bytes",
        "treated as payload",
    )
    return HttpHead(status), data, [fault]


def _read_head(block: RecordBlock) -> bytes:
    """Return the block's first bytes through its head; pieces may end anywhere in it."""
    data = block.take()
    sought = 0
    while len(data) < _LIMIT and (len(data) < _STARTS or data[:4].upper() == b"HTTP"):
        line_end = data.find(b"\n")
        has_line = line_end >= 0 and not _UNFINISHED.match(data, line_end + 1)
        if has_line and (_is_alone(data) or _END.search(data, sought)):
            break
        sought = max(len(data) - _STARTS, 0) if has_line else 0
        piece = block.take()
        if not piece:
            break
        data += piece
    return data


def _is_alone(data: bytes) -> bool:
    """Tell whether the body follows the status line at once, without fields."""
    line_end = data.find(b"\n")
    return line_end >= 0 and not _FIELD.match(data, line_end + 1)


def charset_of(content_type: bytes) -> str | None:
    """Return the charset parameter of a Content-Type, as written."""
    match = _CHARSET.search(content_type[:1000])
    return match[1].decode("latin-1") if match else None
