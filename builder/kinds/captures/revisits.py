"""Revisits: each one gets its original and the values that it lacks.

The first of three rules with a match gives the original:

1. the URL and the date, to the second, that the revisit refers to (a match with its digest first);
2. its own URL and its payload digest;
3. its payload digest alone.

Only live captures that are not revisits can be originals. Of several, the latest one not later than
the revisit is taken, else the earliest after it. Within one second, the first by identifier is
taken. By digest, computed or declared, a whole original always wins over a damaged one. The values
are precedence.INHERITED; `resolved_revisits` in revisits.sql copies them.

The result depends only on the published items, not on the order in which they were published. When
an original is added, changed or deleted, the published revisits that it can affect are resolved
again (builder.snapshot.lookup). If their original or its values differ, they change as well.
"""

from builder.kinds.captures.precedence import INHERITED, OWN_VALUES, TAKEN
from builder.kinds.captures.revisit_search import RevisitSearch, delete_superseded
from builder.kinds.kind import KindChange, KindCounts
from builder.kinds.sets import LEFT
from builder.snapshot import match_keys, scratch_tables
from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import fetch_groups, rows_of
from builder.snapshot.sql import Statements
from functions.snapshot import schema
from functions.store import engine

_SQL = Statements(__file__)

_FILES = engine.table("$files")
_MIME = "list_filter({sets}, lambda s: starts_with(s, 'mime:'))"
_GONE = match_keys.original_keys(f"(FROM superseded_versions WHERE {match_keys.ORIGINAL})")

_NEW_ORIGINALS = f"(SELECT 0 AS position, * FROM new_versions WHERE {match_keys.ORIGINAL})"
_CHANGED_ORIGINALS = _SQL.get(
    "changed_originals", new_keys=match_keys.original_keys(_NEW_ORIGINALS), old_keys=_GONE
)
_AFFECTED_POSITIONS = _SQL.get("affected_positions", files=match_keys.stored_rows(_FILES))
_COLUMNS = ", ".join(f"r.{name}" for name in schema.names("records"))
_AFFECTED_REVISITS = _SQL.get(
    "affected_revisits", columns=_COLUMNS, files=_FILES, revisit=match_keys.REVISIT
)
_PENDING_REVISITS = _SQL.get("pending_revisits", own_values=OWN_VALUES, revisit=match_keys.REVISIT)
_LISTS = ", ".join(
    f"CASE WHEN p.{name} IS NULL AND m.{name} IS NOT NULL THEN '{name}' END" for name in INHERITED
)
_GETS_SETS = f"len({_MIME.format(sets='p.sets')}) = 0 AND len(m.sets) > 0"
_RESOLVED_REVISITS = _SQL.get(
    "resolved_revisits",
    left=LEFT.format(earlier="earlier", now="sets"),
    inherited=", ".join(f"coalesce(p.{name}, m.{name}) AS {name}" for name in INHERITED),
    gets_sets=_GETS_SETS,
    inherited_names=_LISTS,
)
_DIFFERS = " OR ".join(f"n.{name} IS DISTINCT FROM o.{name}" for name in TAKEN)

_INHERITING_REVISITS = _SQL.get("inheriting_revisits", files=match_keys.stored_rows(_FILES))
# An item that once had another digest or date also had other keys.
_VERSIONS = f"(FROM {_FILES} WHERE position IN (SELECT position FROM item_versions) AND {{}})"
_FORMER_ORIGINALS = "CREATE TABLE former_originals AS " + match_keys.original_keys(
    _VERSIONS.format(match_keys.ORIGINAL)
)


def resolve(change: KindChange) -> KindCounts:
    """Resolve the revisits in `new_versions`, and the published revisits that the changes affect.

    Adds the latter to `new_versions` and `superseded_versions` if they change, and counts them as
    moved. Makes `revisit_matches`.
    """
    connection, draft = change.connection, change.draft
    with engine.reading("the revisits"):
        connection.execute(scratch_tables.create("revisit_matches"))
        fresh = connection.execute(
            f"SELECT count(*) FROM new_versions WHERE {match_keys.REVISIT}"
        ).fetchall()
        published = _find_affected(connection, draft)
        if not fresh[0][0] and not published:
            return KindCounts()
        connection.execute(_PENDING_REVISITS)
        RevisitSearch(connection, draft).run()
        connection.execute(_RESOLVED_REVISITS)
        connection.execute(_SQL.get("changed_revisits", differs=_DIFFERS))
        connection.execute(_SQL.get("new_versions", revisit=match_keys.REVISIT))
        connection.execute(f"DELETE FROM prepared_versions WHERE {match_keys.REVISIT}")
        connection.execute(_SQL.get("prepared_versions"))
        connection.execute(_SQL.get("superseded_versions", superseded=schema.SUPERSEDED))
        moved = rows_of(connection, "changed_revisits")
        connection.execute(
            "DROP TABLE pending_revisits; DROP TABLE resolved_revisits; "
            "DROP TABLE matched_originals"
        )
        return KindCounts(moved=moved)


def add_inheriting(change: KindChange) -> None:
    """Add to `item_versions` the revisits that inherited from a superseded original."""
    connection, draft = change.connection, change.draft
    with engine.reading("the revisits"):
        versions = fetch_groups(
            connection, draft, "records", ("SELECT position FROM item_versions", {})
        )
        if not versions or not draft.tables.get("revisits"):
            return
        connection.execute(_FORMER_ORIGINALS, {"files": versions})
        keys: Query = ("SELECT DISTINCT key FROM former_originals", {})
        files = fetch_groups(connection, draft, "revisits", keys)
        if not files:
            return
        connection.execute(_INHERITING_REVISITS, {"files": files})
        records = fetch_groups(
            connection, draft, "records", ("SELECT position FROM inheriting_revisits", {})
        )
        if records:
            connection.execute(_SQL.get("item_versions", files=_FILES), {"files": records})


def _find_affected(connection: engine.Connection, draft: Draft) -> int:
    """Make `affected_revisits`, whose originals may change; return how many."""
    files = []
    if draft.tables.get("revisits"):
        connection.execute(_CHANGED_ORIGINALS)
        files = fetch_groups(
            connection, draft, "revisits", ("SELECT DISTINCT key FROM changed_originals", {})
        )
    records = []
    if files:
        connection.execute(_AFFECTED_POSITIONS, {"files": files})
        delete_superseded(connection, draft, "affected_positions")
        records = fetch_groups(
            connection, draft, "records", ("SELECT position FROM affected_positions", {})
        )
    if records:
        connection.execute(_AFFECTED_REVISITS, {"files": records})
    else:
        connection.execute(f"CREATE TABLE affected_revisits ({scratch_tables.RECORD})")
    return rows_of(connection, "affected_revisits")
