"""What begins a record: the first line of its header, in either container format."""

import re

HEAD = 1 << 14
"""Bytes that decide what a file is; a record's first line is looked for in as many."""

WARC_LINE = re.compile(rb"[\r\n]*WARC/\d+\.\d", re.IGNORECASE)
"""The first line of a WARC record, after newlines at most."""

ARC_LINE = re.compile(
    rb"([a-z][a-z0-9+.\-]*:[^\n]*?) "  # URL, which may hold spaces
    rb"(\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:.]+|None|-) "
    rb"(\d{4}[^ \n]*) ([^\n]*[^ \r\n])[ \r]*(?:\n|\Z)",
    re.IGNORECASE,
)
"""An ARC URL-record: URL, IP address, date, and the rest, whose last word is the length."""

ARC_LINE_LOOSE = re.compile(
    rb"([a-z][a-z0-9+.\-]*://[^\n]*) ([^ \n]*) ([^ \n]+) ([^ \n]*) (-?\d+)\r?(?:\n|\Z)",
    re.IGNORECASE,
)
"""The same by its five fields alone, for a date or an address that has no known form."""

RECORD_START = re.compile(
    rb"WARC/\d+\.\d+\r?\n(?=(?:WARC|Content)-[A-Za-z-]+:)|(?<![^\n])(?:WARC/\d+\.\d+[ \t]*\r?\n"
    rb"|[a-z][a-z0-9+.\-]{1,30}:[^\n]{1,8000}? \d{1,3}(?:\.\d{1,3}){3} \d{14}\d* "
    rb"[^\n]{0,200} -?\d+\r?\n)",
    re.IGNORECASE,
)
"""What begins a record, for finding the next one behind garbage: a line, but that WARC's first one
may stand behind bytes that are none of it, where a field that WARC has comes next."""


def begins_record(head: bytes) -> bool:
    """Tell whether a WARC or ARC record begins at `head`, after newlines at most."""
    if head[:5] == b"WARC/":
        return True
    if WARC_LINE.match(head):
        return True
    line = head.lstrip(b"\r\n")[:HEAD].partition(b"\n")[0]
    return bool(ARC_LINE.match(line) or ARC_LINE_LOOSE.match(line))
