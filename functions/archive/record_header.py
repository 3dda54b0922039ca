"""Record headers of WARC 0.16 to 1.1 (ISO 28500, sections 4 to 6) and of ARC 1 and 2.

An ARC header is one line of five fields, or of ten if the file announces version 2. Some files
announce version 2 and hold version 1, so the form of each line decides.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from functions.archive.record import DOCUMENT_TYPES, BufferedBlock, RecordFault, RecordHeader, show
from functions.archive.stream import ARC_LINE, ARC_LINE_LOOSE, HEAD, RECORD_START, RecordStream

ARC_ANNOUNCEMENT = 1 << 12
"""Bytes of a filedesc record's block that are searched for the version."""

_LINE_END = re.compile(rb"\n")
_CODE = re.compile(rb"\d{3}|-")
_ANNOUNCES_2 = re.compile(rb"[^\n]*\n[^\n]*Result-code[^\n]*Archive-length", re.IGNORECASE)
_LENGTH = re.compile(rb"\d{1,18}")
_DATE = re.compile(rb"(?:19|20)\d{12}")
_ADDRESS = re.compile(rb"\d{1,3}(?:\.\d{1,3}){3}")
_MEDIA_TYPE = re.compile(rb"[a-z]+/[^ ]+", re.IGNORECASE)
_HEADER_END = re.compile(rb"\n\r?\n")
_HEADER_LIMIT = 1 << 20  # bytes; some archives put whole JSON documents into their headers
_RECORD_TYPES = DOCUMENT_TYPES | {"warcinfo", "request", "metadata", "conversion", "continuation"}
FOLD = re.compile(rb"\r?\n[ \t]+(?=[^ \t\r\n])")
"""Where a field goes on in the next line."""
_FIELD = re.compile(rb"(?m)^([^:\s]+)[ \t]*:[ \t]*(.*)$")
_EMPTY_LINE = b"\r\n\r\n"  # ends a WARC header, and also a record
_NAME = re.compile(rb"[^:\s]+(?=[ \t]*\Z)")
_LONGEST_NAME = 64
_MOST_NAMES = 1 << 12

