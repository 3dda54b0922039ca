"""Look-ups: finds the versions of given items, and the data files that can hold given keys."""

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from builder.snapshot import compaction
from builder.snapshot.draft import Draft, Query
from functions.database import engine
from functions.snapshot import identifier, schema
from functions.snapshot.manifest import DataFile, RowGroup

WITHIN_KIND = "url_surtkey, fetch_date NULLS LAST, identifier"
NATURAL_ORDER = f"kind, {WITHIN_KIND}"
_POSITIONS: Query = ("SELECT position FROM places", {})
LOCATED = (
    f"{engine.table('$records')} r JOIN places p "
    "ON r.position = p.position AND r.identifier = p.identifier"
)
"""The versions found by `locate`, as a table expression over the files that it returned."""
_FILES = engine.table("$files")


def find(connection: engine.Connection, draft: Draft, wanted: str, *, newest: bool = False) -> None:
    """Make `old`: the listed versions of the items in the table `wanted`.

    Each row of `wanted` has an `identifier`. Only those files of the last snapshot are read that
    can hold the items. With `newest`, only the files are read that can hold the version with the
    highest position. That is for items with very many versions.
    """
    records = locate(connection, draft, wanted, newest=newest)
    if not records:
        types = ", ".join(f"{c.name} {c.type}" for c in schema.TABLES["records"])
        connection.execute(f"CREATE OR REPLACE TABLE old ({types})")
        return
    columns = ", ".join(f"r.{name}" for name in schema.names("records"))
    values = {"records": records}
    dead = find_files(connection, draft, "dead", _POSITIONS)
    live = ""
    if dead:
        live = f"WHERE r.position NOT IN (SELECT position FROM {engine.table('$dead')})"
        values["dead"] = draft.paths(dead)
    connection.execute(
        f"CREATE OR REPLACE TABLE old AS SELECT {columns} FROM {LOCATED} {live}", values
    )


def locate(
    connection: engine.Connection, draft: Draft, wanted: str, *, newest: bool = False
) -> list[str]:
    """Make `places`: the possible positions of all versions, or only of the newest ones.

    Returns the paths of the files for $records in LOCATED. The list is empty if there are no
    versions.
    """
    connection.execute("CREATE OR REPLACE TABLE places (identifier VARCHAR, position BIGINT)")
    keys: Query = (f"SELECT {identifier.LOOKUP_KEY} FROM {wanted}", {})
    lookup = draft.paths(find_files(connection, draft, "lookup", keys))
    if lookup:
        connection.execute(
            f"INSERT INTO places SELECT identifier, l.position FROM {engine.table('$lookup')} l "
            f"JOIN {wanted} ON l.key = {identifier.LOOKUP_KEY}",
            {"lookup": lookup},
        )
    if newest:
        connection.execute(
            "CREATE OR REPLACE TABLE places AS "
            "SELECT identifier, max(position) AS position FROM places GROUP BY identifier"
        )
    return draft.paths(find_files(connection, draft, "records", _POSITIONS))


def find_files(
    connection: engine.Connection, draft: Draft, table: str, keys: Query
) -> list[DataFile]:
    """Return the files of a table in which some row group can hold one of the keys.

    The query `keys` returns the columns that bound row groups (schema.KEY), in any order. The keys
    are read in batches to save memory, and only until all files are found.
    """
    files = draft.files(draft.tables.get(table, ()))
    left = dict(enumerate(files))
    with closing(engine.batches(connection, *keys)) as batches:
        while left and (batch := sorted(next(batches, ()))):
            found = [n for n, file in left.items() if any(_holds(g, batch) for g in file.groups)]
            for number in found:
                del left[number]
    return [file for number, file in enumerate(files) if number not in left]


def _holds(group: RowGroup, keys: Sequence[Any]) -> bool:
    place = bisect_left(keys, group.first)
    return place < len(keys) and keys[place] <= group.last


def put(
    connection: engine.Connection, draft: Draft, table: str, key: str, touched: str, query: str
) -> None:
    """Replace the rows of a table whose key is in the table `touched` by the rows of `query`.

    Files with such rows are dropped; their other rows are written to the new leaf as well. If there
    are no such files, the small leaves at the end of the table are merged with the new rows.
    """
    files = find_files(connection, draft, table, (f"SELECT {key} FROM {touched}", {}))
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


def rows_of(connection: engine.Connection, table: str) -> int:
    """Return the number of rows of a table."""
    ((number,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(number)
