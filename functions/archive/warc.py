"""WARC record headers, versions 0.16 to 1.1 (ISO 28500, sections 4 to 6)."""

import re
from collections.abc import Mapping

from functions.archive.record import DOCUMENT_TYPES, BufferedBlock, RecordFault, RecordHeader, show
from functions.archive.stream import RECORD_START, RecordStream

_HEADER_END = re.compile(rb"\n\r?\n")
_HEADER_LIMIT = 1 << 20  # bytes; some archives put whole JSON documents into their headers
_TYPES = DOCUMENT_TYPES | {"warcinfo", "request", "metadata", "conversion", "continuation"}
_FOLD = re.compile(rb"\r?\n[ \t]+(?=[^ \t\r\n])")
_FIELD = re.compile(rb"(?m)^([^:\s]+)[ \t]*:[ \t]*(.*)$")
_LENGTH = re.compile(rb"\d{1,18}")
_DIGITS = 18
_EMPTY_LINE = b"\r\n\r\n"


_NAME = re.compile(rb"[^:\s]+(?=[ \t]*\Z)")
_LONGEST_NAME = 64
_NAMES_AT_MOST = 1 << 12

READ_FIELDS = frozenset(
    (
        b"warc-type",
        b"warc-record-id",
        b"warc-concurrent-to",
        b"warc-target-uri",
        b"warc-date",
        b"warc-payload-digest",
        b"warc-refers-to-target-uri",
        b"warc-refers-to-date",
        b"warc-segment-number",
        b"warc-truncated",
        b"content-length",
        b"content-type",
        b"content-encoding",
        b"content-language",
        b"transfer-encoding",
        b"location",
    )
)
"""Names of the WARC and HTTP fields that Sheaf reads; the parsers may skip others."""

SKIPPABLE_TYPES = {b"request": "request", b"metadata": "metadata"}
"""Record types that are only counted; a file may have as many of them as documents."""

_names: dict[bytes, bytes] = {}
"""Field names as written: their lower-case form if it is in READ_FIELDS, else empty."""
_kinds = {kind.encode(): kind for kind in _TYPES}


def read_header(stream: RecordStream) -> tuple[RecordHeader | None, list[RecordFault]]:
    """Read a record's header; return it, None if it has no end in the limit, and its faults."""
    head, found = stream.take_through(_HEADER_END, _HEADER_LIMIT)
    if not found:
        return None, [("header-invalid", None, f"no end in {len(head)} bytes", "left out")]
    if holds_another(head, len(head)) and (another := RECORD_START.search(head, 5)):
        # The header's end is lost; keep the record behind it.
        stream.put_back(len(head) - another.start())
        return None, [("header-invalid", None, "another record begins in it", "left out")]
    return _parse_record(parse_fields(head))


def holds_another(data: bytes, end: int) -> bool:
    """Tell whether another record begins in the header that ends at `end`: its own end is lost."""
    return data.find(b"WARC/", 5, end) >= 0 and RECORD_START.search(data, 5, end) is not None


def skippable_type(fields: Mapping[bytes, bytes], data: bytes, end: int) -> str | None:
    """Return the record's type if it is one of SKIPPABLE_TYPES and `data` is exactly one record.

    `fields` are those of its header, which ends at `end`, before the empty line.
    """
    passed = SKIPPABLE_TYPES.get(fields.get(b"warc-type", b""))
    if passed is None or b"warc-segment-number" in fields:
        return None
    size = fields.get(b"content-length", b"")
    if not size.isdigit() or len(size) > _DIGITS or len(data) != end + 8 + int(size):
        return None
    return passed if data.endswith(_EMPTY_LINE) else None


