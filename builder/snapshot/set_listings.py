"""Listings: number of records of each set by publish, and the positions between which they lie.

A set whose records are close together is read from the main files. A set whose records are
scattered over many row groups gets a sorted copy of them, so that a page is one read as well. Both
are decided for each run of records when the run is written.

A set lists its items and those that have left it since an earlier version (departed items). Live
records are in the set and are not tombstones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from builder.snapshot import scratch_tables
from builder.snapshot.draft import Query
from builder.snapshot.sql import Statements
from functions.snapshot import layout
from functions.snapshot.manifest import Span
from functions.store import engine

_SQL = Statements(__file__)

SPREAD = 4
"""A set is copied if a page (a quarter of a row group) would touch more than SPREAD groups."""
_SLACK = 2  # row groups that any set may touch in addition

_FILES = engine.table("$files")

# One row for each set that lists the item, with whether it is live there. A set that the item has
# left may share a parent with a set that contains it.
_SPECS = (
    "(SELECT * EXCLUDE (sets, left_sets, deleted), unnest(sets) AS spec, NOT deleted AS live "
    "FROM {items} UNION ALL SELECT * EXCLUDE (sets, left_sets, deleted), unnest(left_sets), false "
    "FROM {items})"
)

_SET_CELLS = _SQL.get(
    "set_cells", several_items=_SPECS.format(items="(SELECT * FROM item_groups WHERE several)")
)
_SET_COUNTS = _SQL.get("set_counts", superseded_sets=_SPECS.format(items="superseded_versions"))
COPY_ORDER = "listing, position"

# Each file of the table of sets is the home of the sets from its first one on.
_SET_FILES = (
    "CREATE TABLE set_files AS SELECT unnest($numbers::INTEGER[]) AS home, unnest($firsts) AS first"
)
_SET_ROWS = _SQL.get(
    "set_rows", within="listing >= $start AND (listing < $end OR $end::VARCHAR IS NULL)"
)
SET_BYTES = 4096
"""Memory for each set of a query of rows: DuckDB 2.0 keeps the lists that it makes in memory."""
PART = "part"
"""The column of the rows of sets that determines their file; see `home`."""


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run that was just written: its span of the log and the local paths of its records."""

    span: Span
    paths: Sequence[str]


class SetIndex:
    """The sets of the runs that a publish wrote; its own sequence is `sequence`.

    Reads the tables `superseded_versions` and `rewritten_spans`.
    """

    def __init__(
        self, connection: engine.Connection, runs: Sequence[NewRun], sequence: int
    ) -> None:
        self._connection = connection
        self._runs = runs
        self._sequence = sequence
        files = [path for run in runs for path in run.paths]
        numbers = [number for number, run in enumerate(runs) for _ in run.paths]
        group = {"group": layout.GROUP_ROWS}
        with engine.reading("the index of sets"):
            connection.execute(_SQL.get("item_groups", files=_FILES), {"files": files, **group})
            connection.execute(_SQL.get("parent_sets"))
            connection.execute(_SET_CELLS, {"runs": numbers})
            connection.execute("DROP TABLE item_groups")
            values = {"spread": SPREAD, "slack": _SLACK, "page": layout.GROUP_ROWS / 4}
            connection.execute(_SQL.get("set_spread"), values)
            connection.execute(_SQL.get("set_ranges"))
            connection.execute(_SET_COUNTS, {"sequence": sequence})

    def copies(self, run: int) -> tuple[Query, int]:
        """Return the query of the copies of scattered sets' records in run number `run`.

        They are to be sorted by COPY_ORDER. Also returns their number, about.
        """
        sql = "SELECT coalesce(sum(records), 0) FROM set_spread WHERE copied AND run = $run"
        ((count,),) = self._connection.execute(sql, {"run": run}).fetchall()
        copies = _SQL.get("copied_records", files=_FILES)
        return (copies, {"files": list(self._runs[run].paths), "run": run}), int(count)

    def find_files(self, firsts: Sequence[str]) -> list[int]:
        """Return the numbers of the set files that change; `firsts` are the files' first sets."""
        starts = ["", *firsts[1:]]
        with engine.reading("the index of sets"):
            self._connection.execute(
                _SET_FILES, {"numbers": list(range(len(starts))), "firsts": starts}
            )
            touched = self._connection.execute(_SQL.get("touched_files"))
            return [home for (home,) in touched.fetchall()]

    def rows(self, earlier: Sequence[str]) -> Iterator[Query]:
        """Yield queries of the new rows of sets; `earlier` are the paths of touched files.

        The rows of all queries are sorted; each query takes a part of the memory.
        """
        with engine.reading("the index of sets"):
            self._connection.execute(
                "CREATE OR REPLACE TABLE earlier_sets "
                "(listing VARCHAR, turns INTEGER[], name VARCHAR)"
            )
            if earlier:
                sets = engine.table("$sets")
                for sql in (
                    _SQL.get("earlier_counts", sets=sets),
                    _SQL.get("earlier_ranges", sets=sets),
                    _SQL.get("earlier_sets", sets=sets),
                ):
                    self._connection.execute(sql, {"sets": list(earlier)})
            self._connection.execute(scratch_tables.ensure("repository_set_names"))
            files = [path for run in self._runs for path in run.paths]
            names = _SQL.get("known_set_names", files=_FILES)
            self._connection.execute(names, {"files": files, "sequence": self._sequence})
            self._connection.execute(_SQL.get("set_totals"), {"sequence": self._sequence})
            most = layout.GROUP_ROWS * layout.SETS_GROUPS
            sql = _SQL.get("set_parts")
            parts = self._connection.execute(sql, {"most": float(most)}).fetchall()
        many = max(1, engine.find_memory(self._connection) // (SET_BYTES * most))
        for place in range(0, len(parts), many):
            taken, behind = parts[place : place + many], parts[place + many : place + many + 1]
            yield (
                _SET_ROWS,
                {
                    "parts": [part for part, _ in taken],
                    "firsts": [first for _, first in taken],
                    "start": taken[0][1],
                    "end": behind[0][1] if behind else None,
                },
            )

    def count_empty(self) -> tuple[int, int]:
        """Return how many sets of the touched files have no live record: now, and before.

        Call `rows` first.
        """
        with engine.reading("the index of sets"):
            ((now, before),) = self._connection.execute(_SQL.get("empty_sets")).fetchall()
        return int(now), int(before)

    @staticmethod
    def home(part: int) -> int:
        """Return the number of the file that rows of this PART replace."""
        return part // 1_000_000
