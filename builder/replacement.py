"""Replacement: rows of a table of a snapshot take the place of those with the same key."""

from typing import Any

from builder import compaction
from builder.merge import narrowed
from builder.snapshot import Draft
from functions.oai import engine
from functions.snapshot import schema

_FILES = engine.table("$files")


def put(
    connection: engine.Connection, draft: Draft, table: str, key: str, touched: str, query: str
) -> None:
    """Put rows in the place of those of a table whose key is one of the table `touched`.

    Files that have such rows go, and their other rows come along into a leaf of their own; where
    there are no such files, small leaves before it join.
    """
    files = narrowed(connection, draft, table, (f"SELECT {key} FROM {touched}", {}))
    draft.substitute(table, {file.key: () for file in files})
    kept = draft.tables.get(table, ())
    if kept and not files:
        ((count,),) = connection.execute(f"SELECT count(*) FROM ({query})").fetchall()
        rows = [leaf.rows for leaf in kept]
        size = len(kept) - compaction.tail(rows, count, compaction.RECORDS_RATIO)
        files, kept = draft.files(kept[size:]), kept[:size]
    values: dict[str, Any] = {}
    sql = query
    if files:
        values = {"files": draft.paths(files)}
        sql += f" UNION ALL SELECT * FROM {_FILES} WHERE {key} NOT IN (SELECT {key} FROM {touched})"
    order = ", ".join(schema.ORDER[table])
    written = draft.write(table, [(f"SELECT * FROM ({sql}) ORDER BY {order}", values)])
    draft.tables[table] = (*kept, *draft.leaves(written))
