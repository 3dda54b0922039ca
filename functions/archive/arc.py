"""ARC record headers, versions 1 and 2 (Internet Archive, "Arc File Format", 1996).

A header is one line of five fields, or of ten where the file announces version 2. Files that
announce it and hold version 1 exist, so each line decides for itself.
"""

import re

from functions.archive.record import Flaw, Record, shown
from functions.archive.start import ARC_LINE, ARC_LINE_LOOSE, HEAD
from functions.archive.tape import Tape

ANNOUNCEMENT = 1 << 12
"""Bytes of a filedesc record's block in which the version is looked for."""

_LINE_END = re.compile(rb"\n")
_CODE = re.compile(rb"\d{3}|-")
_ANNOUNCES_2 = re.compile(rb"[^\n]*\n[^\n]*Result-code[^\n]*Archive-length", re.IGNORECASE)
_LENGTH = re.compile(rb"\d{1,18}")


def read_header(tape: Tape, version: int) -> tuple[Record | None, list[Flaw]]:
    """Return the record whose header line begins here, and what is wrong with it.

    `version` is what the file announced. There is no record where the line cannot be read.
    """
    line, _ = tape.take_through(_LINE_END, HEAD)
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
        return None, [("header-invalid", None, shown(line), "left out")]
    flaws: list[Flaw] = []
    length = int(declared) if _LENGTH.fullmatch(declared) else None
    if length is None:
        done = "left out; read on at the next record"
        flaws.append(("length-invalid", "Archive-length", shown(declared), done))
    record = Record(
        "response", url, date, length, mime.strip(), is_arc=True, status=status, location=location
    )
    return record, flaws


def announced_version(block: bytes) -> int:
    """Return the version of the records, by the first bytes of a filedesc record's block."""
    return 2 if _ANNOUNCES_2.match(block) else 1
