"""Sightings: what the lists of a repository said of an item in a format, and what follows.

Every row of a harvest is a sighting: a list of our own, in a run of our own, had a record live or
ended, that is, deleted or without metadata. A list is what was asked for: a format and a set, or
all. A record from GetRecord counts as of a list of all. These rules decide, and no other:

1. Within a run of a list, the later datestamp counts, then the later row. Only there are datestamps
   compared, for only there one clock gave all of them in one answer.
2. Of several runs of a list, the later run counts. So each list has one sighting of a record.
3. A sighting in a list of all speaks for all sets: earlier ones in sets no longer count.
4. A record is ended if each sighting that counts says so. While a set has it live, it is live: an
   item that leaves a set is deleted there (OAI-PMH 2.0, section 2.5.1), and lives in the others.
5. Of the live sightings that count, the one of the latest run gives the record's content.
6. Formats are decided one by one, since OAI-PMH gives the status to a record, not to an item
   (section 2.5.1). An item is deleted when none of its formats is live.
7. The order of runs is that of our clock, see HarvestState.order_runs. The repository's clock,
   which may be wrong, decides nothing beyond rule 1.

Lists that say nothing change nothing: an incremental list does not name what stayed.
"""

from collections.abc import Sequence

from builder.snapshot.compaction import RECORDS_RATIO, runs_to_merge
from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import fetch_groups, rows_of
from builder.snapshot.sql import Statements
from functions.snapshot import item_tables, schema
from functions.store import engine

TABLE = "sightings"
"""The table of the store with the sightings of earlier publishes."""
PLACE = "rtrim(regexp_replace({}, '^https?://', ''), '/')"
"""The repository of a base URL without http or https, as an expression of SQL."""

_SQL = Statements(__file__)
_FILES = engine.table("$files")
_LACKING = ", ".join(f"NULL::{c.type} AS {c.name}" for c in item_tables.INTAKE)
_COLUMNS = ", ".join(schema.names(TABLE))
_NOTHING = ", ".join(f"NULL::{c.type} AS {c.name}" for c in item_tables.SIGHTINGS)
_HARVESTED_RECORDS = _SQL.get("harvested_records", place=PLACE.format("base_url"), lacking=_LACKING)


def decide(connection: engine.Connection, draft: Draft, files: Sequence[str]) -> None:
    """Make `harvested_records` of the intake's files, and `decided_formats`.

    The files of the earliest run come first. Sightings of earlier publishes count as well.
    """
    with engine.reading("the intake"):
        connection.execute(_HARVESTED_RECORDS, {"files": list(files)})
    with engine.reading("the last snapshot"):
        keys: Query = ("SELECT DISTINCT id FROM harvested_records", {})
        earlier = fetch_groups(connection, draft, TABLE, keys)
        there = _FILES if earlier else f"(SELECT {_NOTHING} WHERE false)"
        sql = _SQL.get("latest_sightings", columns=_COLUMNS, earlier=there)
        connection.execute(sql, {"files": earlier} if earlier else {})
        connection.execute(_SQL.get("decided_formats"))


def keep(connection: engine.Connection, draft: Draft) -> None:
    """Add the new sightings to the table of the store.

    They are appended, and small files at the end are merged, so the cost is that of the change.
    """
    new = "(FROM latest_sightings WHERE fresh)"
    if not (count := rows_of(connection, new)):
        return
    leaves = draft.tables.get(TABLE, ())
    many = runs_to_merge([leaf.rows for leaf in leaves], count, RECORDS_RATIO)
    before, joined = leaves[: len(leaves) - many], leaves[len(leaves) - many :]
    rows = f"SELECT {_COLUMNS} FROM {new}"
    values = {}
    if joined:
        rows += f" UNION ALL SELECT {_COLUMNS} FROM {_FILES}"
        values["files"] = draft.paths(draft.files(joined))
    order = ", ".join(schema.ORDER[TABLE])
    merged = _SQL.get("merged_sightings", columns=_COLUMNS, order=order, rows=rows)
    written = draft.write(TABLE, [(merged, values)])
    draft.tables[TABLE] = (*before, *draft.leaves(written))
