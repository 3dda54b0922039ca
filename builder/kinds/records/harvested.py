"""Harvested items: records from other repositories, as versions of items.

An item belongs to one repository and holds one record for each format. Which records are live, and
which are ended, is decided by builder.kinds.records.sightings. The item keeps its own identifier,
unless an item of another repository or of another kind is listed under that identifier.

A record that is equal to the listed one changes nothing: the date of its first harvest is kept, and
the address from which it came then.
"""

from collections.abc import Iterator, Sequence

from builder.kinds.kind import KindChange, KindCounts
from builder.kinds.records import sightings
from builder.kinds.sets import LEFT
from builder.kinds.versions import add_versions
from builder.snapshot import scratch_tables
from builder.snapshot.draft import Query
from builder.snapshot.lookup import fetch_groups, find, put, rows_of
from builder.snapshot.sql import Statements
from functions.kinds.records import HARVESTED
from functions.snapshot import schema
from functions.store import engine

_SQL = Statements(__file__)

KIND = HARVESTED.name

# The owner of an identifier: the repository of its listed item, else the first that claims it.
_IS_OTHERS = f"""
(o.identifier IS NOT NULL AND (o.kind != '{KIND}' OR NOT o.deleted AND NOT list_contains(
    c.places, {sightings.PLACE.format("(o.document ->> '$.base_url')")}))
    OR p.identifier IS NOT NULL AND NOT p.deleted)
"""
_WITHOUT_METADATA = (
    'to_json(from_json(document, \'{"base_url": "VARCHAR", "repository": "VARCHAR", '
    '"id": "VARCHAR", "specs": ["VARCHAR"], "ended": ["VARCHAR"], '
    '"records": [{"prefix": "VARCHAR", "digest": "VARCHAR"}]}\'))'
)
"""The document of a listed item, without what takes its room."""
_LEFT = LEFT.format(earlier="list_concat(o.sets, o.left_sets)", now="n.sets")
_STEPS = (
    _SQL.get("assigned_identifiers", is_others=_IS_OTHERS),
    _SQL.get("listed_formats", kind=KIND),
    _SQL.get("item_formats"),
)
_RECEIVED = _SQL.get("received_entries")
_LISTED = _SQL.get("listed_entries", kind=KIND, records=engine.table("$records"))
_EQUAL_ENTRIES = _SQL.get("equal_entries", received=_RECEIVED, listed=_LISTED)
_CHANGES = (
    _SQL.get("item_headers", kind=KIND),
    _SQL.get("harvested_items"),
    _SQL.get("revised_harvests", left=_LEFT),
)
_OTHERS = ", ".join(f"NULL::{column.type} AS {column.name}" for column in schema.CAPTURE)
_LISTED_POSITIONS = (
    "SELECT o.position FROM listed_versions o JOIN item_formats f USING (identifier) "
    "WHERE f.listed AND {}"
)
_STAYING = (
    "NOT f.fresh AND NOT f.ended "
    "AND identifier IN (SELECT identifier FROM revised_harvests WHERE NOT deleted)"
)
_SET_NAMES = _SQL.get("set_names")


def revise(change: KindChange) -> KindCounts:
    """Add the changes of harvested items in the intake.

    They go to `prepared_versions`, without their content, and `superseded_versions`.
    """
    files, names = change.files("harvested"), change.files("set_names")
    if not files:
        return KindCounts()
    connection, draft = change.connection, change.draft
    sightings.decide(connection, draft, files)
    with engine.reading("the intake"):
        connection.execute(_SQL.get("harvested_identifiers"))
        connection.execute(scratch_tables.ensure("repository_set_names"))
        if names:
            connection.execute(_SET_NAMES, {"files": list(names)})
    with engine.reading("the last snapshot"):
        instead = {"document": _WITHOUT_METADATA}
        find(connection, draft, "harvested_identifiers", instead=instead)
        for sql in _STEPS:
            connection.execute(sql)
        compared: Query = (_LISTED_POSITIONS.format("f.fresh"), {})
        if records := fetch_groups(connection, draft, "records", compared):
            connection.execute(_SQL.get("served_fields"))
            connection.execute(_EQUAL_ENTRIES, {"files": list(files), "records": records})
        for sql in _CHANGES:
            connection.execute(sql)
        new, changed, deleted = add_versions(connection, "revised_harvests", KIND)
        sightings.keep(connection, draft)
        listed = rows_of(connection, "(SELECT identifier FROM harvested_items WHERE NOT gone)")
        change.rows[KIND] = _rows(change, files, new + changed)
    return KindCounts(new, changed, deleted, listed - (new + changed - deleted))


def _rows(change: KindChange, files: Sequence[str], count: int) -> Iterator[Query]:
    """Yield queries that give the `count` new versions with their content, by identifier."""
    connection, draft = change.connection, change.draft
    staying: Query = (_LISTED_POSITIONS.format(_STAYING), {})
    values = {"files": list(files)}
    listed = "SELECT '' AS identifier, '' AS prefix, '' AS entry WHERE false"
    if records := fetch_groups(connection, draft, "records", staying):
        listed, values["records"] = _LISTED, records
    sql = _SQL.get("harvested_rows", kind=KIND, received=_RECEIVED, listed=listed, others=_OTHERS)
    return draft.sort("records", (sql, values), "identifier", count, True, files)


def forget_parts(change: KindChange, kind: str, reading: str) -> None:
    """Let the next ingest read all parts of harvests, or all files of records, again.

    Changes of a withdrawn item are not kept, so a reinstated item of this kind needs them.
    `reading` is how their `reading` begins in the table of sources.
    """
    connection, draft = change.connection, change.draft
    files = draft.paths(draft.files(draft.tables.get("sources", ())))
    if not files or not rows_of(connection, f"(FROM new_versions WHERE kind = '{kind}')"):
        return
    with engine.reading("the last snapshot"):
        connection.execute(
            _SQL.get("forgotten_parts", files=engine.table("$files")),
            {"files": files, "reading": reading},
        )
        if rows_of(connection, "forgotten_parts"):
            put(connection, draft, "sources", "source", "forgotten_parts", "FROM forgotten_parts")
