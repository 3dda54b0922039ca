"""Merge of captures with the last snapshot, and the provenance of their archives.

A capture can have several copies. The leading copy is chosen in this order: a copy from an
archive file before one from an index (which gives no payload length); a whole copy before a
damaged one; a copy with a payload before a revisit; then the first by file name and offset; then
the one that was read last. builder.publish.precedence unites the copies.

Against the snapshot, the published copy leads. There are two exceptions: the same record was read
again (same file, same offset); or the published copy is only a revisit, damaged, or from an
index. The location of a copy is not part of the description, so a copy elsewhere changes nothing
by itself. A published revisit is compared without the values inherited from its original.

The provenance tables hold each fault and each archive file read, once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from builder.intake.lines import line_table
from builder.intake.row_files import join_small_files
from builder.publish import references
from builder.publish.precedence import (
    COLUMNS,
    DESCRIBED,
    FOLDED,
    OWN_VALUES,
    REQUESTED,
    REVISED,
    SPECIFIC,
    UNITED,
)
from builder.snapshot import scratch_tables
from builder.snapshot.compaction import RECORDS_RATIO, runs_to_merge
from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import fetch_groups, find, rows_of
from builder.snapshot.sql import Statements
from functions.database import engine
from functions.snapshot import layout, schema
from functions.snapshot.manifest import Manifest

_SQL = Statements(__file__)

_PUBLISHED = f"{COLUMNS}, NULL::VARCHAR AS document"

_GIVEN = (
    "SELECT 'oai:' || $namespace || ':' || identity AS identifier, * EXCLUDE (identity), "
    "NULL::VARCHAR AS refers_to, []::VARCHAR[] AS inherited "
    "FROM read_parquet($files, filename = 'part', file_row_number = true, "
    "hive_partitioning = false)"
)
_INTAKE = engine.table("getvariable('intake')")
_REPEATED_CAPTURES = _SQL.get("repeated_captures", intake=_INTAKE)
_ALONE = _SQL.get("intake_captures", columns=COLUMNS, intake=_INTAKE)
_UNITED = f"{_ALONE} ANTI JOIN united_captures USING (identifier) UNION ALL FROM united_captures"
_NEW = (
    "SELECT identifier, 'capture' AS kind, false AS deleted, NULL::VARCHAR AS reason, sets, "
    f"[]::VARCHAR[] AS left_sets, {_PUBLISHED} FROM intake_captures"
)
NEW_VERSIONS = "CREATE VIEW new_versions AS FROM intake_versions UNION ALL FROM prepared_versions"
"""Makes the view `new_versions`; where both have rows, `intake_versions` is mostly the larger."""
NO_INTAKE_VERSIONS = "CREATE VIEW intake_versions AS SELECT * FROM prepared_versions WHERE false"
"""Makes an empty view `intake_versions`, for when all rows are in `prepared_versions`."""
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


def _request_of(column: str) -> str:
    """Return SQL for the value of the first copy that describes its request (even by NULL)."""
    describes = "content_length IS NOT NULL OR fetch_method IS NOT NULL"
    first = f"first_value(CASE WHEN {describes} THEN [{column}] END IGNORE NULLS) OVER copy"
    return f"coalesce({first}, first_value([{column}]) OVER copy)[1]"


_CAPTURE_COPIES = _SQL.get(
    "capture_copies",
    described=", ".join(
        f"{_request_of(name) if name in REQUESTED else UNITED.format(name=name)} AS {name}"
        for name in DESCRIBED
    ),
    location=", ".join(sorted(schema.LOCATION)),
    given=_GIVEN,
)


_WITHDRAWN_PLACES = _SQL.get("withdrawn_places", given=_GIVEN)

_OWN_VERSIONS = (
    f"CREATE VIEW own_versions AS SELECT * REPLACE ({OWN_VALUES}), sets AS published "
    "FROM listed_versions"
)


@dataclass(frozen=True, slots=True)
class Merged:
    """Numbers of items in the intake: new, changed and unchanged ones, and further copies."""

    new: int
    changed: int
    unchanged: int
    copies: int


def merge(
    connection: engine.Connection, captures: list[str], before: Manifest, draft: Draft
) -> Merged:
    """Make `new_versions` and `superseded_versions`, which they replace.

    `captures` are Parquet files with the columns of intake.CAPTURES, the earliest run's first.
    `draft` begins as the snapshot `before`. builder.snapshot.scratch_tables describes the tables.
    `new_versions` combines the table `prepared_versions`, which callers may change, and the view
    `intake_versions`. If the snapshot has none of the intake's items, `intake_versions` shows all
    of `intake_captures`. That view reads the intake's files. If items came repeatedly, their
    united rows come from the table `united_captures`.
    """
    with engine.reading("the intake"):
        captures = join_small_files(connection, captures, draft.folder)
        several = _gather(connection, captures, before.namespace, draft)
        rows = rows_of(connection, _INTAKE)
        incoming = rows_of(connection, "intake_captures") if several else rows
    with engine.reading("the last snapshot"):
        find(connection, draft, "intake_captures")
        if rows_of(connection, "(FROM listed_versions WHERE reason IS NOT NULL)"):
            values = {"files": captures, "namespace": before.namespace}
            connection.execute(_WITHDRAWN_PLACES, values)
        else:
            connection.execute(scratch_tables.ensure("withdrawn_places"))
    with engine.reading("the merged captures"):
        matched, changed = _revise(connection)
    return Merged(incoming - matched, changed, matched - changed, rows - incoming)


def _gather(
    connection: engine.Connection, captures: list[str], namespace: str, draft: Draft
) -> bool:
    """Make `intake_captures`, one row for each identity. Return whether any came repeatedly.

    Usually none did, and no rows have to be united.
    """
    connection.execute("SET VARIABLE intake = $files", {"files": captures})
    connection.execute("SET VARIABLE namespace = $namespace", {"namespace": namespace})
    connection.execute(_REPEATED_CAPTURES, {"namespace": namespace})
    repeated = rows_of(connection, "repeated_captures")
    if repeated:
        _unite(connection, captures, namespace)
    references.find_originals(connection, draft, namespace)
    view = _SQL.get("referring_captures", captures=_UNITED if repeated else _ALONE)
    connection.execute(f"CREATE VIEW intake_captures AS {view}")
    return repeated > 0


def _unite(connection: engine.Connection, captures: list[str], namespace: str) -> None:
    # The local names of a bucket's files do not give their order.
    connection.execute(
        "CREATE TABLE intake_files AS "
        "SELECT unnest($files) AS part, unnest(range(len($files))) AS number",
        {"files": captures},
    )
    connection.execute(_CAPTURE_COPIES, {"files": captures, "namespace": namespace})
    united = SPECIFIC.format(sets=FOLDED.format(lists="lists"))
    connection.execute(
        f"CREATE TABLE united_captures AS SELECT identifier, {united} AS sets, {COLUMNS} "
        "FROM capture_copies WHERE rank = 1"
    )
    connection.execute("DROP TABLE capture_copies; DROP TABLE intake_files;")


def _revise(connection: engine.Connection) -> tuple[int, int]:
    """Make the versions to publish and `superseded_versions`.

    Return the numbers of matched and changed items.
    """
    matched = changed = 0
    if rows_of(connection, "listed_versions"):
        connection.execute(_OWN_VERSIONS)
        connection.execute(REVISED)
        counts = "SELECT count(*), count(*) FILTER (WHERE changed) FROM compared_captures"
        ((matched, changed),) = connection.execute(counts).fetchall()
        connection.execute(
            f"CREATE TABLE prepared_versions AS {_NEW} "
            "WHERE identifier NOT IN (SELECT identifier FROM listed_versions) "
            f"UNION ALL SELECT identifier, 'capture', false, NULL, sets, left_sets, {_PUBLISHED} "
            "FROM compared_captures WHERE changed"
        )
        connection.execute(NO_INTAKE_VERSIONS)
        replaced = "position IN (SELECT old_position FROM compared_captures WHERE changed)"
    else:
        connection.execute(f"CREATE TABLE prepared_versions AS {_NEW} WHERE false")
        connection.execute(f"CREATE VIEW intake_versions AS {_NEW}")
        replaced = "false"
    connection.execute(NEW_VERSIONS)
    connection.execute(
        f"CREATE TABLE superseded_versions AS SELECT {schema.SUPERSEDED} "
        f"FROM listed_versions WHERE {replaced}"
    )
    return matched, changed


def add_provenance(
    connection: engine.Connection, draft: Draft, table: str, paths: Sequence[str], more: str = ""
) -> int:
    """Add the rows of the intake's files that the last snapshot lacks; return how many.

    `more` is a query of further rows.
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
    source = line_table(paths, schema.SOURCE) if table == "sources" else _FILES
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
