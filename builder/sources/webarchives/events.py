"""The events of a source: captures, skipped records, faults and crawls.

The ordinal of a capture is the number of captures with the same identity that precede it in the
same file. A reader needs bounded memory, but must remember identities. The table takes 18 to 36
bytes for each identity, and half as much again while it grows.
"""

from array import array
from dataclasses import dataclass
from typing import NamedTuple

from builder.intake.captures import Capture, Fault
from builder.sources.webarchives.side_records import Crawl

_DIGITS = str.maketrans("abcdefghijklmnopqrstuvwxyz234567", "0123456789abcdefghijklmnopqrstuv")
_DIGITS_OF_KEY = 12  # 60 bits of an identity that is a hash
_FIRST_SIZE = 1 << 10


class Skipped(NamedTuple):
    """A record that is not published. `reason` is a record type, or the rule that excludes it.

    Offset and length are as of a capture.
    """

    reason: str
    offset: int | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """The start or end of a file's range: the record at `offset`, None for the file's end.

    `version` is the announced version of the ARC records from there on. Two ranges are complete and
    do not overlap if one ends at an edge equal to the other's start.
    """

    offset: int | None
    version: int


Event = Capture | Skipped | Fault | Crawl


class Ordinals:
    """Counts identities in an open hash table whose size is a power of two."""

    def __init__(self) -> None:
        self._keys = array("Q", bytes(8 * _FIRST_SIZE))  # key + 1; 0 is a free slot
        self._counts = array("I", bytes(4 * _FIRST_SIZE))
        self._size = 0

    def next(self, identity: str) -> int:
        """Return how often `identity` was counted before, and count it."""
        return self._count(int(identity[:_DIGITS_OF_KEY].translate(_DIGITS), 32) + 1, 1)

    def _count(self, key: int, count: int) -> int:
        """Add to the count of a key, and return what it was before."""
        keys = self._keys
        mask = len(keys) - 1
        at = key & mask
        while (occupant := keys[at]) and occupant != key:
            at = (at + 1) & mask
        before = self._counts[at]
        self._counts[at] = before + count
        if not before:
            keys[at] = key
            self._size += 1
            if self._size * 3 > len(keys) * 2:
                rows = zip(keys, self._counts, strict=True)
                self._keys, self._size = array("Q", bytes(16 * len(keys))), 0
                self._counts = array("I", bytes(8 * len(keys)))
                for other, times in rows:
                    if other:
                        self._count(other, times)
        return before