READ_FIELDS = frozenset(
    (
        b"warc-type",
        b"warc-record-id",
        b"warc-concurrent-to",
        b"warc-target-uri",
        b"warc-date",
        b"warc-payload-digest",
        b"warc-block-digest",
        b"warc-profile",
        b"warc-refers-to",
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
"""Cache: the lower-case form of each name as written, empty if it is not in READ_FIELDS."""
_TYPE_TEXTS = {kind.encode(): kind for kind in _RECORD_TYPES}


def read_arc(stream: RecordStream, version: int) -> tuple[RecordHeader | None, list[RecordFault]]:
    """Read a record's header line; return the header, None if it is unreadable, and its faults.

    `version` is the version that the file announced.
    """
    line, _ = stream.take_through(_LINE_END, HEAD)
    match = ARC_LINE.match(line)
    loose = None if match else ARC_LINE_LOOSE.match(line)
    status: int | None = None
    location = b""
    if match:
        url, _, date, rest = match.groups()
        # In version 2: type, status, checksum, location, offset, file name, length.
        words = rest.rsplit(b" ", 6)
        if version == 2 and len(words) == 7 and _CODE.fullmatch(words[1]):
            status = int(words[1]) if words[1].isdigit() else None
            location = b"" if words[3] == b"-" else words[3]
            mime, declared = words[0], words[6]
        else:
            mime, _, declared = rest.rpartition(b" ")
    elif loose:
        url, _, date, mime, declared = loose.groups()
    else:
        return None, [("header-invalid", None, show(line), "left out")]
    faults: list[RecordFault] = []
    # Instead of behind the date, the media type may stand behind the URL.
    before, _, last = url.rpartition(b" ")
    is_late = match and b" " not in match[4] and before and _MEDIA_TYPE.fullmatch(last)
    is_odd = is_late or not _is_date(date)
    if is_odd and (transposed := _parse_transposed(line)):
        url, date, mime, declared = transposed
        status, location = None, b""
        detail = show(line.rstrip(b"\r\n"))
        done = f"fields recognised by their form; date {date.decode('ascii')}"
        faults.append(("header-transposed", "Archive-date", detail, done))
    length = int(declared) if _LENGTH.fullmatch(declared) else None
    if length is None:
        done = "skipped; reading continues at the next record"
        faults.append(("length-invalid", "Archive-length", show(declared), done))
    record = RecordHeader(
        "response", url, date, length, mime.strip(), is_arc=True, status=status, location=location
    )
    return record, faults


def _parse_transposed(line: bytes) -> tuple[bytes, bytes, bytes, bytes] | None:
    """Return URL, date, media type and length of a line with reordered fields.

    None unless exactly one field is a date of 14 digits. The length is the last field if it is a
    number, or else the only number; otherwise it is empty.
    """
    words = line.split()
    # The URL, which may contain spaces, ends before the first word that has another field's form.
    forms = (_DATE, _ADDRESS, _MEDIA_TYPE)
    start = next(
        (n for n, word in enumerate(words) if n and any(f.fullmatch(word) for f in forms)), 0
    )
    fields = words[start:]
    dates = [word for word in fields if _is_date(word)]
    if not start or len(dates) != 1:
        return None
    fields.remove(dates[0])
    numbers = [word for word in fields if _LENGTH.fullmatch(word)]
    length = b""
    if fields and _LENGTH.fullmatch(fields[-1]):
        length = fields[-1]
    elif len(numbers) == 1:
        length = numbers[0]
    mime = next((word for word in fields if _MEDIA_TYPE.fullmatch(word)), b"")
    return b" ".join(words[:start]), dates[0], mime, length


def _is_date(field: bytes) -> bool:
    """Tell whether a field is a calendar date of 14 digits."""
    if _DATE.fullmatch(field):
        with suppress(ValueError):
            datetime.strptime(field.decode("ascii"), "%Y%m%d%H%M%S")
            return True
    return False


def parse_arc_version(block: bytes) -> int:
    """Return the version of the records from the start of a filedesc record's block."""
    return 2 if _ANNOUNCES_2.match(block) else 1


def read_warc(stream: RecordStream) -> tuple[RecordHeader | None, list[RecordFault]]:
    """Read a record's header; return it, None if it has no end in the limit, and its faults."""
    head, is_whole = stream.take_through(_HEADER_END, _HEADER_LIMIT)
    if not is_whole:
        return None, [("header-invalid", None, f"no end in {len(head)} bytes", "left out")]
    if holds_another(head, len(head)) and (another := RECORD_START.search(head, 5)):
        # The header's end is lost; keep the record behind it.
        stream.put_back(len(head) - another.start())
        return None, [("header-invalid", None, "another record begins in it", "left out")]
    return _make_header(parse_fields(head))


def holds_another(data: bytes, end: int) -> bool:
    """Tell whether another record begins in the header that ends at `end`: its own end is lost."""
    return data.find(b"WARC/", 5, end) >= 0 and RECORD_START.search(data, 5, end) is not None


def skippable_type(fields: Mapping[bytes, bytes], data: bytes, end: int) -> str | None:
    """Return the record's type if it is one of SKIPPABLE_TYPES and `data` is exactly one record.

    `fields` are those of its header, which ends at `end`, before the empty line.
    """
    kind = SKIPPABLE_TYPES.get(fields.get(b"warc-type", b""))
    if kind is None or b"warc-segment-number" in fields:
        return None
    length = fields.get(b"content-length", b"")
    # An empty line ends the header, and another one the record.
    if not _LENGTH.fullmatch(length) or len(data) != end + 8 + int(length):
        return None
    return kind if data.endswith(_EMPTY_LINE) else None


def parse_whole_record(
    fields: Mapping[bytes, bytes], data: bytes, end: int
) -> tuple[RecordHeader, list[RecordFault], BufferedBlock] | None:
    """Return header, faults and block if `data` is exactly one record, else None.

    `fields` are those of its header, which ends at `end`, before the empty line. None if anything
    is odd, such as the length, or bytes behind the block.
    """
    record, faults = _make_header(fields)
    if record.length is None:
        return None
    at = end + 4
    behind = at + record.length
    regular = len(data) == behind + 4 and data.endswith(_EMPTY_LINE)
    if not regular and (behind > len(data) or data[behind:].strip(b"\r\n")):
        return None
    return record, faults, BufferedBlock(data, at, record.length)


def _make_header(fields: Mapping[bytes, bytes]) -> tuple[RecordHeader, list[RecordFault]]:
    """Return a record's header, made of its fields, and the faults of these."""
    faults: list[RecordFault] = []
    declared_type = fields.get(b"warc-type", b"")
    kind = _TYPE_TEXTS.get(declared_type) or declared_type.decode("latin-1").lower()
    if kind not in _RECORD_TYPES:
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
    look_up = _names.get
    del lines[0]
    for line in lines:
        name, colon, value = line.partition(b": ")
        key = look_up(name)
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
    if len(_names) < _MOST_NAMES:
        _names[name] = key
    return key


def parse_fields(head: bytes) -> dict[bytes, bytes]:
    """Return header fields by lower-case name, the first of each; folded lines are joined.

    The first line, which has the version or the status, is skipped. Lines end in CRLF or LF. Values
    are bytes without white space around them.
    """
    head = head[head.find(b"\n") + 1 :]
    if b"\n " in head or b"\n\t" in head:
        head = FOLD.sub(b" ", head)
    fields = _FIELD.findall(head)
    fields.reverse()
    return {name.lower(): value.rstrip() for name, value in fields}
