"""Sequences: publishes with the positions that each assigned."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Span:
    """Positions from `first` to `last`, both included; empty if last < first."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """A publish: number, effective instant, positions, and counts of the records still listed.

    `records` counts, by kind, the versions of this sequence that are still in the listing. If the
    sequence had several kinds from the start, `starts` has the first position of each, ascending.
    """

    number: int
    effective: datetime
    first: int
    last: int
    records: Mapping[str, int]
    starts: Mapping[str, int] = field(default_factory=dict)

    def spans(self, kinds: Collection[str]) -> Iterator[Span]:
        """Yield the positions of items of `kinds`."""
        if not self.starts:
            yield Span(self.first, self.last)
        ends = [*(start - 1 for start in self.starts.values()), self.last][1:]
        for (kind, start), end in zip(self.starts.items(), ends, strict=True):
            if kind in kinds:
                yield Span(start, end)
