"""Provenance: the tables of a snapshot with each fault, and each archive file read, once."""

from collections.abc import Mapping, Sequence

from builder.intake.lines import line_table
from builder.snapshot import scratch_tables
from builder.snapshot.compaction import RECORDS_RATIO, runs_to_merge
from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import fetch_groups, put, rows_of
from functions.snapshot import layout, schema
from functions.store import engine

PROVENANCE_KEYS = {
    "faults": schema.names("faults"),
    "sources": ("source", "digest", "path", "collections", "reading"),
}
"""The columns that identify a row of each table."""
FAULT_DETAIL = (
    "CASE WHEN EXISTS (SELECT 1 FROM withdrawn_places h "
    "WHERE h.source = f.source AND h.place = f.place) "
    "OR f.source IN (SELECT source FROM withdrawn_places WHERE place IS NULL) "
    "THEN NULL ELSE detail END"
)
"""A fault's detail, or NULL for records in `withdrawn_places`: the detail may quote them.

Where such a record has no place of its own, as in a file that is compressed as a whole, that
concerns all faults of its file.
"""
_FULL_LEAF = layout.LEAF_FILES * layout.FILE_GROUPS * layout.GROUP_ROWS
_FILES = engine.table("$files")
_MENDED = (
    "CREATE OR REPLACE TABLE mended_sources AS SELECT unnest($sources::VARCHAR[]) AS source, "
    "unnest($numbers::INTEGER[]) AS number"
)
_UNMENDED = (
    "(SELECT f.* FROM read_parquet($files, filename = 'part', hive_partitioning = false) f "
    "LEFT JOIN mended_sources m USING (source) "
    "WHERE m.number IS NULL OR list_position($files, f.part) > m.number)"
)
"""The intake's faults that were not mended by a later run."""


def forget_faults(connection: engine.Connection, draft: Draft, mended: Mapping[str, int]) -> bool:
    """Remove the faults of sources that were read whole again; return whether there were any.

    `mended` has, for each source, how many of the intake's files with faults are of earlier runs:
    add_provenance passes over their rows.
    """
    connection.execute(_MENDED, {"sources": [*mended], "numbers": [*mended.values()]})
    sources: Query = ("SELECT source FROM mended_sources", {})
    with engine.reading("the last snapshot"):
        earlier = fetch_groups(connection, draft, "faults", sources) if mended else []
        rows = f"FROM {_FILES} WHERE source IN (SELECT source FROM mended_sources) LIMIT 1"
        if not earlier or not connection.execute(rows, {"files": earlier}).fetchall():
            return False
        nothing = f"SELECT {', '.join(schema.names('faults'))} FROM {_FILES} WHERE false"
        put(connection, draft, "faults", "source", "mended_sources", nothing)
    return True


def add_provenance(
    connection: engine.Connection, draft: Draft, table: str, paths: Sequence[str], more: str = ""
) -> int:
    """Add the rows of the intake's files that the last snapshot lacks; return how many.

    `more` is a query of further rows. Comes after `forget_faults`.
    """
    if not paths and not more:
        return 0
    with engine.reading("the intake"):
        count = _gather_provenance(connection, draft, table, list(paths), more)
    if not count:
        return 0
    leaves = draft.tables.get(table, ())
    merged = runs_to_merge([e.rows for e in leaves], count, RECORDS_RATIO, _FULL_LEAF)
    staying, joined = leaves[: len(leaves) - merged], leaves[len(leaves) - merged :]
    columns, values = ", ".join(schema.names(table)), {}
    rows = f"SELECT {columns} FROM added_{table}"
    if joined:
        values = {"files": draft.paths(draft.files(joined))}
        rows += f" UNION ALL SELECT {columns} FROM {_FILES}"
    query = f"SELECT * FROM ({rows}) ORDER BY {provenance_order(table)}"
    files = draft.write(table, [(query, values)])
    draft.tables[table] = (*staying, *draft.leaves(files))
    return count


def _gather_provenance(
    connection: engine.Connection, draft: Draft, table: str, paths: list[str], more: str
) -> int:
    """Make `intake_<table>` and `added_<table>`; return how many rows it has."""
    source = line_table(paths, schema.SOURCE) if table == "sources" else _UNMENDED
    key, names = PROVENANCE_KEYS[table], ", ".join(schema.names(table))
    queries = [f"SELECT {names} FROM {source}"] if paths else []
    queries += [f"SELECT {names} FROM ({more})"] if more else []
    connection.execute(
        f"CREATE TABLE intake_{table} AS {' UNION ALL '.join(queries)}",
        {"files": paths} if paths else {},
    )
    sources: Query = (f"SELECT DISTINCT source FROM intake_{table}", {})
    earlier = fetch_groups(connection, draft, table, sources)
    values = {}
    lacking = ""
    if earlier:
        values["earlier"] = earlier
        same = " AND ".join(f"e.{name} IS NOT DISTINCT FROM i.{name}" for name in key)
        lacking = f"WHERE NOT EXISTS (SELECT 1 FROM {engine.table('$earlier')} e WHERE {same})"
    rows = f"SELECT * FROM intake_{table}"
    if table == "faults":
        connection.execute(scratch_tables.ensure("withdrawn_places"))
        rows = f"SELECT * REPLACE ({FAULT_DETAIL} AS detail) FROM intake_{table} f"
    connection.execute(
        f"CREATE TABLE added_{table} AS SELECT DISTINCT ON ({', '.join(key)}) * FROM ({rows}) i "
        f"{lacking} ORDER BY {provenance_order(table)}",
        values,
    )
    return rows_of(connection, f"added_{table}")


def provenance_order(table: str) -> str:
    """Return a total order: the table's own sort columns, then every other column."""
    names = dict.fromkeys((*schema.ORDER[table], *schema.names(table)))
    return ", ".join(f"{name} NULLS FIRST" for name in names)
