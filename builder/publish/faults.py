"""Provenance tables: each fault and each archive file read, once."""

from collections.abc import Sequence

from builder.snapshot import compaction
from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import find_files
from functions.database import engine
from functions.snapshot import layout, schema

KEYS = {"faults": schema.names("faults"), "sources": ("source", "digest", "collections")}
"""The columns that identify a row of each table."""
DETAIL = (
    "CASE WHEN EXISTS (SELECT 1 FROM hushed h WHERE h.source = f.source AND h.place = f.place) "
    "THEN NULL ELSE detail END"
)
"""A fault's detail, or NULL for records in the table `hushed`: the detail may quote them."""
_FULL = layout.LEAF_FILES * layout.FILE_GROUPS * layout.GROUP_ROWS
_FILES = engine.table("$files")


def add(
    connection: engine.Connection,
    draft: Draft,
    table: str,
    intake: Sequence[str],
    more: str = "",
) -> int:
    """Add the rows of the intake's files that the last snapshot lacks; return how many.

    `more` is a query of further rows.
    """
    if not intake and not more:
        return 0
    with engine.reading("the intake"):
        count = _gather(connection, draft, table, list(intake), more)
    if not count:
        return 0
    leaves = draft.tables.get(table, ())
    merged = compaction.tail([e.rows for e in leaves], count, compaction.RECORDS_RATIO, _FULL)
    kept, joined = leaves[: len(leaves) - merged], leaves[len(leaves) - merged :]
    files = draft.write(table, [_sort_query(table, draft.paths(draft.files(joined)))])
    draft.tables[table] = (*kept, *draft.leaves(files))
    return count


def _gather(
    connection: engine.Connection, draft: Draft, table: str, intake: list[str], more: str
) -> int:
    """Make the table `added_<table>`; return how many rows it has."""
    key, names = KEYS[table], ", ".join(schema.names(table))
    queries = [f"SELECT {names} FROM {_FILES}"] if intake else []
    queries += [f"SELECT {names} FROM ({more})"] if more else []
    connection.execute(
        f"CREATE TABLE given_{table} AS {' UNION ALL '.join(queries)}",
        {"files": intake} if intake else {},
    )
    sources: Query = (f"SELECT DISTINCT source FROM given_{table}", {})
    earlier = draft.paths(find_files(connection, draft, table, sources))
    values = {}
    known = ""
    if earlier:
        values["earlier"] = earlier
        same = " AND ".join(f"e.{name} IS NOT DISTINCT FROM i.{name}" for name in key)
        known = f"WHERE NOT EXISTS (SELECT 1 FROM {engine.table('$earlier')} e WHERE {same})"
    rows = f"SELECT * FROM given_{table}"
    if table == "faults":
        connection.execute("CREATE TABLE IF NOT EXISTS hushed (source VARCHAR, place BIGINT)")
        rows = f"SELECT * REPLACE ({DETAIL} AS detail) FROM given_{table} f"
    connection.execute(
        f"CREATE TABLE added_{table} AS SELECT DISTINCT ON ({', '.join(key)}) * FROM ({rows}) i "
        f"{known} ORDER BY {order(table)}",
        values,
    )
    ((count,),) = connection.execute(f"SELECT count(*) FROM added_{table}").fetchall()
    return int(count)


def _sort_query(table: str, earlier: list[str]) -> Query:
    rows = f"SELECT * FROM added_{table}"
    if not earlier:
        return f"{rows} ORDER BY {order(table)}", {}
    columns = ", ".join(schema.names(table))
    both = f"SELECT {columns} FROM added_{table} UNION ALL SELECT {columns} FROM {_FILES}"
    return f"SELECT * FROM ({both}) ORDER BY {order(table)}", {"files": earlier}


def order(table: str) -> str:
    """Return a total order: the table's own sort columns, then every other column."""
    names = dict.fromkeys((*schema.ORDER[table], *schema.names(table)))
    return ", ".join(f"{name} NULLS FIRST" for name in names)
