"""Stretches of bytes: which are wanted, which are there, which are still to be fetched."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Extent(NamedTuple):
    """The bytes from `start` up to, and without, `end`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Bytes in it."""
        return self.end - self.start

    def meets(self, other: "Extent") -> bool:
        """Tell whether they share a byte."""
        return self.start < other.end and other.start < self.end


def merge(extents: Iterable[Extent], gap: int = 0, size: int | None = None) -> tuple[Extent, ...]:
    """Return the extents sorted, with those as one that are at most `gap` bytes apart.

    What lies at or behind `size` is left out.
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
    """Return what is wanted and not in `there`, which is merged."""
    return tuple(left for one in merge(wanted) for left in _without(one, there))


def parts(extents: Iterable[Extent], most: int) -> list[Extent]:
    """Return the extents cut into such of at most `most` bytes."""
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
