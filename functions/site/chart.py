"""Geometry of charts: values to shapes, for templates that draw them as SVG."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

CELL, GAP = 26, 2
"""Width of a month's cell, and the space between cells."""
_LEFT, _TOP, _HEIGHT, _DIGIT = 44, 20, 22, 9
_YEARS = 60
_PLOT = 160
"""Height of a plot of columns."""


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A month: its place, its count, the strength of its colour from 1 to 5, and its marks."""

    x: int
    y: int
    month: str
    count: int
    level: int
    link: str | None
    marks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Years as rows and months as columns; `years` are labels, places and sums of the counts.

    `levels` are the strengths of colour that it has, each with the least count of its cells.
    """

    cells: tuple[HeatCell, ...]
    years: tuple[tuple[str, int, int], ...]
    columns: tuple[int, ...]
    width: int
    height: int
    levels: Sequence[tuple[int, int]]


def draw_months(
    counts: Mapping[str, int],
    link: Callable[[str], str | None] = lambda month: None,
    marks: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> HeatMap:
    """Return the map of counts by month (`2007-11`), newest year first; at most _YEARS years."""
    years = sorted({month[:4] for month in counts}, reverse=True)
    if years:
        first, last = max(int(years[-1]), int(years[0]) - _YEARS + 1), int(years[0])
        years = [f"{year:04}" for year in range(last, first - 1, -1)]
    most = max(counts.values(), default=0)
    columns = tuple(_LEFT + month * (CELL + GAP) for month in range(12))
    cells, rows = [], []
    for row, year in enumerate(years):
        y = _TOP + row * (_HEIGHT + GAP)
        total = 0
        for number, x in enumerate(columns, 1):
            month = f"{year}-{number:02}"
            count = counts.get(month, 0)
            total += count
            if count:
                # The strength of the colour is logarithmic, as counts of months differ widely.
                share = math.log(count) / math.log(most) if most > 1 else 1
                level = 1 + min(4, int(4.999 * share))
                cells.append(HeatCell(x, y, month, count, level, link(month), marks.get(month, ())))
        rows.append((year, y, total))
    right = _DIGIT * (1 + len(f"{max((row[2] for row in rows), default=0):,}"))
    height = _TOP + len(years) * (_HEIGHT + GAP)
    least: dict[int, int] = {}
    for cell in cells:
        least[cell.level] = min(cell.count, least.get(cell.level, cell.count))
    width, levels = columns[-1] + CELL + right, sorted(least.items())
    return HeatMap(tuple(cells), tuple(rows), columns, width, height, levels)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its label, value, place, and its share of the longest bar in percent."""

    label: str
    value: int
    share: float
    link: str | None = None


def draw_bars(
    rows: Sequence[tuple[str, int]], link: Callable[[str], str | None] = lambda label: None
) -> tuple[Bar, ...]:
    """Return horizontal bars of labelled values, in their order."""
    most = max((value for _, value in rows), default=0) or 1
    return tuple(Bar(label, n, round(100 * n / most, 2), link(label)) for label, n in rows)


@dataclass(frozen=True, slots=True)
class Plot:
    """A line over points: `path` in a box of `width` and `height`; `points` with their places."""

    path: str
    area: str
    points: tuple[tuple[float, float, str, int], ...]
    width: int
    height: int


def draw_line(rows: Sequence[tuple[str, int]], width: int = 640) -> Plot:
    """Return the plot of labelled values that follow each other, from 0 upwards."""
    most = max((value for _, value in rows), default=0)
    step = width / max(1, len(rows) - 1)
    top = 6
    points = tuple(
        (
            round(number * step, 1),
            round(_PLOT - (_PLOT - top) * value / (most or 1), 1),
            label,
            value,
        )
        for number, (label, value) in enumerate(rows)
    )
    path = " ".join(f"{'L' if n else 'M'}{x} {y}" for n, (x, y, _, _) in enumerate(points))
    area = f"{path} L{points[-1][0]} {_PLOT} L{points[0][0]} {_PLOT} Z" if points else ""
    return Plot(path, area, points, width, _PLOT)
