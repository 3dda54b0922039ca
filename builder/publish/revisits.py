"""Revisits: each one gets its original and the values that it lacks.

The first of three rules with a match gives the original:

1. the URL and the date, to the second, that the revisit refers to (a match with its digest first);
2. its own URL and its payload digest;
3. its payload digest alone.

Only live captures that are not revisits can be originals. Of several, the latest one not later than
the revisit is taken, else the earliest after it. Within one second, the first by identifier is
taken. A damaged original is taken by its digest only if no whole one has that digest. The digest is
that of the payload or the one that the original declares.

The result depends only on the published items, not on the order in which they were published. When
an original is added, changed or deleted, the published revisits that it can affect are resolved
again (builder.snapshot.lookup). If their original or its values differ, they change as well.
"""

from builder.publish.precedence import INHERITED, LEFT, OWN_VALUES, TAKEN
from builder.publish.revisit_search import RevisitSearch, living
from builder.snapshot import lookup, scratch
from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import find_files, rows_of
from functions.database import engine
from functions.snapshot import schema

_FILES = engine.table("$files")
_MIME = "list_filter({sets}, lambda s: starts_with(s, 'mime:'))"
_GONE = lookup.original_keys(f"(FROM superseded_versions WHERE {lookup.ORIGINAL})")

# Published revisits that an added, changed or deleted original can affect.
_NEW_ORIGINALS = f"(SELECT 0 AS position, * FROM new_versions WHERE {lookup.ORIGINAL})"
_CHANGED_ORIGINALS = (
    "CREATE TABLE changed_originals AS SELECT DISTINCT key, url, moment FROM "
    f"({lookup.original_keys(_NEW_ORIGINALS)}) UNION "
    f"SELECT key, url, moment FROM ({_GONE})"
)
_AFFECTED_POSITIONS = f"""
CREATE TABLE affected_positions AS
WITH met AS MATERIALIZED (
    SELECT * FROM {_FILES} WHERE key IN (SELECT key FROM changed_originals)),
loose AS (SELECT * FROM met WHERE goal IS NULL),
tight AS (SELECT * FROM met WHERE goal IS NOT NULL),
marked AS (
    SELECT t.*, a.moment AS last
    FROM (SELECT * FROM tight WHERE url IS NOT NULL) t
    ASOF LEFT JOIN (SELECT DISTINCT key, url, moment FROM changed_originals WHERE url IS NOT NULL) a
    ON t.key = a.key AND t.url = a.url AND t.moment >= a.moment),
plain AS (
    SELECT t.*, a.moment AS last
    FROM (SELECT * FROM tight WHERE url IS NULL) t
    ASOF LEFT JOIN (SELECT DISTINCT key, moment FROM changed_originals WHERE moment IS NOT NULL) a
    ON t.key = a.key AND t.moment >= a.moment)
SELECT DISTINCT position FROM (
    SELECT position FROM loose WHERE url IS NULL
    UNION ALL
    SELECT position FROM loose SEMI JOIN changed_originals USING (key, url)
    UNION ALL
    SELECT position FROM marked
    LEFT JOIN (SELECT key, url, min(moment) AS first FROM changed_originals GROUP BY ALL)
    USING (key, url)
    WHERE CASE WHEN goal <= moment THEN last >= goal ELSE first <= goal END
    UNION ALL
    SELECT position FROM plain
    LEFT JOIN (SELECT key, min(moment) AS first FROM changed_originals GROUP BY ALL) USING (key)
    WHERE CASE WHEN goal <= moment THEN last >= goal ELSE first <= goal END
) WHERE position NOT IN (SELECT position FROM superseded_versions)
"""
_COLUMNS = ", ".join(f"r.{name}" for name in schema.names("records"))
_AFFECTED_REVISITS = (
    f"CREATE TABLE affected_revisits AS SELECT {_COLUMNS} FROM {_FILES} r "
    "JOIN affected_positions USING (position) "
    f"WHERE {lookup.REVISIT}"
)
_PENDING_REVISITS = f"""
CREATE TABLE pending_revisits AS
SELECT * REPLACE ({OWN_VALUES}), list_concat(sets, left_sets) AS earlier, NULL::BIGINT AS was
FROM new_versions WHERE {lookup.REVISIT}
UNION ALL BY NAME
SELECT * EXCLUDE (position, sequence) REPLACE ({OWN_VALUES}),
    list_concat(sets, left_sets) AS earlier, position AS was
FROM affected_revisits
"""
_LISTS = ", ".join(
    f"CASE WHEN p.{name} IS NULL AND m.{name} IS NOT NULL THEN '{name}' END" for name in INHERITED
)
_GETS_SETS = f"len({_MIME.format(sets='p.sets')}) = 0 AND len(m.sets) > 0"
_RESOLVED_REVISITS = f"""
CREATE TABLE resolved_revisits AS
SELECT * EXCLUDE (earlier), {LEFT.format(earlier="earlier", now="sets")} AS left_sets FROM (
    SELECT p.* EXCLUDE (left_sets) REPLACE (
        {", ".join(f"coalesce(p.{name}, m.{name}) AS {name}" for name in INHERITED)},
        CASE WHEN {_GETS_SETS} THEN list_sort(list_concat(p.sets, m.sets)) ELSE p.sets END AS sets,
        m.identifier AS refers_to,
        list_sort(list_filter([{_LISTS}, CASE WHEN {_GETS_SETS} THEN 'sets' END],
            lambda name: name IS NOT NULL)) AS inherited)
    FROM pending_revisits p LEFT JOIN revisit_matches b USING (identifier)
    LEFT JOIN matched_originals m ON m.position = b.original)
"""
_DIFFERS = " OR ".join(f"n.{name} IS DISTINCT FROM o.{name}" for name in TAKEN)
_CHANGED_REVISITS = (
    "CREATE TABLE changed_revisits AS SELECT o.position FROM resolved_revisits n "
    "JOIN affected_revisits o ON o.position = n.was "
    f"WHERE {_DIFFERS}"
)
# `intake_versions` must not contain revisits any more: they are in `prepared_versions` now.
_ORIGINALS = (
    "CREATE OR REPLACE VIEW new_versions AS SELECT * FROM prepared_versions "
    f"UNION ALL SELECT * FROM intake_versions WHERE NOT ({lookup.REVISIT})"
)
_PUBLISHED = (
    "INSERT INTO prepared_versions BY NAME SELECT * EXCLUDE (was) FROM resolved_revisits "
    "WHERE was IS NULL OR was IN (SELECT position FROM changed_revisits)"
)
_REPLACED = (
    f"INSERT INTO superseded_versions BY NAME SELECT {schema.SUPERSEDED} FROM affected_revisits "
    "WHERE position IN (SELECT position FROM changed_revisits)"
)

