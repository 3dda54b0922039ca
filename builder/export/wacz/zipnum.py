"""ZipNum: a sorted index in gzip members of some lines each, and what says where each one lies.

That is how a WACZ file's reader finds a URL by two ranges. The second index names of each member
its first line's key and time, place, length and digest, behind a line about the whole.
"""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import islice

LINES = 1024
"""Lines of a member."""


def blocks(lines: Iterable[bytes], many: int = LINES) -> Iterator[tuple[bytes, bytes]]:
    """Yield, of sorted lines of CDXJ, each member with the first two fields of its first line."""
    left = iter(lines)
    while some := list(islice(left, many)):
        key = b" ".join(some[0].split(b" ", 2)[:2])
        yield key, gzip.compress(b"".join(some), mtime=0)


def heading(name: str) -> bytes:
    """Return the first line of the second index, which says what the file `name` is."""
    return _line(b"!meta 0", {"format": "cdxj-gzip-1.0", "filename": name})


def entry(key: bytes, offset: int, block: bytes) -> bytes:
    """Return the second index's line for a member at `offset` of the index."""
    digest = f"sha256:{hashlib.sha256(block).hexdigest()}"
    return _line(key, {"offset": offset, "length": len(block), "digest": digest})


def _line(key: bytes, told: dict[str, object]) -> bytes:
    return b"%b %b\n" % (key, json.dumps(told).encode("ascii"))
