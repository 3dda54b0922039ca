"""Arithmetic on byte ranges: merge, subtract and cut them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Extent(NamedTuple):
    """The bytes from `start` up to but not including `end`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Number of bytes."""
        return self.end - self.start

    def meets(self, other: "Extent") -> bool:
        """Return whether the two share a byte."""
        return self.start < other.end and other.start < self.end


def merge(extents: Iterable[Extent], gap: int = 0, size: int | None = None) -> tuple[Extent, ...]:
    """Return the extents sorted; extents at most `gap` bytes apart are joined.

    Bytes at or behind `size` are left out.
    """
    found: list[Extent] = []
    for one in sorted(extents):
        end = one.end if size is None else min(one.end, size)
        if one.start >= end:
            continue
        if found and one.start <= found[-1].end + gap:
            found[-1] = Extent(found[-1].start, max(found[-1].end, end))
        else:
            found.append(Extent(one.start, end))
    return tuple(found)


def missing(wanted: Iterable[Extent], there: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return the part of `wanted` that is not in `there`, whose extents are merged."""
    return tuple(left for one in merge(wanted) for left in _without(one, there))


def parts(extents: Iterable[Extent], most: int) -> list[Extent]:
    """Return the extents, cut into pieces of at most `most` bytes."""
    return [
        Extent(start, min(start + most, one.end))
        for one in extents
        for start in range(one.start, one.end, most)
    ]


def _without(one: Extent, there: Sequence[Extent]) -> Iterator[Extent]:
    start = one.start
    for other in there:
        if other.meets(one):
            if start < other.start:
                yield Extent(start, other.start)
            start = max(start, other.end)
    if start < one.end:
        yield Extent(start, one.end)