# Values of withdrawn originals that are still in versions of revisits.
_INHERITING_REVISITS = f"""
CREATE TABLE inheriting_revisits AS
WITH held AS MATERIALIZED (SELECT * FROM {_FILES} WHERE key IN (SELECT key FROM former_originals))
SELECT position FROM held
SEMI JOIN (SELECT key FROM former_originals WHERE moment IS NULL) USING (key)
UNION
SELECT position FROM held
SEMI JOIN (SELECT key, moment AS goal FROM former_originals WHERE moment IS NOT NULL)
USING (key, goal)
"""
# An item that once had another digest or date also had other keys.
_FORMER_ORIGINALS = "CREATE TABLE former_originals AS " + lookup.original_keys(
    f"(FROM {_FILES} WHERE position IN (SELECT position FROM item_versions) AND {lookup.ORIGINAL})"
)
_SHOWN = (
    "INSERT INTO item_versions BY NAME SELECT r.position, list_concat(sets, left_sets) AS sets "
    f"FROM {_FILES} r JOIN inheriting_revisits USING (position) "
    "WHERE refers_to IN (SELECT identifier FROM superseded_versions) "
    "AND r.position NOT IN (SELECT position FROM item_versions)"
)


def resolve(connection: engine.Connection, draft: Draft) -> int:
    """Resolve the revisits in `new_versions`, and the published revisits that the changes affect.

    Adds the latter to `new_versions` and `superseded_versions` if they change; returns how many do.
    Makes `revisit_matches`.
    """
    with engine.reading("the revisits"):
        connection.execute(scratch.create("revisit_matches"))
        fresh = connection.execute(
            f"SELECT count(*) FROM new_versions WHERE {lookup.REVISIT}"
        ).fetchall()
        published = _find_affected(connection, draft)
        if not fresh[0][0] and not published:
            return 0
        connection.execute(_PENDING_REVISITS)
        RevisitSearch(connection, draft).run()
        connection.execute(_RESOLVED_REVISITS)
        connection.execute(_CHANGED_REVISITS)
        connection.execute(_ORIGINALS)
        connection.execute(f"DELETE FROM prepared_versions WHERE {lookup.REVISIT}")
        connection.execute(_PUBLISHED)
        connection.execute(_REPLACED)
        moved = rows_of(connection, "changed_revisits")
        connection.execute(
            "DROP TABLE pending_revisits; DROP TABLE resolved_revisits; "
            "DROP TABLE matched_originals"
        )
        return moved


def add_inheriting(connection: engine.Connection, draft: Draft) -> None:
    """Add to `item_versions` the revisits that inherited from a superseded original."""
    with engine.reading("the revisits"):
        versions = find_files(
            connection, draft, "records", ("SELECT position FROM item_versions", {})
        )
        if not versions or not draft.tables.get("revisits"):
            return
        connection.execute(_FORMER_ORIGINALS, {"files": draft.paths(versions)})
        keys: Query = ("SELECT DISTINCT key FROM former_originals", {})
        files = find_files(connection, draft, "revisits", keys)
        if not files:
            return
        connection.execute(_INHERITING_REVISITS, {"files": draft.paths(files)})
        records = find_files(
            connection, draft, "records", ("SELECT position FROM inheriting_revisits", {})
        )
        if records:
            connection.execute(_SHOWN, {"files": draft.paths(records)})


def _find_affected(connection: engine.Connection, draft: Draft) -> int:
    """Make `affected_revisits`, whose originals may change; return how many."""
    files = []
    if draft.tables.get("revisits"):
        connection.execute(_CHANGED_ORIGINALS)
        files = find_files(
            connection, draft, "revisits", ("SELECT DISTINCT key FROM changed_originals", {})
        )
    records = []
    if files:
        connection.execute(_AFFECTED_POSITIONS, {"files": draft.paths(files)})
        living(connection, draft, "affected_positions")
        records = find_files(
            connection, draft, "records", ("SELECT position FROM affected_positions", {})
        )
    if records:
        connection.execute(_AFFECTED_REVISITS, {"files": draft.paths(records)})
    else:
        connection.execute(scratch.create("affected_revisits"))
    return rows_of(connection, "affected_revisits")
