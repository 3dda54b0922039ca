"""Figures of the whole archive, kept up to date by what a publish changes.

The tables `hosts`, `domains` and `media_types` count all live captures. A publish rewrites only
their files with a changed value. The table `figures` has the most frequent values of each, taken
from the earlier figures and the changed values. Other values are at most as frequent as the last
one that was kept, so they are only read if too few kept values are still above it.

A snapshot of an earlier version of Sheaf has no figures. They are then counted from all records.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from builder.snapshot.compaction import RECORDS_RATIO, runs_to_merge
from builder.snapshot.draft import Draft, Query
from builder.snapshot.match_keys import LISTED_CAPTURE
from builder.snapshot.sql import Statements
from functions.kinds import CAPTURES
from functions.snapshot import layout, schema
from functions.snapshot.figure_rows import CHANGES, KEPT, TABLE, FacetCounts, FigureRows, add, thin
from functions.snapshot.figure_tables import COUNTED, SHOWN
from functions.store import engine

_SQL = Statements(__file__)

_FILES = engine.table("$files")
_COUNTED_COLUMNS = (
    "url_host_name, url_host_registered_domain, content_mime_type, content_mime_detected, "
    "fetch_status, fetch_date, content_length"
)
_VERSIONS = " UNION ALL ".join(
    f"SELECT {sign} AS sign, {_COUNTED_COLUMNS} FROM {table} WHERE {LISTED_CAPTURE}"
    for sign, table in ((1, "new_versions"), (-1, "superseded_versions"))
)
_NO_COUNTS = "(SELECT NULL AS {column}, NULL AS status, 0 AS captures, 0 AS bytes WHERE false)"
_HOMES = 1_000_000  # of these numbers of parts each home has its own
_SUMMED_CHANGES, _COUNT_FILES = _SQL.get("summed_changes"), _SQL.get("count_files")
_TOUCHED_FILES, _VERSION_CHANGES = _SQL.get("touched_files"), _SQL.get("version_changes")
_CHANGED = (
    "SELECT value, status, captures, bytes FROM changed_counts "
    "SEMI JOIN (SELECT value FROM capture_changes WHERE facet = $facet) USING (value)"
)
_KEPT_CHANGES = (
    "SELECT DISTINCT value FROM capture_changes WHERE facet = $facet "
    "AND list_contains($values, value)"
)


def update(connection: engine.Connection, draft: Draft, sequence: int) -> None:
    """Bring the figures of the draft up to date with the publish of that number.

    It reads `new_versions` and `superseded_versions`.
    """
    with engine.reading("the figures"):
        figures = FigureRows()
        if files := draft.paths(draft.files(draft.tables.get(TABLE, ()))):
            sql = f"SELECT {', '.join(schema.names(TABLE))} FROM {_FILES}"
            figures = FigureRows.of(connection.execute(sql, {"files": files}).fetchall())
        connection.execute(_SQL.get("capture_changes", versions=_VERSIONS))
        _count_captures(connection, draft, figures)
        rows = _count_items(connection, figures, sequence)
        _append(draft, rows)
        figures.publishes = thin(figures.publishes + rows, sequence)
        written = draft.write(TABLE, [_query_of(TABLE, figures.rows())])
    draft.tables[TABLE] = draft.leaves(written)


def _count_kind(figures: FigureRows, kind: str, deleted: bool, count: int) -> None:
    live, gone = figures.kinds.get(kind, (0, 0))
    figures.kinds[kind] = (live, gone + count) if deleted else (live + count, gone)


def _append(draft: Draft, rows: Sequence[tuple[Any, ...]]) -> None:
    """Append rows to the table of publishes; small files at its end are merged with them."""
    leaves = draft.tables.get("publishes", ())
    merged = runs_to_merge([leaf.rows for leaf in leaves], len(rows), RECORDS_RATIO)
    staying, joined = leaves[: len(leaves) - merged], leaves[len(leaves) - merged :]
    sql, values = _query_of("publishes", rows)
    queries: list[Query] = [(sql, values)]
    if joined:
        paths = draft.paths(draft.files(joined))
        queries.insert(0, (f"FROM {_FILES} ORDER BY sequence, kind", {"files": paths}))
    draft.tables["publishes"] = (*staying, *draft.leaves(draft.write("publishes", queries)))


def _query_of(table: str, rows: Sequence[tuple[Any, ...]]) -> Query:
    """Return a query that gives these rows of a table."""
    columns = schema.TABLES[table]
    names = ", ".join(f"unnest(${c.name}::{c.type}[]) AS {c.name}" for c in columns)
    lists = zip(*rows, strict=True)
    return f"SELECT {names}", {c.name: [*v] for c, v in zip(columns, lists, strict=True)}


def _count_items(
    connection: engine.Connection, figures: FigureRows, sequence: int
) -> list[tuple[Any, ...]]:
    """Count the items that the publish changes; return its rows of the table of publishes."""
    new, old = (
        {
            (kind, deleted): count
            for kind, deleted, count in connection.execute(
                f"SELECT kind, deleted, count(*) FROM {table} GROUP BY ALL"
            ).fetchall()
        }
        for table in ("new_versions", "superseded_versions")
    )
    if {*new, *old} <= {(k, False) for k in CAPTURES}:  # the usual case, with nothing to compare
        pairs = [(*key, *key, count) for key, count in old.items()]
    else:
        pairs = connection.execute(_VERSION_CHANGES).fetchall()
    changes: dict[str, dict[str, int]] = {}

    def note(kind: str, change: str, count: int) -> None:
        changes.setdefault(kind, dict.fromkeys(CHANGES[:4], 0))[change] += count

    left = dict(new)
    for kind, deleted, _, before, count in pairs:
        note(kind, "changed" if deleted == before else "deleted" if deleted else "restored", count)
        left[kind, deleted] -= count
    for (kind, deleted), count in left.items():
        note(kind, "deleted" if deleted else "added", count)
    for (kind, deleted), count in new.items():
        _count_kind(figures, kind, deleted, count)
    for (kind, deleted), count in old.items():
        _count_kind(figures, kind, deleted, -count)
    nothing = dict.fromkeys(CHANGES[:4], 0)
    return [
        (sequence, kind, *changes.get(kind, nothing).values(), *counts)
        for kind, counts in sorted(figures.kinds.items())
    ]


def _count_captures(connection: engine.Connection, draft: Draft, figures: FigureRows) -> None:
    """Add `capture_changes` to the figures, and to the tables of all values."""
    media = figures.facets["media_type"]
    statuses = media.details(1, dict(media.others))
    changed = set()
    for facet, value, status, captures, size in connection.execute(_SUMMED_CHANGES).fetchall():
        if facet == "month":
            add(figures.months, value, captures, size)
            continue
        changed.add(facet)
        sums = figures.facets[facet]
        sums.captures, sums.bytes = sums.captures + captures, sums.bytes + size
        if facet == "media_type":
            add(statuses, _detail(facet, status), captures, size)
    for name in sorted(changed):
        FacetTable(connection, draft, name).update(figures.facets[name])
    media.others = media.details(-1, statuses)


def _detail(facet: str, status: int | None) -> str | None:
    """Return the detail of a row of the figures."""
    if facet != "media_type":
        return None
    return "" if status is None else str(status)


class FacetTable:
    """The table with the counts of all values of a facet, in a draft."""

    def __init__(self, connection: engine.Connection, draft: Draft, facet: str) -> None:
        self._connection = connection
        self._draft = draft
        self._facet = facet
        self._table, self._column = COUNTED[facet]
        self._status = "status" if "status" in schema.names(self._table) else "NULL"
        self._values = {"facet": facet}

    def update(self, facet: FacetCounts) -> None:
        """Rewrite the files with changed values; choose the most frequent values again."""
        earlier = list(facet.values)
        sql = _KEPT_CHANGES
        changed = self._connection.execute(sql, {**self._values, "values": earlier}).fetchall()
        complete = len(earlier) == facet.different
        facet.different += self._rewrite()
        last = max(map(facet.rank, earlier), default=(0, ""))
        for (value,) in changed:
            del facet.values[value]
        self._take(facet, _CHANGED, self._values)
        if not complete:
            facet.values = {v: d for v, d in facet.values.items() if facet.rank(v) <= last}
            if len(facet.values) < min(SHOWN, facet.different):
                files = self._draft.files(self._draft.tables[self._table])
                status = f"{self._status} AS status"
                sql = f"SELECT {self._column} AS value, {status}, captures, bytes FROM {_FILES}"
                self._take(facet, sql, {"files": self._draft.paths(files)})
        most = sorted(facet.values, key=facet.rank)[:KEPT]
        facet.values = {value: facet.values[value] for value in most}

    def _take(self, facet: FacetCounts, counts: str, values: Mapping[str, Any]) -> None:
        """Add the most frequent values of a query."""
        sql = _SQL.get("highest_counts", counts=counts)
        rows = self._connection.execute(sql, {**values, "most": KEPT}).fetchall()
        for value, group in groupby(sorted(rows, key=itemgetter(0)), key=itemgetter(0)):
            facet.values[value] = {_detail(self._facet, row[1]): row[2:] for row in group}

    def _rewrite(self) -> int:
        """Rewrite the files with changed values; return by how much their number has grown."""
        files = self._draft.files(self._draft.tables.get(self._table, ()))
        bounds = [(str(f.groups[0].first), str(f.groups[-1].last)) for f in files] or [("", "")]
        values = {
            "numbers": [*range(len(bounds))],
            "firsts": ["", *(first for first, _ in bounds[1:])],
            "lasts": [last for _, last in bounds],
        }
        execute = self._connection.execute
        execute(_COUNT_FILES, values)
        homes = [home for (home,) in execute(_TOUCHED_FILES, self._values).fetchall()]
        earlier = [files[home] for home in homes] if files else []
        before = self._change_counts(homes, self._draft.paths(earlier))
        status = "status," if self._status == "status" else ""
        sql = _SQL.get("count_rows", column=self._column, status=status)
        most = layout.GROUP_ROWS * layout.file_groups(self._table)
        parts = self._draft.write_segments(self._table, [(sql, {"most": float(most)})], "part")
        new = {
            home: [f for p, fs in parts.items() if p // _HOMES == home for f in fs]
            for home in homes
        }
        if files:
            self._draft.substitute(self._table, {files[home].key: new[home] for home in homes})
        else:
            self._draft.tables[self._table] = self._draft.leaves(new[0])
        ((after,),) = execute("SELECT count(DISTINCT value) FROM changed_counts").fetchall()
        return int(after) - before

    def _change_counts(self, homes: Sequence[int], earlier: Sequence[str]) -> int:
        """Make `changed_counts`; return the number of values in the earlier files."""
        names = {"column": self._column, "status": self._status}
        values: dict[str, Any] = {**self._values, "homes": list(homes)}
        before, source = 0, _NO_COUNTS.format(**names)
        if earlier:
            values["files"], source = list(earlier), _FILES
            sql = f"SELECT count(DISTINCT {self._column}) FROM {_FILES}"
            ((before,),) = self._connection.execute(sql, {"files": list(earlier)}).fetchall()
        self._connection.execute(_SQL.get("changed_counts", files=source, **names), values)
        return int(before)
