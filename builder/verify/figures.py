"""Checks of the figures of one snapshot, which are computed again from its listed records."""

from collections.abc import Iterator
from typing import Any

from builder.snapshot.audit import SnapshotContents
from builder.snapshot.match_keys import LISTED_CAPTURE
from builder.store.findings import Finding
from builder.verify.data_files import DataFileIndex
from functions.snapshot import layout
from functions.snapshot.figure_rows import COLUMNS, TABLE, FacetCounts, FigureRows, thin
from functions.snapshot.figure_tables import COUNTED, SHOWN
from functions.store import engine

_CAPTURES = "SELECT {columns}, count(*) AS captures, sum(bytes)::BIGINT AS bytes FROM live "
_LIVE = f"WHERE {LISTED_CAPTURE} AND {{column}} IS NOT NULL GROUP BY ALL"
# A status of NULL is -1 here, as NULL is equal to nothing.
_COUNT_FAULTS = """
SELECT count(*), min(value) FROM ({counted}) c FULL JOIN ({said}) s USING (value, detail)
WHERE (c.captures, c.bytes) IS DISTINCT FROM (s.captures, s.bytes)
"""
_MONTHS = _CAPTURES.format(columns="month") + _LIVE.format(column="month")
_KINDS = (
    "SELECT kind, count(*) FILTER (NOT deleted), count(*) FILTER (deleted) FROM live GROUP BY kind"
)
_HIGHEST = """
SELECT {column}, {detail}, captures, bytes FROM {table} SEMI JOIN (
    SELECT {column} FROM {table} GROUP BY ALL ORDER BY sum(captures) DESC, {column} LIMIT $most
) USING ({column})
"""
_ALL_OF = "SELECT {detail}, sum(captures)::BIGINT, sum(bytes)::BIGINT FROM {table} GROUP BY ALL"


def figure_findings(evidence: DataFileIndex, contents: SnapshotContents) -> Iterator[Finding]:
    """Yield findings on the figures of the snapshot that TableChecks checked last.

    A snapshot of an earlier version of Sheaf has none. Raises StoreError if scratch space or memory
    is insufficient.
    """
    if not contents.manifest.tables.get(TABLE):
        return
    key = layout.manifest_key(contents.manifest.snapshot)
    with engine.reading(key):
        checks = _FigureChecks(evidence.connection, contents)
        for problem in (*checks.counts(), *checks.figures(), *checks.publishes()):
            yield Finding("figures-wrong", key, problem)


class _FigureChecks:
    """Checks that yield problems; they read the views of TableChecks."""

    def __init__(self, connection: engine.Connection, contents: SnapshotContents) -> None:
        self._connection = connection
        self._sequences = contents.manifest.sequences
        rows = self._rows(f"SELECT {', '.join(COLUMNS)} FROM {TABLE}")
        # The order of the publishes of the figures is checked.
        self._figures = FigureRows.of(sorted(rows, key=lambda row: (row[1] or 0, row[2] or "")))

    def counts(self) -> Iterator[str]:
        """Check the tables with the counts of all values."""
        for table, column in COUNTED.values():
            detail = "coalesce(status, -1)" if column == "media_type" else "0"
            columns = f"{column} AS value, {detail} AS detail"
            counted = _CAPTURES.format(columns=columns) + _LIVE.format(column=column)
            listed = f"SELECT {columns}, captures, bytes FROM {table}"
            ((count, example),) = self._rows(_COUNT_FAULTS.format(counted=counted, said=listed))
            if count:
                yield f"{count:,} rows of {table} are wrong or missing, the first of {example!r}"

    def figures(self) -> Iterator[str]:
        """Check the table of figures."""
        figures = self._figures
        if figures.months != {month: tuple(counts) for month, *counts in self._rows(_MONTHS)}:
            yield "the figures of months are wrong"
        if figures.kinds != {kind: tuple(counts) for kind, *counts in self._rows(_KINDS)}:
            yield "the figures of kinds are wrong"
        for name, facet in figures.facets.items():
            if facet != self._facet(name, len(facet.values)):
                yield f"the figures of {COUNTED[name][0]} are wrong"
            elif len(facet.values) < min(SHOWN, facet.different):
                yield f"the figures have only {len(facet.values):,} {COUNTED[name][0]}"

    def _facet(self, name: str, most: int) -> FacetCounts:
        """Return the figures of a facet with that many values, from the table of all values."""
        table, column = COUNTED[name]
        is_media = name == "media_type"
        names = {
            "table": table,
            "column": column,
            "detail": "coalesce(status::VARCHAR, '')" if is_media else "NULL",
        }
        sums = (
            f"SELECT coalesce(sum(captures), 0), coalesce(sum(bytes), 0), count(DISTINCT {column})"
        )
        ((captures, size, different),) = self._rows(f"{sums} FROM {table}")
        facet = FacetCounts(int(captures), int(size), different)
        for value, detail, *counts in self._rows(_HIGHEST.format(**names), most=most):
            facet.values.setdefault(value, {})[detail] = (counts[0], counts[1])
        if is_media:
            every = {d: (c, b) for d, c, b in self._rows(_ALL_OF.format(**names))}
            facet.others = facet.details(-1, every)
        return facet

    def publishes(self) -> Iterator[str]:
        """Check the table of publishes against the sequences, and its rows in the figures."""
        rows = self._rows("SELECT * EXCLUDE (file) FROM publishes ORDER BY sequence, kind")
        by_number: dict[int, list[tuple[Any, ...]]] = {s.number: [] for s in self._sequences}
        for row in rows:
            by_number.setdefault(row[0], []).append(row)
        if len(by_number) > len(self._sequences):
            yield "publishes has publishes that the manifest lacks"
            return
        for sequence in self._sequences:
            changes = [number for row in by_number[sequence.number] for number in row[2:6]]
            if not changes:
                yield f"publishes lacks publish {sequence.number}"
            elif None not in changes and sum(changes) != sequence.last - sequence.first + 1:
                yield f"the changes of publish {sequence.number} do not add up to its positions"
        newest = self._sequences[-1].number if self._sequences else 0
        if {row[1]: row[6:] for row in by_number.get(newest, ())} != self._figures.kinds:
            yield "publishes has another number of records of the newest publish"
        if self._figures.publishes != thin(rows, newest):
            yield "the figures of publishes differ from the table of publishes"

    def _rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._connection.execute(sql, values).fetchall()
        return rows
