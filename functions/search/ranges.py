"""Ranges of positions: ascending, without overlaps, both ends included."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter

Ranges = Sequence[tuple[int, int]]


def unite(found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges, in any order, as one list in which none overlap or touch."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(found):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined


def intersect(some: Ranges, others: Ranges) -> list[tuple[int, int]]:
    """Return the positions in both."""
    if len(some) > len(others):
        some, others = others, some
    found = []
    for first, last in some:
        place = bisect_left(others, first, key=itemgetter(1))
        while place < len(others) and others[place][0] <= last:
            found.append((max(first, others[place][0]), min(last, others[place][1])))
            place += 1
    return found


def clip(some: Ranges, first: int, last: int) -> list[tuple[int, int]]:
    """Return the positions from `first` to `last`."""
    return intersect(some, [(first, last)]) if first <= last else []


def measure(some: Ranges) -> int:
    """Return the number of positions in ranges."""
    return sum(last - first + 1 for first, last in some)


def meet(some: Ranges, first: int, last: int) -> bool:
    """Return whether a position from `first` to `last` is in the ranges."""
    place = bisect_left(some, first, key=itemgetter(1))
    return place < len(some) and some[place][0] <= last


def highest(some: Ranges, most: int) -> list[int]:
    """Return up to `most` of the highest positions, descending."""
    found: list[int] = []
    for first, last in reversed(some):
        found += range(last, max(first, last - (most - len(found)) + 1) - 1, -1)
        if len(found) >= most:
            break
    return found
