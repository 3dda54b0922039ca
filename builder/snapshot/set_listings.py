"""Listings: number of records of each set by publish, and the positions between which they lie.

A set whose records are close together is read from the main files. A set whose records are
scattered over many row groups gets a sorted copy of them, so that a page is one read as well. Both
are decided for each run of records when the run is written.

A set lists its items and those that have left it since an earlier version (departed items). Live
records are in the set and are not tombstones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from builder.snapshot import scratch
from builder.snapshot.draft import Query
from functions.database import engine
from functions.snapshot import layout
from functions.snapshot.manifest import Span

SPREAD = 2
"""A set is copied if a page (a quarter of a row group) would touch more than SPREAD groups."""
_SLACK = 2  # row groups that any set may touch in addition

_FILES = engine.table("$files")
_SETS = engine.table("$sets")

# One row for each set that lists the item, with whether it is live there. A set that the item has
# left may share a parent with a set that contains it.
_SPECS = (
    "(SELECT * EXCLUDE (sets, left_sets, deleted), unnest(sets) AS spec, NOT deleted AS live "
    "FROM {items} UNION ALL SELECT * EXCLUDE (sets, left_sets, deleted), unnest(left_sets), false "
    "FROM {items})"
)

# Items of a row group with the same sets are counted together: neighbours often have the same sets.
_ALIKE = f"""
CREATE TABLE item_groups AS
SELECT row_number() OVER () AS number, *, len(left_sets) > 0 OR
    list_unique(list_transform(sets, lambda s: split_part(s, ':', 1))) < len(sets) AS several
FROM (
    SELECT file_index, file_row_number // $group AS part, sequence, kind, deleted, sets, left_sets,
        count(*) AS size, min(position) AS first, max(position) AS last
    FROM {_FILES} GROUP BY ALL
)
"""
_LINEAGE = (
    "CREATE TABLE parent_sets AS SELECT spec, unnest(list_transform(range(1, len(parts) + 1), "
    "lambda n: array_to_string(parts[:n], ':'))) AS listing FROM ("
    "SELECT DISTINCT spec, string_split(spec, ':') AS parts FROM ("
    "SELECT unnest(list_concat(sets, left_sets)) AS spec FROM item_groups UNION ALL "
    "SELECT unnest(list_concat(sets, left_sets)) FROM superseded_versions))"
)
# An item may be in two sets of one parent, but counts once there: such items are counted
# separately.
_CELLS = f"""
CREATE TABLE set_cells AS
WITH plain AS (
    SELECT file_index, part, sequence, kind, spec, sum(size) AS records,
        sum(if(deleted, 0, size)) AS live, min(first) AS first, max(last) AS last
    FROM (SELECT *, unnest(sets) AS spec FROM item_groups WHERE NOT several) GROUP BY ALL
),
several AS (
    SELECT file_index, part, sequence, kind, listing, number, size AS records, first, last,
        max(if(live, size, 0)) AS live
    FROM {_SPECS.format(items="(SELECT * FROM item_groups WHERE several)")} JOIN parent_sets
    USING (spec)
    GROUP BY ALL
)
SELECT listing, $runs[file_index::BIGINT + 1]::BIGINT AS run,
    file_index::BIGINT * $most + part AS cell, sequence, kind,
    sum(records)::BIGINT AS records, sum(live)::BIGINT AS live,
    min(first) AS first, max(last) AS last
FROM (
    SELECT listing, file_index, part, sequence, kind, records, live, first, last
    FROM plain JOIN parent_sets USING (spec)
    UNION ALL
    SELECT listing, file_index, part, sequence, kind, records, live, first, last FROM several
)
GROUP BY ALL
"""

_SPREAD_TABLE = """
CREATE TABLE set_spread AS
SELECT listing, run, touched > $spread * ceil(records / $page) + $slack AS copied
FROM (SELECT listing, run, count(DISTINCT cell) AS touched, sum(records) AS records
      FROM set_cells GROUP BY listing, run)
