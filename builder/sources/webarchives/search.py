"""Search for the first record of an archive whose first bytes are damaged.

The first 16 KB decide what most files are. If a name or location suggests an archive, the search
continues to the file's end. It holds a few hundred KB, or a zstd dictionary of up to 8 MB.
"""

import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from builder.sources.webarchives.recognise import (
    is_other,
    packing,
    recognise,
    unpack_head,
)
from functions.archive import zstd
from functions.archive.gzip_members import MAGIC
from functions.archive.stream import begins_record

PLAN_BYTES = 1 << 20
"""Bytes that are searched before a file is split; each split searches them again."""

_PIECE = 1 << 18  # bytes of one read
_NEAR = zstd.NEAR  # bytes that show whether a record begins there
_MAGIC = re.compile(
    # Each alternative begins with a literal byte, which makes the search several times as fast.
    rb"\x1f\x8b\x08|\x28\xb5\x2f\xfd|\x5d\x2a\x4d\x18"
    rb"|W[Aa][Rr][Cc]/\d+\.\d+[ \t]*\r?\n(?=(?:[Ww][Aa][Rr][Cc]|[Cc][Oo][Nn][Tt][Ee][Nn][Tt])-)"
    rb"|w[Aa][Rr][Cc]/\d+\.\d+[ \t]*\r?\n(?=(?:[Ww][Aa][Rr][Cc]|[Cc][Oo][Nn][Tt][Ee][Nn][Tt])-)"
)
_DATE = re.compile(rb" \d{14}\d* [^\n\x00]{0,200} -?\d+\r?\n")
_ARC_LINE = re.compile(
    rb"[a-z][a-z0-9+.\-]{1,30}:[^\n\x00]{1,8000}? \d{1,3}(?:\.\d{1,3}){3} \d{14}", re.IGNORECASE
)
_LONGEST = 8100  # bytes of an ARC header before its date
_ARCHIVE_NAME = re.compile(
    r"\.(?:w?arc(?:\.w[ae]t)?|wacz|cdxj?)(?:\.(?:gz|zst|zstd|lz4|bz2|xz))?(?:\.open)?\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ArchiveStart:
    """Where an archive begins: its offset, its compression ("gz", "zst" or "") and its first bytes.

    `head` begins at `offset` and equals the result of `recognise.read_head` there.
    """

    offset: int
    packing: str
    head: bytes


def names_archive(name: str) -> bool:
    """Tell whether a file has the name of an archive, or of an index of one."""
    return _ARCHIVE_NAME.search(name) is not None


def find_start(
    head: bytes, stream: BinaryIO, further: bool, limit: int | None = None
) -> ArchiveStart | None:
    """Return where the archive begins in a file with the first bytes `head`; None without one.

    With `further`, the rest of `stream` is searched up to `limit` bytes, and any compressed file is
    treated as an archive.
    """
    packed = packing(head)
    if further and not recognise(head) and not is_other(head):
        if head.startswith(MAGIC):
            packed = "gz"
        elif zstd.begins(head):
            packed = "zst"
        else:
            return _search(head, stream, limit)
    return None if packed is None else ArchiveStart(0, packed, head)


def _search(head: bytes, stream: BinaryIO, limit: int | None) -> ArchiveStart | None:
    data, base, more = head, 0, True
    while True:
        data, more = _fill(data, stream, _NEAR + _PIECE)
        end = len(data) - _NEAR if more else len(data)
        magics = (match.start() for match in _MAGIC.finditer(data) if match.start() < end)
        for at in heapq.merge(magics, _arc_lines(data, end, not base)):
            near = data[at : at + _NEAR]
            if near.startswith(zstd.DICTIONARY_FRAME):
                data, more = _fill(data, stream, at + zstd.bytes_needed(near))
                near = data[at : at + zstd.bytes_needed(near)]
            packed = _packing_of(near)
            if packed is not None:
                return ArchiveStart(base + at, packed, data[at:])
        if not more or (limit is not None and base + end >= limit):
            return None
        drop = max(end - _LONGEST, 0)
        data, base = data[drop:], base + drop


def _arc_lines(data: bytes, end: int, first: bool) -> Iterator[int]:
    """Yield the offsets of ARC headers before `end`.

    Zeros may have replaced the newline before such a line. `first`: `data` begins the file.
    """
    for match in _DATE.finditer(data):
        lowest = max(match.start() - _LONGEST, 0)
        at = max(data.rfind(mark, lowest, match.start()) for mark in (b"\n", b"\x00")) + 1
        if (at or (first and not lowest)) and at < end and _ARC_LINE.match(data, at):
            yield at


def _fill(data: bytes, stream: BinaryIO, size: int) -> tuple[bytes, bool]:
    """Return `data` with at least `size` bytes, and whether the stream may have more."""
    pieces, length = [data], len(data)
    while length < size:
        piece = stream.read(_PIECE)
        if not piece:
            return b"".join(pieces), False
        pieces.append(piece)
        length += len(piece)
    return b"".join(pieces), True


def _packing_of(near: bytes) -> str | None:
    """Return the compression of the record at the start of `near`; None without a record."""
    if near.startswith(MAGIC):
        return "gz" if begins_record(unpack_head(near[: 1 << 12])) else None
    if zstd.begins(near):
        return "zst" if begins_record(unpack_head(near)) or _wants_dictionary(near) else None
    return "" if begins_record(near) else None


def _wants_dictionary(near: bytes) -> bool:
    """Tell whether a zstd frame begins here that needs a dictionary."""
    if not near.startswith(zstd.MAGIC):
        return False
    try:
        header = zstd.parse_frame_header(near[: zstd.HEADER])
        zstd.parse_block(near, header.size)
    except zstd.ZstdError:
        return False
    return header.dictionary != 0
