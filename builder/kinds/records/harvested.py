"""Harvested items: records from other repositories, as versions of items.

An item belongs to one repository and holds one record for each format. Which records are live, and
which are ended, is decided by builder.kinds.records.sightings. The item keeps its own identifier,
unless an item of another repository or of another kind is listed under that identifier.

A record that is equal to the listed one changes nothing: the date of its first harvest is kept, and
the address from which it came then.
"""

from builder.kinds.kind import KindChange, KindCounts
from builder.kinds.records import sightings
from builder.kinds.sets import LEFT
from builder.snapshot import scratch_tables
from builder.snapshot.lookup import find, put, rows_of
from builder.snapshot.sql import Statements
from functions.kinds.records import HARVESTED
from functions.snapshot import item_tables, schema
from functions.store import engine

_SQL = Statements(__file__)

KIND = HARVESTED.name

_HARVESTED_IDENTIFIERS = _SQL.get("harvested_identifiers")
# The owner of an identifier: the repository of its listed item, else the first that claims it.
_IS_OTHERS = f"""
(o.identifier IS NOT NULL AND (o.kind != '{KIND}' OR NOT o.deleted AND NOT list_contains(
    c.places, {sightings.PLACE.format("(o.document ->> '$.base_url')")}))
    OR p.identifier IS NOT NULL AND NOT p.deleted)
"""
_SERVED = (
    "({0} ->> '$.metadata', {0} ->> '$.namespace', {0} ->> '$.datestamp', {0} -> '$.about', "
    "{0} ->> '$.origins[0].altered', {0} ->> '$.origins[0].identifier', "
    "from_json({0} -> '$.origins', '[\"JSON\"]')[2:])"
)
"""What of an entry is served, besides where and when it was harvested."""
_LEFT = LEFT.format(earlier="list_concat(o.sets, o.left_sets)", now="n.sets")
_STEPS = (
    _SQL.get("assigned_identifiers", is_others=_IS_OTHERS),
    _SQL.get("listed_formats", kind=KIND),
    _SQL.get("item_formats"),
)
_NEW_ENTRIES = _SQL.get("new_entries")
_CHANGES = (
    _SQL.get("equal_entries", new=_SERVED.format("entry"), listed=_SERVED.format("listed")),
    _SQL.get("item_headers", kind=KIND),
    _SQL.get("harvested_items"),
    _SQL.get("revised_harvests", left=_LEFT),
    _SQL.get("prepared_versions", kind=KIND),
    _SQL.get("superseded_versions", superseded=schema.SUPERSEDED),
)
_SET_NAMES = _SQL.get("set_names")
_FORGOTTEN = _SQL.get("forgotten_parts", files=engine.table("$files"), reading=item_tables.READING)


def revise(change: KindChange) -> KindCounts:
    """Add the changes of harvested items in the intake.

    They go to `prepared_versions` and `superseded_versions`.
    """
    files, names = change.files("harvested"), change.files("set_names")
    if not files:
        return KindCounts()
    connection, draft = change.connection, change.draft
    sightings.decide(connection, draft, files)
    with engine.reading("the intake"):
        connection.execute(_HARVESTED_IDENTIFIERS)
        connection.execute(scratch_tables.ensure("repository_set_names"))
        if names:
            connection.execute(_SET_NAMES, {"files": list(names)})
    with engine.reading("the last snapshot"):
        find(connection, draft, "harvested_identifiers")
        for sql in _STEPS:
            connection.execute(sql)
        connection.execute(_NEW_ENTRIES, {"files": list(files)})
        for sql in _CHANGES:
            connection.execute(sql)
        sightings.keep(connection, draft)
        ((new, changed, deleted),) = connection.execute(
            "SELECT count(*) FILTER (WHERE old_position IS NULL), count(old_position), "
            "count(*) FILTER (WHERE deleted) FROM revised_harvests"
        ).fetchall()
        listed = rows_of(connection, "(SELECT identifier FROM harvested_items WHERE NOT gone)")
    return KindCounts(int(new), int(changed), int(deleted), listed - int(new + changed - deleted))


def forget_parts(change: KindChange) -> None:
    """Let the next ingest read all parts of harvests again, as they may have newer records.

    Changes of a withdrawn item are not kept, so a reinstated item needs them.
    """
    connection, draft = change.connection, change.draft
    files = draft.paths(draft.files(draft.tables.get("sources", ())))
    if not files or not rows_of(connection, f"(FROM new_versions WHERE kind = '{KIND}')"):
        return
    with engine.reading("the last snapshot"):
        connection.execute(_FORGOTTEN, {"files": files})
        if rows_of(connection, "forgotten_parts"):
            put(connection, draft, "sources", "source", "forgotten_parts", "FROM forgotten_parts")
