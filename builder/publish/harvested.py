"""Harvested items: records from other repositories, as versions of items.

An item belongs to one repository and holds one record for each format. It is deleted when its
repository reports a deletion in one format and no newer record in another. The item keeps its own
identifier, unless an item of another repository or of another kind is listed under that identifier.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from builder.publish.precedence import LEFT
from builder.snapshot import scratch_tables
from builder.snapshot.draft import Draft
from builder.snapshot.lookup import find, rows_of
from builder.snapshot.sql import Statements
from functions.database import engine
from functions.snapshot import schema

_SQL = Statements(__file__)

KIND = "harvested"

# The owner of an item: its repository's URL without http or https.
_REPOSITORY = "rtrim(regexp_replace({}, '^https?://', ''), '/')"

_HARVESTED_RECORDS = _SQL.get("harvested_records", place=_REPOSITORY.format("base_url"))
_HARVESTED_IDENTIFIERS = _SQL.get("harvested_identifiers")
# The owner of an identifier: the repository of its listed item, else the first that claims it.
_IS_OTHERS = f"""
(o.identifier IS NOT NULL AND (o.kind != '{KIND}'
    OR NOT o.deleted AND {_REPOSITORY.format("(o.document ->> '$.base_url')")} != c.place)
    OR p.identifier IS NOT NULL AND NOT p.deleted)
"""
_ASSIGNED_IDENTIFIERS = _SQL.get("assigned_identifiers", is_others=_IS_OTHERS)
_ITEM_RECORDS = _SQL.get("item_records", kind=KIND)
_HARVESTED_ITEMS = _SQL.get("harvested_items", kind=KIND)
_LEFT = LEFT.format(earlier="list_concat(o.sets, o.left_sets)", now="n.sets")
_LISTED_VALUES = (
    "(SELECT identifier, sets, document ->> '$.repository' AS repository, "
    "document ->> '$.base_url' AS base_url, document ->> '$.id' AS id, "
    "list_transform(from_json(document -> '$.records', '[\"JSON\"]'), "
    "lambda r: r ->> '$.digest') AS digests, "
    "from_json(document -> '$.specs', '[\"VARCHAR\"]') AS specs FROM listed_versions)"
)
_REVISED_HARVESTS = _SQL.get("revised_harvests", left=_LEFT, told=_LISTED_VALUES)
_ADDED = _SQL.get("prepared_versions", kind=KIND)
_REPLACED = _SQL.get("superseded_versions", superseded=schema.SUPERSEDED)
_SET_NAMES = _SQL.get("set_names")


@dataclass(frozen=True, slots=True)
class RevisedHarvests:
    """Numbers of harvested items: new, changed, deleted ones among these, and unchanged ones."""

    new: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0


def revise(
    connection: engine.Connection, draft: Draft, files: Sequence[str], names: Sequence[str]
) -> RevisedHarvests:
    """Add the changes of harvested items in the intake's `files`.

    They go to `prepared_versions` and `superseded_versions`. The earliest run's files come first.
    `names` are files with names of sets.
    """
    with engine.reading("the intake"):
        connection.execute(_HARVESTED_RECORDS, {"files": list(files)})
        connection.execute(_HARVESTED_IDENTIFIERS)
        connection.execute(scratch_tables.ensure("repository_set_names"))
        if names:
            connection.execute(_SET_NAMES, {"files": list(names)})
    with engine.reading("the last snapshot"):
        find(connection, draft, "harvested_identifiers")
        for sql in (
            _ASSIGNED_IDENTIFIERS,
            _ITEM_RECORDS,
            _HARVESTED_ITEMS,
            _REVISED_HARVESTS,
            _ADDED,
            _REPLACED,
        ):
            connection.execute(sql)
        ((new, changed, deleted),) = connection.execute(
            "SELECT count(*) FILTER (WHERE old_position IS NULL), count(old_position), "
            "count(*) FILTER (WHERE deleted) FROM revised_harvests"
        ).fetchall()
        listed = rows_of(connection, "(SELECT identifier FROM harvested_items WHERE NOT gone)")
    return RevisedHarvests(
        int(new), int(changed), int(deleted), listed - int(new + changed - deleted)
    )
