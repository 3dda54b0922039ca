"""Choice of the objects whose bytes a verify reads; all others are only listed."""

import hashlib
import math
import random
import re
from dataclasses import dataclass

from builder.errors import UsageError

_PART = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sample:
    """Which objects are read: `percent` of them, drawn by `seed`."""

    percent: float
    seed: int

    def holds(self, key: str) -> bool:
        """Return whether an object outside of snapshots is in the sample."""
        digest = hashlib.blake2b(f"{self.seed} {key}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") < int(self.percent / 100 * (1 << 64))


@dataclass(frozen=True, slots=True)
class StorePart:
    """Which objects are read: part `number`, from 1, of `count` parts that hold all of them.

    The digest of a key decides, so an object stays in its part while others come and go.
    """

    number: int
    count: int

    def holds(self, key: str) -> bool:
        """Return whether the object with that key is in this part."""
        digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.count == self.number - 1


def parse_part(text: str) -> StorePart:
    """Return the part of a text such as 3/30. Raises UsageError."""
    match = _PART.fullmatch(text)
    if not match or int(match[1]) > int(match[2]):
        raise UsageError(f"part {text}: expected K/N, as 3/30, with K from 1 to N")
    return StorePart(int(match[1]), int(match[2]))


def choose_keys(keys: list[str], choice: Sample | StorePart | None) -> list[str]:
    """Return the chosen keys, in order; all of them if there is no choice."""
    if choice is None:
        return keys
    if isinstance(choice, StorePart):
        return [key for key in keys if choice.holds(key)]
    count = min(len(keys), math.ceil(len(keys) * choice.percent / 100))
    return sorted(random.Random(choice.seed).sample(keys, count))
