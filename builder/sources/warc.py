"""WARC record headers, versions 0.16 to 1.1 (ISO 28500, sections 4 to 6)."""

import re

from builder.sources.record import DOCUMENTS, Flaw, Held, Record, shown
from builder.sources.tape import Tape

_HEADER_END = re.compile(rb"\n\r?\n")
_HEADER_LIMIT = 1 << 20  # bytes; archives of today put whole JSON documents into their headers
_TYPES = DOCUMENTS | {"warcinfo", "request", "metadata", "conversion", "continuation"}
_FOLD = re.compile(rb"\r?\n[ \t]+(?=[^ \t\r\n])")
_FIELD = re.compile(rb"(?m)^([^:\s]+)[ \t]*:[ \t]*(.*)$")
_LENGTH = re.compile(rb"\d{1,18}")


_IRREGULAR = re.compile(rb"\n[\n\r \t]")
_NAME = re.compile(rb"[^:\s]+(?=[ \t]*\Z)")
_LONGEST_NAME = 64
_NAMES_AT_MOST = 1 << 12

READ = frozenset(
    (
        b"warc-type",
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
"""Names of the fields, of WARC and of HTTP, that anything reads; others may be passed over."""

PASSED_OVER = (b"request", b"metadata")
"""Types of records that are counted, of which a file may have as many as of documents."""
_PASSED_OVER = re.compile(rb"\nWARC-Type: (request|metadata)\r")
_SIZE = re.compile(rb"\nContent-Length: (\d{1,18})\r")

_names: dict[bytes, bytes] = {}
"""Names as files write them: the lower-case one of those in READ, an empty one for others."""
_kinds = {kind.encode(): kind for kind in _TYPES}


def read_header(tape: Tape) -> tuple[Record | None, list[Flaw]]:
    """Return the record whose header begins here, and what is wrong with it.

    There is no record where the header has no end, or is longer than is read.
    """
    head, found = tape.take_through(_HEADER_END, _HEADER_LIMIT)
    if not found:
        return None, [("header-invalid", None, f"no end in {len(head)} bytes", "left out")]
    return _record(named_fields(head))


def passed_over(data: bytes, end: int) -> bytes:
    """Return the type of the one record that `data` is, if it is one of PASSED_OVER.

    `end` is the `plain_end` of its header. An empty text where the type is not plain to see.
    """
    kind = _PASSED_OVER.search(data, 0, end)
    size = _SIZE.search(data, 0, end + 2) if kind else None
    if not kind or not size or len(data) != end + 8 + int(size[1]) or data[:5] != b"WARC/":
        return b""
    # Names may be in any case, and of a name that comes twice the first one counts.
    head = data[:end].lower()
    once = head.count(b"\nwarc-type") == 1 == head.count(b"\ncontent-length")
    if not once or b"\nwarc-segment" in head or data[-4:] != b"\r\n\r\n":
        return b""
    return kind[1]


def read_whole(data: bytes, end: int) -> tuple[Record, list[Flaw], Held] | None:
    """Return the one record that `data` is, what is wrong with it, and its block.

    `end` is the `plain_end` of its header. None where anything is odd, as the length, or bytes
    behind the block.
    """
    if data[:5] != b"WARC/":
        return None
    record, flaws = _record(plain_fields(data[:end]))
    at = end + 4
    if record.length is None or at + record.length > len(data):
        return None
    rest = data[at + record.length :]
    if rest != b"\r\n\r\n" and rest.strip(b"\r\n"):
        return None
    return record, flaws, Held(data, at, record.length)


def _record(fields: dict[bytes, bytes]) -> tuple[Record, list[Flaw]]:
    flaws: list[Flaw] = []
    said = fields.get(b"warc-type", b"")
    kind = _kinds.get(said) or said.decode("latin-1").lower()
    if kind not in _TYPES:
        flaws.append(("unknown-type", "WARC-Type", shown(kind.encode("latin-1")), "left out"))
        kind = "unknown-type"
    declared = fields.get(b"content-length", b"")
    length = int(declared) if _LENGTH.fullmatch(declared) else None
    if length is None:
        done = "left out; read on at the next record"
        flaws.append(("length-invalid", "Content-Length", shown(declared), done))
    url = fields.get(b"warc-target-uri", b"")
    # wget wrote the URI as ISO 28500:2009's grammar had it.
    if url[:1] == b"<" and url[-1:] == b">":
        url = url[1:-1]
    if not url and kind in DOCUMENTS:
        flaws.append(("no-target-uri", "WARC-Target-URI", "", "left out"))
    if kind == "continuation":
        flaws.append(("segmented-record", "WARC-Type", "continuation", "left out"))
    elif b"warc-segment-number" in fields:
        detail = shown(fields[b"warc-segment-number"])
        flaws.append(("segmented-record", "WARC-Segment-Number", detail, "taken as truncated"))
    date, mime = fields.get(b"warc-date", b""), fields.get(b"content-type", b"")
    return Record(kind, url, date, length, mime, fields), flaws


def plain_end(data: bytes, limit: int = _HEADER_LIMIT) -> int:
    """Return where the empty line begins that ends a header, with the newline before it.

    -1 if it is not in the first `limit` bytes, or if the lines are not all ended by CRLF, or if
    some are folded.
    """
    end = data.find(b"\r\n\r\n", 0, limit)
    if end < 0 or _IRREGULAR.search(data, 0, end + 1):
        return -1
    return end if data.count(b"\n", 0, end) == data.count(b"\r\n", 0, end) else -1


def plain_fields(head: bytes) -> dict[bytes, bytes]:
    """Return the fields in READ of a header without its end, as `named_fields` does.

    `head` is what `plain_end` found to have lines that are ended by CRLF and not folded.
    """
    fields: dict[bytes, bytes] = {}
    lines = iter(head.split(b"\r\n"))
    next(lines)
    for line in lines:
        name, colon, value = line.partition(b": ")
        key = _names.get(name)
        if key is None and (not colon or not (key := _learned(name))):
            match = _FIELD.match(line)
            if match and (key := match[1].lower()) not in fields and key in READ:
                fields[key] = match[2].rstrip()
            continue
        if key and key not in fields:
            fields[key] = value.lstrip(b" \t").rstrip()
    return fields


def _learned(name: bytes) -> bytes:
    """Return and keep the lower-case name that a field's written `name` means, if it is read."""
    match = _NAME.match(name) if len(name) <= _LONGEST_NAME else None
    if not match:
        return b""
    key = match[0].lower()
    key = key if key in READ else b""
    if len(_names) < _NAMES_AT_MOST:
        _names[name] = key
    return key


def named_fields(head: bytes) -> dict[bytes, bytes]:
    """Return header fields by lower-case name, the first of each; folded lines are joined.

    The first line, which names the version or the status, is passed over. Lines may end in CRLF
    or in LF. Values are bytes without white space around them.
    """
    head = head[head.find(b"\n") + 1 :]
    if b"\n " in head or b"\n\t" in head:
        head = _FOLD.sub(b" ", head)
    found = _FIELD.findall(head)
    found.reverse()
    return {name.lower(): value.rstrip() for name, value in found}
