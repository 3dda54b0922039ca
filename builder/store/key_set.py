"""A set of keys that keeps each as a mark: 64 bits of a digest.

With a million keys, a false match happens about once in ten million million look-ups.
"""

import hashlib
from array import array
from bisect import bisect_left


class KeySet:
    """A set of texts with membership and comparison; the texts themselves are not kept."""

    def __init__(self) -> None:
        self._marks = array("Q")
        self._sorted = True

    def add(self, text: str) -> None:
        """Add a text."""
        self._marks.append(_mark(text))
        self._sorted = False

    def __contains__(self, text: str) -> bool:
        mark, marks = _mark(text), self._sort()
        at = bisect_left(marks, mark)
        return at < len(marks) and marks[at] == mark

    def same(self, other: "KeySet") -> bool:
        """Return whether both have the same texts, each the same number of times."""
        return self._sort() == other._sort()

    def _sort(self) -> "array[int]":
        if not self._sorted:
            self._marks = array("Q", sorted(self._marks))
            self._sorted = True
        return self._marks


def _mark(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
