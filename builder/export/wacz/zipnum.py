"""ZipNum: a sorted index in gzip members of some lines each, and a secondary index of the members.

With it, a WACZ reader finds a URL by two range requests. After a header line, the secondary index
has a line for each member: key and time of its first line, offset, length and digest.
"""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import islice

LINES = 1024
"""Lines of a member."""


def blocks(lines: Iterable[bytes], many: int = LINES) -> Iterator[tuple[bytes, bytes]]:
    """Yield the members of sorted CDXJ lines, each with the first two fields of its first line."""
    left = iter(lines)
    while some := list(islice(left, many)):
        key = b" ".join(some[0].split(b" ", 2)[:2])
        yield key, gzip.compress(b"".join(some), mtime=0)


def heading(name: str) -> bytes:
    """Return the header line of the secondary index for the file `name`."""
    return _line(b"!meta 0", {"format": "cdxj-gzip-1.0", "filename": name})


def entry(key: bytes, offset: int, block: bytes) -> bytes:
    """Return the secondary index's line for a member at `offset` of the index."""
    digest = f"sha256:{hashlib.sha256(block).hexdigest()}"
    return _line(key, {"offset": offset, "length": len(block), "digest": digest})


def _line(key: bytes, told: dict[str, object]) -> bytes:
    return b"%b %b\n" % (key, json.dumps(told).encode("ascii"))
