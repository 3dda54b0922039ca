"""The merge: the intake held against the last snapshot, giving what is new or changed.

Rules. Captures of one identity within the intake become one: the first copy (by file name, then
offset) leads, what it lacks is filled from the others, sets are united. Against the snapshot, an
item changes only if its description does. A copy that lies elsewhere fills what is missing and
adds sets; the same record read again (same file, same offset) also corrects what was read before.
Where copies lie is no part of the description.
"""

from dataclasses import dataclass

from functions.oai import engine
from functions.snapshot import identifier, schema

_CAPTURE = tuple(column.name for column in schema.CAPTURE)
_COLUMNS = ", ".join(_CAPTURE)
_DESCRIBED = tuple(name for name in _CAPTURE if name not in schema.LOCATION)
_COPY_ORDER = "warc_filename, warc_record_offset NULLS LAST, warc_record_length"
_SPECIFIC = (
    "list_sort(list_filter(list_distinct({sets}), lambda s: NOT coalesce(list_bool_or("
    "list_transform({sets}, lambda o: starts_with(o, s || ':'))), false)))"
)
NATURAL_ORDER = "kind, url_surtkey, fetch_date NULLS LAST, identifier"


@dataclass(frozen=True, slots=True)
class Previous:
    """The last snapshot's files on this machine, by table."""

    lookup: list[str]
    records: list[str]
    dead: list[str]


@dataclass(frozen=True, slots=True)
class Merged:
    """How many items of the intake are new, changed, and as they were."""

    new: int
    changed: int
    unchanged: int


def merge(
    connection: engine.Connection, captures: list[str], namespace: str, previous: Previous
) -> Merged:
    """Make the tables `fresh` (versions to publish) and `superseded` (those they replace).

    `captures` are Parquet files with the columns of intake.CAPTURES. `fresh` has the columns of
    `records` but position and sequence; `superseded` has position, sequence, kind and sets.
    """
    with engine.reading("the intake"):
        _gather(connection, captures, namespace)
    with engine.reading("the last snapshot"):
        _match(connection, previous)
        _revise(connection)
    (incoming,) = _row(connection, "SELECT count(*) FROM incoming")
    (matched, changed) = _row(
        connection, "SELECT count(*), count(*) FILTER (WHERE changed) FROM revised"
    )
    return Merged(incoming - matched, changed, matched - changed)


def _gather(connection: engine.Connection, captures: list[str], namespace: str) -> None:
    """Make `incoming`: one row for each identity of the intake."""
    connection.execute(
        "CREATE TABLE repeated AS SELECT identity FROM read_parquet($files) "
        "GROUP BY identity HAVING count(*) > 1",
        {"files": captures},
    )
    merged = [
        f"first({name} ORDER BY {_COPY_ORDER}) FILTER (WHERE {name} IS NOT NULL) AS {name}"
        if name in _DESCRIBED
        else f"first({name} ORDER BY {_COPY_ORDER}) AS {name}"
        for name in _CAPTURE
    ]
    united = _SPECIFIC.format(sets="flatten(list(sets))")
    connection.execute(
        "CREATE TABLE incoming AS "
        f"SELECT 'oai:' || $namespace || ':' || identity AS identifier, sets, {_COLUMNS} "
        "FROM read_parquet($files) WHERE identity NOT IN (SELECT identity FROM repeated) "
        "UNION ALL "
        f"SELECT 'oai:' || $namespace || ':' || identity, {united}, {', '.join(merged)} "
        "FROM read_parquet($files) WHERE identity IN (SELECT identity FROM repeated) "
        "GROUP BY identity",
        {"files": captures, "namespace": namespace},
    )


def _match(connection: engine.Connection, previous: Previous) -> None:
    """Make `old`: the listed versions of the items that `incoming` has as well."""
    columns = ", ".join(f"r.{name}" for name in schema.names("records"))
    if not previous.records:
        types = ", ".join(f"{c.name} {c.type}" for c in schema.TABLES["records"])
        connection.execute(f"CREATE TABLE old ({types})")
        return
    live = "AND r.position NOT IN (SELECT position FROM read_parquet($dead))"
    values = {"lookup": previous.lookup, "records": previous.records}
    connection.execute(
        "CREATE TABLE old AS WITH matched AS ("
        "SELECT identifier, l.position FROM read_parquet($lookup) l "
        f"JOIN incoming ON l.key = {identifier.LOOKUP_KEY}) "
        f"SELECT {columns} FROM read_parquet($records) r "
        "JOIN matched m ON r.position = m.position AND r.identifier = m.identifier WHERE true "
        + (live if previous.dead else ""),
        {**values, "dead": previous.dead} if previous.dead else values,
    )


def _revise(connection: engine.Connection) -> None:
    """Make `revised`, `fresh` and `superseded` out of `incoming` and `old`."""
    same = (
        "(i.warc_filename = o.warc_filename "
        "AND i.warc_record_offset IS NOT DISTINCT FROM o.warc_record_offset)"
    )
    columns = [
        f"CASE WHEN {same} THEN coalesce(i.{n}, o.{n}) ELSE coalesce(o.{n}, i.{n}) END AS {n}"
        if n in _DESCRIBED
        else f"o.{n} AS {n}"
        for n in _CAPTURE
    ]
    # What the same record gave before is replaced hierarchy by hierarchy; collections only grow.
    roots = "list_transform(i.sets, lambda x: split_part(x, ':', 1))"
    kept = (
        f"list_filter(o.sets, lambda s: NOT {same} OR starts_with(s, 'collection:') "
        f"OR NOT list_contains({roots}, split_part(s, ':', 1)))"
    )
    sets = _SPECIFIC.format(sets=f"list_concat(i.sets, {kept})")
    differs = " OR ".join(f"n.{name} IS DISTINCT FROM o.{name}" for name in ("sets", *_DESCRIBED))
    connection.execute(
        "CREATE TABLE revised AS WITH n AS (SELECT o.position AS old_position, o.identifier, "
        f"{sets} AS sets, {', '.join(columns)} FROM incoming i JOIN old o USING (identifier)) "
        f"SELECT n.*, NOT o.deleted AND ({differs}) AS changed "
        "FROM n JOIN old o ON o.position = n.old_position"
    )
    connection.execute(
        "CREATE TABLE fresh AS SELECT identifier, 'capture' AS kind, false AS deleted, "
        f"sets, {_COLUMNS} FROM incoming WHERE identifier NOT IN (SELECT identifier FROM old) "
        "UNION ALL "
        f"SELECT identifier, 'capture', false, sets, {_COLUMNS} FROM revised WHERE changed"
    )
    connection.execute(
        "CREATE TABLE superseded AS SELECT position, sequence, kind, sets FROM old "
        "WHERE position IN (SELECT old_position FROM revised WHERE changed)"
    )


def _row(connection: engine.Connection, sql: str) -> tuple[int, ...]:
    (row,) = connection.execute(sql).fetchall()
    return tuple(row)
