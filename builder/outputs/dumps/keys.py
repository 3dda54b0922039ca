"""Keys of the identifiers in a part of a dump: shows whether a withdrawn item may be in it.

The object beside a part holds the keys of its records (functions.snapshot.oai_name), 8 bytes each,
sorted, and then the SHA-256 of these bytes. So a withdrawal need not read the dumps themselves.
"""

import hashlib
import sys
from array import array
from collections.abc import Iterable, Set

_DIGEST = 32


def pack_keys(keys: Iterable[int]) -> bytes:
    """Return the content of the object."""
    packed = array("q", sorted(keys))
    if sys.byteorder == "big":
        packed.byteswap()
    data = packed.tobytes()
    return data + hashlib.sha256(data).digest()


def is_intact(data: bytes) -> bool:
    """Return whether the content is as it was written."""
    body = data[:-_DIGEST]
    return len(body) % 8 == 0 and hashlib.sha256(body).digest() == data[-_DIGEST:]


def may_hold(data: bytes, wanted: Set[int]) -> bool:
    """Return whether the part may have a record with one of the keys; True for damaged content."""
    if not is_intact(data):
        return True
    keys = array("q", data[:-_DIGEST])
    if sys.byteorder == "big":
        keys.byteswap()
    return not wanted.isdisjoint(keys)
