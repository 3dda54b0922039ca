"""Inflating gzip members (RFC 1952) by ISA-L, in two thirds of zlib's time: sound ones alone.

What it finds wrong is for zlib to tell, which gives up later and tells why. Where there is no
ISA-L, as in what is deployed, zlib does it all.
"""

import zlib
from typing import Any

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
