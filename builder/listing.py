"""Listings: how many records of each publish a set has, and between which positions they lie.

A set whose records lie close together is read from the main files; one that is scattered thinly
over many row groups gets a sorted copy of its records, so that a page of it is one read as well.
"""

from functions.oai import engine
from functions.snapshot import layout

SPREAD = 4
"""A set is copied if its records touch over SPREAD times the row groups that they would fill."""
_SLACK = 2  # row groups that any set may touch besides

_FILES = engine.table("$files")
_SETS = engine.table("$sets")

_LINEAGE = (
    "CREATE TABLE lineage AS SELECT spec, unnest(list_transform(range(1, len(parts) + 1), "
    "lambda n: array_to_string(parts[:n], ':'))) AS listing FROM ("
    "SELECT DISTINCT spec, string_split(spec, ':') AS parts FROM ("
    f"SELECT unnest(sets) AS spec FROM {_FILES} "
    "UNION ALL SELECT unnest(sets) FROM superseded))"
)

# An item may be in two sets below one parent, and counts once there: such items go the long way.
_CELLS = f"""
CREATE TABLE cells AS
WITH item AS (
    SELECT position, kind, sets,
        list_unique(list_transform(sets, lambda s: split_part(s, ':', 1))) < len(sets) AS several
    FROM {_FILES}
),
plain AS (
    SELECT kind, spec, (position - $base) // $group AS cell, count(*) AS records,
        min(position) AS first, max(position) AS last
    FROM (SELECT kind, position, unnest(sets) AS spec FROM item WHERE NOT several)
    GROUP BY ALL
),
several AS (
    SELECT DISTINCT listing, kind, position
    FROM (SELECT kind, position, unnest(sets) AS spec FROM item WHERE several)
    JOIN lineage USING (spec)
)
SELECT listing, kind, cell, sum(records)::BIGINT AS records, min(first) AS first, max(last) AS last
FROM (
    SELECT listing, kind, cell, records, first, last FROM plain JOIN lineage USING (spec)
    UNION ALL
    SELECT listing, kind, (position - $base) // $group, 1, position, position FROM several
)
GROUP BY ALL
"""

_SPREAD_TABLE = """
CREATE TABLE spread AS
SELECT listing, touched > $spread * ceil(records / $group) + $slack AS copied
FROM (SELECT listing, count(DISTINCT cell) AS touched, sum(records) AS records
      FROM cells GROUP BY listing)
"""

_RANGES = """
CREATE TABLE ranges AS
WITH touched AS (
    SELECT listing, cell, min(first) AS first, max(last) AS last
    FROM cells JOIN spread USING (listing) WHERE NOT copied GROUP BY listing, cell
),
gaps AS (
    SELECT *, cell - lag(cell) OVER (PARTITION BY listing ORDER BY cell) > 1 AS gap FROM touched
),
islands AS (
    SELECT *, count(*) FILTER (WHERE gap) OVER (PARTITION BY listing ORDER BY cell) AS island
    FROM gaps
)
SELECT listing, min(first) AS first, max(last) AS last, false AS copied
FROM islands GROUP BY listing, island
UNION ALL
SELECT listing, min(first), max(last), true
FROM cells JOIN spread USING (listing) WHERE copied GROUP BY listing
"""

_COUNTS = """
CREATE TABLE counts AS
SELECT listing, $sequence::INTEGER AS sequence, kind, sum(records)::BIGINT AS records
FROM cells GROUP BY ALL
UNION ALL
SELECT listing, sequence, kind, -count(DISTINCT position)
FROM (SELECT position, sequence, kind, unnest(sets) AS spec FROM superseded)
JOIN lineage USING (spec) GROUP BY ALL
"""

COPIES = f"""
SELECT listing, r.*
FROM {_FILES} r
JOIN (
    SELECT DISTINCT listing, position
    FROM (SELECT position, unnest(sets) AS spec FROM {_FILES})
    JOIN lineage USING (spec) JOIN spread USING (listing) WHERE copied
) USING (position)
ORDER BY listing, position
"""
"""The copies of scattered sets' records, in the order of their table."""

_EARLIER = f"""
INSERT INTO counts SELECT set_spec, c.sequence, c.kind, c.records
FROM (SELECT set_spec, unnest(counts) AS c FROM {_SETS});
"""
_EARLIER_RANGES = f"""
INSERT INTO ranges SELECT set_spec, r.first, r.last, r.copied
FROM (SELECT set_spec, unnest(ranges) AS r FROM {_SETS});
"""

SETS = """
SELECT listing AS set_spec, records, counts, ranges
FROM (
    SELECT listing, sum(records)::BIGINT AS records,
        list({'sequence': sequence, 'kind': kind, 'records': records}
             ORDER BY sequence, kind) AS counts
    FROM (SELECT listing, sequence, kind, sum(records)::BIGINT AS records
          FROM counts GROUP BY ALL HAVING sum(records) > 0)
    GROUP BY listing
) JOIN (
    SELECT listing, list({'first': first, 'last': last, 'copied': copied} ORDER BY first) AS ranges
    FROM ranges GROUP BY listing
) USING (listing)
ORDER BY set_spec
"""
"""Every set that has a record, in the order of its table."""


def index(
    connection: engine.Connection, files: list[str], earlier: list[str], sequence: int, base: int
) -> None:
    """Make the tables that COPIES and SETS are asked of.

    `files` are the data files of this publish, whose first position is `base`, `earlier` those
    of the last snapshot's table of sets; `superseded` is as merge left it.
    """
    group = {"group": layout.GROUP_ROWS}
    with engine.reading("the index of sets"):
        connection.execute(_LINEAGE, {"files": files})
        connection.execute(_CELLS, {"files": files, "base": base, **group})
        connection.execute(_SPREAD_TABLE, {"spread": SPREAD, "slack": _SLACK, **group})
        connection.execute(_RANGES)
        connection.execute(_COUNTS, {"sequence": sequence})
        if earlier:
            connection.execute(_EARLIER, {"sets": earlier})
            connection.execute(_EARLIER_RANGES, {"sets": earlier})
