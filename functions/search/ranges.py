"""Ranges of positions: ascending, without overlaps, both ends included."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter

Ranges = Sequence[tuple[int, int]]


def unite(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges, in any order, as one list in which none overlap or touch."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined


def intersect(ranges: Ranges, others: Ranges) -> list[tuple[int, int]]:
    """Return the positions in both."""
    if len(ranges) > len(others):
        ranges, others = others, ranges
    common = []
    for first, last in ranges:
        place = bisect_left(others, first, key=itemgetter(1))
        while place < len(others) and others[place][0] <= last:
            common.append((max(first, others[place][0]), min(last, others[place][1])))
            place += 1
    return common


def clip(ranges: Ranges, first: int, last: int) -> list[tuple[int, int]]:
    """Return the positions from `first` to `last`."""
    return intersect(ranges, [(first, last)]) if first <= last else []


def measure(ranges: Ranges) -> int:
    """Return the number of positions in ranges."""
    return sum(last - first + 1 for first, last in ranges)


def meet(ranges: Ranges, first: int, last: int) -> bool:
    """Return whether a position from `first` to `last` is in the ranges."""
    place = bisect_left(ranges, first, key=itemgetter(1))
    return place < len(ranges) and ranges[place][0] <= last


def highest(ranges: Ranges, most: int) -> list[int]:
    """Return up to `most` of the highest positions, descending."""
    positions: list[int] = []
    for first, last in reversed(ranges):
        positions += range(last, max(first, last - (most - len(positions)) + 1) - 1, -1)
        if len(positions) >= most:
            break
    return positions