"""

_RANGES = """
CREATE TABLE set_ranges AS
WITH touched AS (
    SELECT listing, run, cell, min(first) AS first, max(last) AS last
    FROM set_cells JOIN set_spread USING (listing, run) WHERE NOT copied GROUP BY listing, run, cell
),
gaps AS (
    SELECT *, cell - lag(cell) OVER part > 1 AS gap FROM touched
    WINDOW part AS (PARTITION BY listing, run ORDER BY cell)
),
islands AS (
    SELECT *, count(*) FILTER (WHERE gap) OVER part AS island FROM gaps
    WINDOW part AS (PARTITION BY listing, run ORDER BY cell)
)
SELECT listing, min(first) AS first, max(last) AS last, false AS copied
FROM islands GROUP BY listing, run, island
UNION ALL
SELECT listing, min(first), max(last), true
FROM set_cells JOIN set_spread USING (listing, run) WHERE copied GROUP BY listing, run
"""

_COUNTS = f"""
CREATE TABLE set_counts AS
SELECT listing, sequence, kind, sum(records)::BIGINT AS records, sum(live)::BIGINT AS live
FROM set_cells WHERE sequence = $sequence GROUP BY ALL
UNION ALL
SELECT listing, sequence, kind, -count(*), -count(*) FILTER (WHERE live)
FROM (SELECT listing, sequence, kind, position, bool_or(live) AS live
      FROM {_SPECS.format(items="superseded_versions")} JOIN parent_sets USING (spec) GROUP BY ALL)
GROUP BY ALL
"""

_COPIES = f"""
SELECT listing, r.*
FROM {_FILES} r
JOIN (
    SELECT DISTINCT listing, position
    FROM (SELECT position, unnest(sets) AS spec FROM {_FILES}
          UNION ALL SELECT position, unnest(left_sets) FROM {_FILES})
    JOIN parent_sets USING (spec) JOIN set_spread USING (listing) WHERE copied AND run = $run
) USING (position)
ORDER BY listing, position
"""

# Each file of the table of sets is the home of the sets from its first one on.
_HOMES = (
    "CREATE TABLE set_files AS SELECT unnest($numbers::INTEGER[]) AS home, unnest($firsts) AS first"
)
_TOUCHED = """
SELECT DISTINCT home
FROM (SELECT listing FROM set_cells UNION SELECT listing FROM set_counts)
ASOF JOIN set_files ON listing >= first ORDER BY home
"""

_EARLIER = f"""
INSERT INTO set_counts SELECT set_spec, c.sequence, c.kind, c.records, c.live
FROM (SELECT set_spec, unnest(counts) AS c FROM {_SETS});
"""
_EARLIER_TURNS = f"INSERT INTO earlier_sets SELECT set_spec, turns, name FROM {_SETS}"
_EARLIER_RANGES = f"""
INSERT INTO set_ranges SELECT set_spec, r.first, r.last, r.copied
FROM (SELECT set_spec, unnest(ranges) AS r FROM {_SETS})
WHERE NOT EXISTS (SELECT 1 FROM rewritten_spans w WHERE r.first BETWEEN w.first AND w.last);
"""

# An odd number of turns means that the set had live records before. A set that began without any
# has its first publish twice; earlier versions of Sheaf wrote no turns.
_SUMMED = """
CREATE TABLE set_totals AS
SELECT listing, live, name,
    CASE WHEN (live > 0) = (len(before) % 2 = 1) THEN before
    ELSE list_append(before, $sequence::INTEGER) END AS turns
