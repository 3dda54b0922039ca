"""What an unknown name may have been meant to be, by edit distance."""

from collections.abc import Iterable
from functools import lru_cache

_LONGEST = 40  # characters of a name that is looked at
_SHORTEST = 4


def edit_distance(left: str, right: str, most: int) -> int:
    """Return in how many single characters two names differ (Levenshtein), at most `most` + 1."""
    if abs(len(left) - len(right)) > most:
        return most + 1
    row = list(range(len(right) + 1))
    for number, character in enumerate(left, 1):
        diagonal, row[0] = row[0], number
        for at, other in enumerate(right, 1):
            diagonal, row[at] = (
                row[at],
                min(row[at] + 1, row[at - 1] + 1, diagonal + (character != other)),
            )
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the known names that are nearest to a name, in order, none where all are far.

    Far is more than three characters, of names below 12 two, of such below 5 one.
    """
    if not _SHORTEST <= len(name) <= _LONGEST:
        return ()
    most = 1 if len(name) < 5 else 2 if len(name) < 12 else 3
    found: list[str] = []
    for other in known:
        apart = edit_distance(name, other, most)
        if apart < most:
            most, found = apart, [other]
        elif apart == most:
            found.append(other)
    return tuple(sorted(found))


def nearest_cached(name: str, known: frozenset[str]) -> tuple[str, ...]:
    """Return the same as `nearest`, remembered: what is misspelt once mostly is so often."""
    return _nearest_cached(name, known) if len(name) <= _LONGEST else ()


@lru_cache(1 << 12)
def _nearest_cached(name: str, known: frozenset[str]) -> tuple[str, ...]:
    return nearest(name, known)
