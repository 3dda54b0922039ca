"""Keys of the identifiers in a part of a dump: shows whether a withdrawn item may be in it.

The object beside a part holds the keys of its records (functions.snapshot.oai_name), 8 bytes each,
sorted, and then the SHA-256 of these bytes. So a withdrawal need not read the dumps themselves.
"""

import hashlib
import struct
from collections.abc import Collection, Set

_DIGEST = 32


def pack_keys(keys: Collection[int]) -> bytes:
    """Return the content of the object."""
    data = struct.pack(f"<{len(keys)}q", *sorted(keys))
    return data + hashlib.sha256(data).digest()


def is_intact(data: bytes) -> bool:
    """Return whether the content is as it was written."""
    body = data[:-_DIGEST]
    return len(body) % 8 == 0 and hashlib.sha256(body).digest() == data[-_DIGEST:]


def may_hold(data: bytes, wanted: Set[int]) -> bool:
    """Return whether the part may have a record with one of the keys; True for damaged content."""
    if not is_intact(data):
        return True
    return any(key in wanted for (key,) in struct.iter_unpack("<q", data[:-_DIGEST]))
