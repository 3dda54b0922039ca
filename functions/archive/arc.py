"""ARC record headers, versions 1 and 2 (Internet Archive, "Arc File Format", 1996).

A header is one line of five fields, or of ten if the file announces version 2. Some files announce
version 2 and hold version 1, so the form of each line decides.

Some writers reorder the fields. Then the form of each field identifies it.
"""

import re
from contextlib import suppress
from datetime import datetime

from functions.archive.record import RecordFault, RecordHeader, show
from functions.archive.stream import ARC_LINE, ARC_LINE_LOOSE, HEAD, RecordStream

ANNOUNCEMENT = 1 << 12
"""Bytes of a filedesc record's block that are searched for the version."""

_LINE_END = re.compile(rb"\n")
_CODE = re.compile(rb"\d{3}|-")
_ANNOUNCES_2 = re.compile(rb"[^\n]*\n[^\n]*Result-code[^\n]*Archive-length", re.IGNORECASE)
_LENGTH = re.compile(rb"\d{1,18}")
_DATE = re.compile(rb"(?:19|20)\d{12}")
_ADDRESS = re.compile(rb"\d{1,3}(?:\.\d{1,3}){3}")
_TYPE = re.compile(rb"[a-z]+/[^ ]+", re.IGNORECASE)


def read_header(
    stream: RecordStream, version: int
) -> tuple[RecordHeader | None, list[RecordFault]]:
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
    odd = not _is_date(date) or (match and _takes_type(url, match[4]))
    if odd and (transposed := _parse_transposed(line)):
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
    forms = (_DATE, _ADDRESS, _TYPE)
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
    mime = next((word for word in fields if _TYPE.fullmatch(word)), b"")
    return b" ".join(words[:start]), dates[0], mime, length


def _takes_type(url: bytes, rest: bytes) -> bool:
    """Tell whether the URL ends with the media type, which is missing after the date."""
    before, space, last = url.rpartition(b" ")
    return b" " not in rest and bool(space and before and _TYPE.fullmatch(last))


def _is_date(field: bytes) -> bool:
    """Tell whether a field is a calendar date of 14 digits."""
    if _DATE.fullmatch(field):
        with suppress(ValueError):
            datetime.strptime(field.decode("ascii"), "%Y%m%d%H%M%S")
            return True
    return False


def parse_version(block: bytes) -> int:
    """Return the version of the records from the start of a filedesc record's block."""
    return 2 if _ANNOUNCES_2.match(block) else 1
