"""Inflating gzip members (RFC 1952): sound ones with ISA-L, broken ones with zlib.

ISA-L takes two thirds of zlib's time. zlib handles what ISA-L rejects: it fails later and says why.
Without ISA-L, as on AWS, zlib does everything.
"""

import zlib
from typing import Any

from functions.archive.stream import HEAD, begins_record

try:
    from isal import isal_zlib
except ImportError:
    isal_zlib = None  # type: ignore[assignment]

ODD_FLAGS = 0xE2
"""Flags in the fourth byte of a member's header (2.3.1) that ISA-L and zlib treat differently: the
header's checksum and the reserved flags."""

GZIP = 31
"""The window argument of `Inflater` for gzip members."""

_ENGINE: Any = isal_zlib or zlib
Inflater = _ENGINE.decompressobj
InflateError: type[Exception] = _ENGINE.error


def inflate_member(data: bytes, limit: int) -> bytes | None:
    """Return up to `limit` bytes of one sound member; None if zlib has to inflate it."""
    if len(data) < 4 or data[3] & ODD_FLAGS:
        return None
    inflater = Inflater(GZIP)
    try:
        inflated: bytes = inflater.decompress(data, limit)
    except InflateError:
        return None
    ended = inflater.eof and not inflater.unused_data
    return inflated if ended or len(inflated) == limit else None


OUTPUT = 1 << 18
"""Inflated bytes of one piece, which bounds memory."""


def opens_record(raw: bytes) -> bool:
    """Tell whether a member with the first bytes `raw` inflates to a record's start."""
    inflater = zlib.decompressobj(31)
    try:
        return begins_record(inflater.decompress(raw, HEAD))
    except zlib.error:
        return begins_record(salvage(zlib.decompressobj(31), raw))


def salvage(inflater: "zlib._Decompress", data: bytes) -> bytes:
    """Return the bytes that `data` inflates to before it breaks, which zlib withholds."""
    pieces: list[bytes] = []
    size = 0
    for step in (256, 1):
        while data and size < OUTPUT:
            trial = inflater.copy()
            try:
                piece = trial.decompress(data[:step])
            except zlib.error:
                break
            pieces.append(piece)
            size += len(piece)
            inflater, data = trial, data[step:]
    return b"".join(pieces)