FROM (
    SELECT listing, live, coalesce(known_set_names.name, earlier_sets.name) AS name,
        coalesce(turns, if(live > 0 AND began = $sequence, [], [began, began])) AS before
    FROM (SELECT listing, sum(live)::BIGINT AS live, min(sequence) AS began
          FROM set_counts GROUP BY listing)
    LEFT JOIN earlier_sets USING (listing) LEFT JOIN known_set_names USING (listing)
)
"""
# The template of a series or archive gives the name of its set. A repository gives the names of its
# sets, from which items were harvested (builder.publish.harvested).
_TOLD = """
CREATE TABLE known_set_names AS
SELECT listing, max(name) AS name FROM (
    SELECT unnest(list_filter(sets, lambda s: NOT starts_with(s, 'type:'))) AS listing,
        document ->> '$.fields.name[0]' AS name
    FROM new_versions WHERE kind = 'template' AND NOT deleted
        AND list_has_any(sets, ['type:series', 'type:archive'])
    UNION ALL FROM repository_set_names
) WHERE name IS NOT NULL GROUP BY listing
"""
_EMPTIED = (
    "SELECT (SELECT count(*) FROM set_totals WHERE live = 0), "
    "(SELECT count(*) FROM earlier_sets WHERE coalesce(len(turns), 0) % 2 = 0)"
)

# Sets of one home are divided evenly, so that a file that was just split has room.
_ROWS = """
WITH listed AS (
    SELECT listing AS set_spec, sum(records)::BIGINT AS records,
        list({'sequence': sequence, 'kind': kind, 'records': records, 'live': live}
             ORDER BY sequence, kind) AS counts
    FROM (SELECT listing, sequence, kind, sum(records)::BIGINT AS records,
              sum(live)::BIGINT AS live
          FROM set_counts GROUP BY ALL HAVING sum(records) > 0)
    GROUP BY listing
),
found AS (
    SELECT set_spec, records, live, counts, ranges, turns, name
    FROM listed JOIN (SELECT listing AS set_spec, live, turns, name FROM set_totals)
    USING (set_spec)
    JOIN (
        SELECT listing AS set_spec,
            list({'first': first, 'last': last, 'copied': copied} ORDER BY first) AS ranges
        FROM set_ranges GROUP BY listing
    ) USING (set_spec)
),
placed AS (
    SELECT home, found.*, count(*) OVER (PARTITION BY home) AS size,
        row_number() OVER (PARTITION BY home ORDER BY set_spec) - 1 AS number
    FROM found ASOF JOIN set_files ON set_spec >= set_files.first
)
SELECT home * 1000000 + number * ceil(size / $most)::BIGINT // size AS part,
    set_spec, records, live, counts, ranges, turns, name
FROM placed ORDER BY set_spec
"""
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
            connection.execute(_ALIKE, {"files": files, **group})
            connection.execute(_LINEAGE)
            connection.execute(_CELLS, {"runs": numbers, "most": layout.FILE_GROUPS})
            connection.execute("DROP TABLE item_groups")
            values = {"spread": SPREAD, "slack": _SLACK, "page": layout.GROUP_ROWS / 4}
            connection.execute(_SPREAD_TABLE, values)
            connection.execute(_RANGES)
            connection.execute(_COUNTS, {"sequence": sequence})

    def copies(self, run: int) -> Query:
        """Return the query of the copies of scattered sets' records in run number `run`."""
        return _COPIES, {"files": list(self._runs[run].paths), "run": run}

    def find_files(self, firsts: Sequence[str]) -> list[int]:
        """Return the numbers of the set files that change; `firsts` are the files' first sets."""
        starts = ["", *firsts[1:]]
        with engine.reading("the index of sets"):
            self._connection.execute(
                _HOMES, {"numbers": list(range(len(starts))), "firsts": starts}
            )
            return [home for (home,) in self._connection.execute(_TOUCHED).fetchall()]

    def rows(self, earlier: Sequence[str]) -> Query:
        """Return the query of the new rows of sets; `earlier` are the paths of touched files."""
        values = {"sets": list(earlier)}
        with engine.reading("the index of sets"):
            self._connection.execute(scratch.create("earlier_sets"))
            if earlier:
                for sql in (_EARLIER, _EARLIER_RANGES, _EARLIER_TURNS):
                    self._connection.execute(sql, values)
            self._connection.execute(scratch.ensure("repository_set_names"))
            self._connection.execute(_TOLD)
            self._connection.execute(_SUMMED, {"sequence": self._sequence})
        return _ROWS, {"most": float(layout.GROUP_ROWS * layout.SETS_GROUPS)}

    def count_empty(self) -> tuple[int, int]:
        """Return how many sets of the touched files have no live record: now, and before.

        Call `rows` first.
        """
        with engine.reading("the index of sets"):
            ((now, before),) = self._connection.execute(_EMPTIED).fetchall()
        return int(now), int(before)

    @staticmethod
    def home(part: int) -> int:
        """Return the number of the file that rows of this PART replace."""
        return part // 1_000_000