def parse_whole_record(
    fields: Mapping[bytes, bytes], data: bytes, end: int
) -> tuple[RecordHeader, list[RecordFault], BufferedBlock] | None:
    """Return header, faults and block if `data` is exactly one record, else None.

    `fields` are those of its header, which ends at `end`, before the empty line. None if anything
    is odd, such as the length, or bytes behind the block.
    """
    record, faults = _parse_record(fields)
    if record.length is None:
        return None
    at = end + 4
    behind = at + record.length
    regular = len(data) == behind + 4 and data.endswith(_EMPTY_LINE)
    if not regular and (behind > len(data) or data[behind:].strip(b"\r\n")):
        return None
    return record, faults, BufferedBlock(data, at, record.length)


def _parse_record(fields: Mapping[bytes, bytes]) -> tuple[RecordHeader, list[RecordFault]]:
    faults: list[RecordFault] = []
    declared_type = fields.get(b"warc-type", b"")
    kind = _kinds.get(declared_type) or declared_type.decode("latin-1").lower()
    if kind not in _TYPES:
        faults.append(("unknown-type", "WARC-Type", show(kind.encode("latin-1")), "left out"))
        kind = "unknown-type"
    declared = fields.get(b"content-length", b"")
    length = int(declared) if _LENGTH.fullmatch(declared) else None
    if length is None:
        done = "skipped; reading continues at the next record"
        faults.append(("length-invalid", "Content-Length", show(declared), done))
    url = fields.get(b"warc-target-uri", b"")
    # wget followed the grammar of ISO 28500:2009.
    if url[:1] == b"<" and url[-1:] == b">":
        url = url[1:-1]
    if not url and kind in DOCUMENT_TYPES:
        faults.append(("no-target-uri", "WARC-Target-URI", "", "left out"))
    if kind == "continuation":
        faults.append(("segmented-record", "WARC-Type", "continuation", "left out"))
    elif b"warc-segment-number" in fields:
        detail = show(fields[b"warc-segment-number"])
        faults.append(("segmented-record", "WARC-Segment-Number", detail, "treated as truncated"))
    date, mime = fields.get(b"warc-date", b""), fields.get(b"content-type", b"")
    return RecordHeader(kind, url, date, length, mime, fields), faults


def parse_plain_head(
    data: bytes, limit: int = _HEADER_LIMIT
) -> tuple[int, dict[bytes, bytes] | None]:
    """Return the end of a header, before its empty line, and its fields in READ_FIELDS.

    The fields equal those of `parse_fields`. They are None without an empty line in the first
    `limit` bytes, with lines that CRLF does not end, and with folded lines.
    """
    end = data.find(_EMPTY_LINE, 0, limit)
    if end < 0:
        return end, None
    head = data[:end]
    lines = head.split(b"\r\n")
    if head.count(b"\n") != len(lines) - 1:
        return end, None
    fields: dict[bytes, bytes] = {}
    known = _names.get
    del lines[0]
    for line in lines:
        name, colon, value = line.partition(b": ")
        key = known(name)
        if key is None:
            if line[:1].isspace():
                return end, None
            key = _learn_name(name) if colon else b""
            if not key and (match := _FIELD.match(line)) and match[1].lower() in READ_FIELDS:
                key, value = match[1].lower(), match[2]
        if key and key not in fields:
            fields[key] = value.lstrip(b" \t").rstrip()
    return end, fields


def _learn_name(name: bytes) -> bytes:
    """Return and cache the lower-case form of a field's name; empty if Sheaf does not read it."""
    match = _NAME.match(name) if len(name) <= _LONGEST_NAME else None
    if not match:
        return b""
    key = match[0].lower()
    key = key if key in READ_FIELDS else b""
    if len(_names) < _NAMES_AT_MOST:
        _names[name] = key
    return key


def parse_fields(head: bytes) -> dict[bytes, bytes]:
    """Return header fields by lower-case name, the first of each; folded lines are joined.

    The first line, which has the version or the status, is skipped. Lines end in CRLF or LF. Values
    are bytes without white space around them.
    """
    head = head[head.find(b"\n") + 1 :]
    if b"\n " in head or b"\n\t" in head:
        head = _FOLD.sub(b" ", head)
    found = _FIELD.findall(head)
    found.reverse()
    return {name.lower(): value.rstrip() for name, value in found}
