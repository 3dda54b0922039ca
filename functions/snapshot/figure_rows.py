"""Figures as rows of their table, which a publish writes and pages read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from functions.snapshot.figure_tables import COUNTED, FIGURES, PUBLISHES, SHOWN

TABLE = "figures"
COLUMNS = tuple(column.name for column in FIGURES)
CHANGES = tuple(column.name for column in PUBLISHES[2:])
"""Columns of a publish: the changes of a kind of items, and their number afterwards."""
_EMPTY = (None,) * len(CHANGES)
KEPT = 2 * SHOWN
"""The most values of a facet in the figures: more than are shown, as some become less frequent."""

Counts = tuple[int, int]
"""Captures and bytes."""
NO_CAPTURES = (0, 0)


def add(counts: dict[Any, Counts], key: object, captures: int, size: int) -> None:
    """Add captures and bytes to those of a key, which is removed if it has no captures left."""
    before = counts.get(key, NO_CAPTURES)
    counts[key] = before[0] + captures, before[1] + size
    if not counts[key][0]:
        del counts[key]


@dataclass
class FacetCounts:
    """Sums of a facet, its most frequent values, and for media types the others by status.

    Counts of values and of others are by detail; it is None where a facet has no details.
    """

    captures: int = 0
    bytes: int = 0
    different: int = 0
    values: dict[str, dict[str | None, Counts]] = field(default_factory=dict)
    others: dict[str | None, Counts] = field(default_factory=dict)

    def rank(self, value: str) -> tuple[int, str]:
        """Return the sort key of a value among the most frequent ones."""
        return -sum(captures for captures, _ in self.values[value].values()), value

    def details(self, sign: int, counts: dict[str | None, Counts]) -> dict[str | None, Counts]:
        """Return `counts`, with those of the values added or (-1) subtracted, by detail."""
        for own in self.values.values():
            for detail, (captures, size) in own.items():
                add(counts, detail, sign * captures, sign * size)
        return counts


@dataclass
class FigureRows:
    """The rows of the table, by facet. `kinds` has the live and deleted items of each kind."""

    months: dict[str, Counts] = field(default_factory=dict)
    facets: dict[str, FacetCounts] = field(
        default_factory=lambda: {name: FacetCounts() for name in COUNTED}
    )
    kinds: dict[str, Counts] = field(default_factory=dict)
    publishes: list[tuple[Any, ...]] = field(default_factory=list)

    @staticmethod
    def of(rows: Iterable[Sequence[Any]]) -> "FigureRows":
        """Return the figures of the table's rows, each with the values of COLUMNS."""
        figures = FigureRows()
        for facet, sequence, value, detail, captures, size, different, *changes in rows:
            if facet == "month":
                figures.months[value] = captures, size
            elif facet == "kind":
                figures.kinds[value] = changes[-2], changes[-1]
            elif facet == "publish":
                figures.publishes.append((sequence, value, *changes))
            elif different is not None:
                sums = figures.facets[facet]
                sums.captures, sums.bytes, sums.different = captures, size, different
            elif value is None:
                figures.facets[facet].others[detail] = captures, size
            else:
                figures.facets[facet].values.setdefault(value, {})[detail] = captures, size
        return figures

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows of the table, sorted."""
        rows = [
            ("month", None, m, None, *counts, None, *_EMPTY) for m, counts in self.months.items()
        ]
        for name, facet in self.facets.items():
            sums = (facet.captures, facet.bytes, facet.different)
            rows.append((name, None, None, None, *sums, *_EMPTY))
            for value, details in (*facet.values.items(), (None, facet.others)):
                rows += [(name, None, value, d, *c, None, *_EMPTY) for d, c in details.items()]
        rows += [("kind", None, kind, *(None,) * 8, *counts) for kind, counts in self.kinds.items()]
        rows += [("publish", n, kind, *_EMPTY[:4], *more) for n, kind, *more in self.publishes]
        return sorted(
            rows,
            key=lambda r: (r[0], r[1] or 0, r[2] is None, r[2] or "", r[3] is None, r[3] or ""),
        )


def thin(publishes: Iterable[tuple[Any, ...]], newest: int) -> list[tuple[Any, ...]]:
    """Return the rows of the newest SHOWN publishes, and of at most SHOWN earlier ones.

    Of the earlier ones, every second, fourth, eighth and so on is kept.
    """
    earlier = newest - SHOWN
    step = 1
    while earlier // step > SHOWN:
        step *= 2
    return [row for row in publishes if row[0] > earlier or row[0] % step == 0]
