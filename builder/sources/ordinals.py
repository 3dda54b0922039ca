"""Ordinals: how many captures with the same identity precede one in the same file.

A reader needs bounded memory, but must remember identities. The table takes 18 to 36 bytes for each
identity, and half as much again while it grows.
"""

from array import array

_DIGITS = str.maketrans("abcdefghijklmnopqrstuvwxyz234567", "0123456789abcdefghijklmnopqrstuv")
_DIGITS_OF_KEY = 12  # 60 bits of an identity that is a hash
_FIRST_SIZE = 1 << 10


class Ordinals:
    """Counts identities in an open hash table whose size is a power of two."""

    def __init__(self) -> None:
        self._keys = array("Q", bytes(8 * _FIRST_SIZE))  # key + 1; 0 is a free slot
        self._counts = array("I", bytes(4 * _FIRST_SIZE))
        self._held = 0

    def __len__(self) -> int:
        return self._held

    def next(self, identity: str) -> int:
        """Return how often `identity` was counted before, and count it."""
        key = int(identity[:_DIGITS_OF_KEY].translate(_DIGITS), 32) + 1
        at = self._place(key)
        before = self._counts[at]
        self._counts[at] = before + 1
        if not before:
            self._keys[at] = key
            self._held += 1
            if self._held * 3 > len(self._keys) * 2:
                self._grow()
        return before

    def overlaps(self, other: "Ordinals") -> bool:
        """Tell whether any identity is in both."""
        fewer, more = sorted((self, other), key=len)
        return any(key and more._keys[more._place(key)] for key in fewer._keys)

    def add(self, other: "Ordinals") -> None:
        """Add the counts of `other`."""
        for key, count in zip(other._keys, other._counts, strict=True):
            if key:
                self._put(key, count)

    def _put(self, key: int, count: int) -> None:
        at = self._place(key)
        if not self._keys[at]:
            self._keys[at] = key
            self._held += 1
        self._counts[at] += count
        if self._held * 3 > len(self._keys) * 2:
            self._grow()

    def _place(self, key: int) -> int:
        keys = self._keys
        mask = len(keys) - 1
        at = key & mask
        while (found := keys[at]) and found != key:
            at = (at + 1) & mask
        return at

    def _grow(self) -> None:
        keys, counts = self._keys, self._counts
        self._keys = array("Q", bytes(16 * len(keys)))
        self._counts = array("I", bytes(8 * len(keys)))
        for key, count in zip(keys, counts, strict=True):
            if key:
                at = self._place(key)
                self._keys[at] = key
                self._counts[at] = count
