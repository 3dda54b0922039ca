"""WARC record headers, versions 0.16 to 1.1 (ISO 28500, sections 4 to 6)."""

import re

from builder.sources.record import DOCUMENTS, Flaw, Record, shown
from builder.sources.tape import Tape

_HEADER_END = re.compile(rb"\n\r?\n")
_HEADER_LIMIT = 1 << 20  # bytes; archives of today put whole JSON documents into their headers
_TYPES = DOCUMENTS | {"warcinfo", "request", "metadata", "conversion", "continuation"}
_FOLD = re.compile(rb"\r?\n[ \t]+(?=[^ \t\r\n])")
_FIELD = re.compile(rb"(?m)^([^:\s]+)[ \t]*:[ \t]*(.*)$")
_LENGTH = re.compile(rb"\d{1,18}")


def read_header(tape: Tape) -> tuple[Record | None, list[Flaw]]:
    """Return the record whose header begins here, and what is wrong with it.

    There is no record where the header has no end, or is longer than is read.
    """
    head, found = tape.take_through(_HEADER_END, _HEADER_LIMIT)
    if not found:
        return None, [("header-invalid", None, f"no end in {len(head)} bytes", "left out")]
    fields = named_fields(head)
    flaws: list[Flaw] = []
    kind = fields.get(b"warc-type", b"").decode("latin-1").lower()
    if kind not in _TYPES:
        flaws.append(("unknown-type", "WARC-Type", shown(kind.encode("latin-1")), "left out"))
        kind = "unknown-type"
    declared = fields.get(b"content-length", b"")
    length = int(declared) if _LENGTH.fullmatch(declared) else None
    if length is None:
        done = "left out; read on at the next record"
        flaws.append(("length-invalid", "Content-Length", shown(declared), done))
    url = fields.get(b"warc-target-uri", b"")
    if (
        url[:1] == b"<" and url[-1:] == b">"
    ):  # wget wrote the URI as ISO 28500:2009's grammar had it
        url = url[1:-1]
    if not url and kind in DOCUMENTS:
        flaws.append(("no-target-uri", "WARC-Target-URI", "", "left out"))
    if kind == "continuation":
        flaws.append(("segmented-record", "WARC-Type", "continuation", "left out"))
    elif b"warc-segment-number" in fields:
        detail = shown(fields[b"warc-segment-number"])
        flaws.append(("segmented-record", "WARC-Segment-Number", detail, "taken as truncated"))
    mime = fields.get(b"content-type", b"")
    return Record(kind, url, fields.get(b"warc-date", b""), length, mime, fields), flaws


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
