"""Marks: which of very many keys there are, eight bytes each.

A mark is 64 bits of a digest. That one of a million keys is taken for another happens once in some
ten million million looks.
"""

import hashlib
from array import array
from bisect import bisect_left


class KeySet:
    """A set of texts that can be asked, and compared with another, but not read."""

    def __init__(self) -> None:
        self._marks = array("Q")
        self._sorted = True

    def add(self, text: str) -> None:
        """Add a text."""
        self._marks.append(_mark(text))
        self._sorted = False

    def __contains__(self, text: str) -> bool:
        mark, found = _mark(text), self._sort()
        at = bisect_left(found, mark)
        return at < len(found) and found[at] == mark

    def same(self, other: "KeySet") -> bool:
        """Tell whether both have the same texts, each as often."""
        return self._sort() == other._sort()

    def _sort(self) -> "array[int]":
        if not self._sorted:
            self._marks = array("Q", sorted(self._marks))
            self._sorted = True
        return self._marks


def _mark(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
