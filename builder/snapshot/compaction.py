"""Compaction: which runs of a table a publish merges or rewrites.

A run is a span of the log whose files are sorted as a whole: one publish, or several that were
merged. Each publish adds a run and merges the preceding runs into it while they are not much
larger. So small publishes end up in few runs, and a row is rewritten about as often as its run
doubles. If half of a run is superseded, the run is rewritten without the superseded rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from functions.snapshot import layout
from functions.snapshot.manifest import LeafReference, Span

RECORDS_RATIO = 2
"""A run of records is merged if it has less than this many times the rows collected so far."""
LOOKUP_RATIO = 4
"""The same for the tables `lookup` and `dead`: their rows are short, and each run costs a read."""
MOST_ROWS = 1 << 22
"""Maximum number of rows of a merged run of records."""


@dataclass(frozen=True, slots=True)
class LeafRun:
    """A run: its span of the log and its leaves."""

    span: Span
    leaves: tuple[LeafReference, ...]

    @property
    def rows(self) -> int:
        """Rows in the run's files, superseded ones included."""
        return sum(leaf.rows for leaf in self.leaves)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Adjacent runs that become one. If `fresh`, the rows of this publish are appended."""

    runs: tuple[LeafRun, ...]
    fresh: bool

    def span(self, fresh: Span) -> Span:
        """Return the span of the resulting run; `fresh` is the span of this publish."""
        first = self.runs[0].span.first if self.runs else fresh.first
        return Span(first, fresh.last if self.fresh else self.runs[-1].span.last)


def leaf_runs(leaves: Sequence[LeafReference]) -> list[LeafRun]:
    """Return a table's runs in the order of the log."""
    runs = []
    for span, group in groupby(leaves, key=lambda leaf: leaf.span):
        assert span is not None
        runs.append(LeafRun(Span(*span), tuple(group)))
    return runs


def runs_to_merge(rows: Sequence[int], fresh: int, ratio: int, most: int | None = None) -> int:
    """Return how many of the last runs, of `rows` rows each, are merged with `fresh` new rows."""
    total, count = fresh, 0
    for size in reversed(rows):
        if size >= ratio * total or (most is not None and size + total > most):
            break
        total += size
        count += 1
    return count


def plan_rewrites(
    runs: Sequence[LeafRun], fresh: int, live: Callable[[Span], int]
) -> list[Rewrite]:
    """Return the rewrites of the records in the order of the log; that of this publish is last.

    `live` gives the number of rows of a span that are listed after this publish of `fresh` rows.
    """
    listed = [live(run.span) for run in runs]
    merged = runs_to_merge(listed, fresh, RECORDS_RATIO, MOST_ROWS)
    staying = len(runs) - merged
    rewrites = [
        Rewrite((run,), fresh=False)
        for run, count in zip(runs[:staying], listed[:staying], strict=True)
        if count == 0 or run.rows > 2 * count + layout.GROUP_ROWS
    ]
    return [*rewrites, Rewrite(tuple(runs[staying:]), fresh=True)]
