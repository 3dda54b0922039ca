"""Merge of captures with the last snapshot.

A capture can have several copies. The leading copy is chosen in this order: a copy from an
archive file before one from an index (which gives no payload length); a whole copy before a
damaged one; a copy with a payload before a revisit; then the first by file name and offset; then
the one that was read last. builder.kinds.captures.precedence unites the copies.

Against the snapshot, the published copy leads. There are two exceptions: the same record was read
again (same file, same offset); or the published copy is only a revisit, damaged, or from an
index. The location of a copy is not part of the description, so a copy elsewhere changes nothing
by itself. A published revisit is compared without the values inherited from its original.
"""

from builder.kinds.captures import references
from builder.kinds.captures.precedence import (
    COLUMNS,
    DESCRIBED,
    FOLDED,
    OWN_VALUES,
    REQUESTED,
    REVISED,
    UNITED,
)
from builder.kinds.kind import KindChange, KindCounts
from builder.kinds.sets import SPECIFIC
from builder.snapshot import scratch_tables
from builder.snapshot.draft import Draft
from builder.snapshot.lookup import find, rows_of
from builder.snapshot.sql import Statements
from functions.snapshot import schema
from functions.store import engine

_SQL = Statements(__file__)

_PUBLISHED = f"{COLUMNS}, NULL::VARCHAR AS document"

_GIVEN = (
    "SELECT 'oai:' || $namespace || ':' || identity AS identifier, * EXCLUDE (identity), "
    "NULL::VARCHAR AS refers_to, []::VARCHAR[] AS inherited "
    "FROM read_parquet($files, filename = 'part', file_row_number = true, "
    "hive_partitioning = false)"
)
_INTAKE = engine.table("getvariable('intake')")
_ALONE = _SQL.get("intake_captures", columns=COLUMNS, intake=_INTAKE)
_UNITED = f"{_ALONE} ANTI JOIN united_captures USING (identifier) UNION ALL FROM united_captures"
_NEW = (
    "SELECT identifier, 'capture' AS kind, false AS deleted, NULL::VARCHAR AS reason, sets, "
    f"[]::VARCHAR[] AS left_sets, {_PUBLISHED} FROM intake_captures"
)


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


def merge(change: KindChange) -> KindCounts:
    """Make `new_versions` of the intake, and `superseded_versions`, which they replace.

    builder.snapshot.scratch_tables describes the tables. `new_versions` combines the table
    `prepared_versions`, to which other kinds add, and the view `intake_versions`. If the snapshot
    has none of the intake's items, `intake_versions` shows all of `intake_captures`. That view
    reads the intake's files. If items came repeatedly, their united rows come from the table
    `united_captures`.
    """
    connection, draft, before = change.connection, change.draft, change.base.before
    captures = change.files("captures")
    if not captures:
        for table in ("listed_versions", "prepared_versions", "superseded_versions"):
            connection.execute(scratch_tables.create(table))
        connection.execute(scratch_tables.NO_INTAKE_VERSIONS)
        connection.execute(scratch_tables.NEW_VERSIONS)
        return KindCounts()
    with engine.reading("the intake"):
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
    unchanged, copies = matched - changed, rows - incoming
    return KindCounts(incoming - matched, changed, unchanged=unchanged, copies=copies)


def _gather(connection: engine.Connection, files: list[str], namespace: str, draft: Draft) -> bool:
    """Make `intake_captures`, one row for each identity. Return whether any came repeatedly.

    Usually none did, and no rows have to be united.
    """
    connection.execute("SET VARIABLE intake = $files", {"files": files})
    connection.execute("SET VARIABLE namespace = $namespace", {"namespace": namespace})
    connection.execute(_SQL.get("repeated_captures", intake=_INTAKE), {"namespace": namespace})
    repeated = rows_of(connection, "repeated_captures")
    if repeated:
        _unite(connection, files, namespace)
    captures = _UNITED if repeated else _ALONE
    referring = references.find_originals(connection, draft, namespace, captures)
    connection.execute(_SQL.get("referring_captures", **referring))
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
        connection.execute(
            f"CREATE VIEW own_versions AS SELECT * REPLACE ({OWN_VALUES}), sets AS published "
            "FROM listed_versions"
        )
        connection.execute(REVISED)
        counts = "SELECT count(*), count(*) FILTER (WHERE changed) FROM compared_captures"
        ((matched, changed),) = connection.execute(counts).fetchall()
        connection.execute(
            f"CREATE TABLE prepared_versions AS {_NEW} "
            "WHERE identifier NOT IN (SELECT identifier FROM listed_versions) "
            f"UNION ALL SELECT identifier, 'capture', false, NULL, sets, left_sets, {_PUBLISHED} "
            "FROM compared_captures WHERE changed"
        )
        connection.execute(scratch_tables.NO_INTAKE_VERSIONS)
        replaced = "position IN (SELECT old_position FROM compared_captures WHERE changed)"
    else:
        connection.execute(f"CREATE TABLE prepared_versions AS {_NEW} WHERE false")
        connection.execute(f"CREATE VIEW intake_versions AS {_NEW}")
        replaced = "false"
    connection.execute(scratch_tables.NEW_VERSIONS)
    connection.execute(
        f"CREATE TABLE superseded_versions AS SELECT {schema.SUPERSEDED} "
        f"FROM listed_versions WHERE {replaced}"
    )
    return matched, changed
