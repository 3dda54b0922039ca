"""Inflating gzip members (RFC 1952) by ISA-L, in two thirds of zlib's time: sound ones alone.

What it finds wrong is for zlib to tell, which gives up later and tells why. Where there is no
ISA-L, as in what is deployed, zlib does it all.

What a broken gzip member inflates to before it breaks, which zlib withholds with its error.
"""

import zlib
from typing import Any

from functions.archive.stream import HEAD, begins_record

try:
    from isal import isal_zlib
except ImportError:
    isal_zlib = None  # type: ignore[assignment]

ODD_FLAGS = 0xE2
"""Flags of a member's header (2.3.1) of which ISA-L thinks otherwise than zlib, in its fourth byte:
the checksum of the header and the reserved ones."""

GZIP = 31
"""What `Inflater` takes for gzip members."""

_ENGINE: Any = isal_zlib or zlib
Inflater = _ENGINE.decompressobj
InflateError: type[Exception] = _ENGINE.error


def inflate_member(data: bytes, limit: int) -> bytes | None:
    """Return what one sound member inflates to, up to `limit`; None if zlib has to tell."""
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
    """Tell whether a member that begins with `raw` inflates to a record's start."""
    inflater = zlib.decompressobj(31)
    try:
        return begins_record(inflater.decompress(raw, HEAD))
    except zlib.error:
        return begins_record(salvage(zlib.decompressobj(31), raw))


def salvage(inflater: "zlib._Decompress", data: bytes) -> bytes:
    """Return what `data` inflates to before it breaks."""
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
