"""Counts of captures by month, from the table of URLs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from functions.content.search import GROUPS, TABLE
from functions.content.terms import Range, cut_surt
from functions.snapshot import schema
from functions.snapshot.manifest import Manifest
from functions.store import engine
from functions.store.catalog import Catalogue
from functions.store.files import FILE, Files

_LONG = 10**8  # what is below the month in a date of 14 digits
_IN_RANGE = "surt >= $first AND (surt < $last OR surt = $last AND $entire)"
_COUNTS = (
    f"SELECT stamp // {_LONG}, count(*), min(position), max(position) FROM {FILE} "
    f"WHERE {_IN_RANGE} GROUP BY ALL"
)
_DEAD = (
    f"SELECT stamp // {_LONG}, count(*) FROM {FILE} WHERE {_IN_RANGE} "
    f"AND position IN (SELECT position FROM {engine.table('$dead')}) GROUP BY ALL"
)
_LAST = 2**63 - 1
"""A date after all others."""


@dataclass(frozen=True, slots=True)
class MonthCounts:
    """Live captures by month (200711; 0 without a date). Not `is_whole`: there are more."""

    months: Mapping[int, int]
    is_whole: bool

    @property
    def total(self) -> int:
        """All captures that were counted."""
        return sum(self.months.values())


class CaptureCalendar:
    """Counts live captures by month; one count reads up to GROUPS row groups. Thread-safe."""

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue = catalogue
        self._files = files

    def count(self, manifest: Manifest, ranges: Sequence[Range]) -> MonthCounts:
        """Return the counts of captures in ranges of SURTs. Raises StoreError.

        The table cuts SURTs, so URLs that begin with the same long text count together.
        """
        counts: Counter[int] = Counter()
        left = GROUPS
        for first, last in ranges:
            entire = len(last) > schema.SURT_LONGEST
            low, high = (cut_surt(first), 0), (cut_surt(last), _LAST if entire else 0)
            bounds = {"first": low[0], "last": high[0], "entire": entire}
            for file, groups in self._catalogue.groups(manifest, TABLE, low, high):
                taken = tuple(islice(groups, left))
                left -= len(taken)
                if not taken:
                    return MonthCounts(counts, False)
                rows = self._files.rows(_COUNTS, file, taken, **bounds)
                for month, count, _, _ in rows:
                    counts[month] += count
                if not rows:
                    continue
                least, most = min(row[2] for row in rows), max(row[3] for row in rows)
                superseded = self._catalogue.groups(manifest, "dead", least, most)
                if dead := [self._files.path(other) for other, _ in superseded]:
                    for month, count in self._files.rows(_DEAD, file, taken, dead=dead, **bounds):
                        counts[month] -= count
                if len(taken) < len(groups):
                    return MonthCounts(+counts, False)
        return MonthCounts(+counts, True)
