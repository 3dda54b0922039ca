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
from builder.snapshot import lookup
from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import find_files, rows_of
from functions.database import engine
from functions.snapshot import schema

_FILES = engine.table("$files")
_MIME = "list_filter({sets}, lambda s: starts_with(s, 'mime:'))"
_GONE = lookup.original_keys(f"(FROM superseded WHERE {lookup.ORIGINAL})")
_BONDS = "CREATE TABLE bonds (identifier VARCHAR, rule INTEGER, goal BIGINT, model BIGINT)"

# Published revisits that an added, changed or deleted original can affect.
_NEW_ORIGINALS = f"(SELECT 0 AS position, * FROM fresh WHERE {lookup.ORIGINAL})"
_STIRRED = (
    "CREATE TABLE stirred AS SELECT DISTINCT key, url, moment FROM "
    f"({lookup.original_keys(_NEW_ORIGINALS)}) UNION "
    f"SELECT key, url, moment FROM ({_GONE})"
)
_AFFECTED = f"""
CREATE TABLE affected AS
WITH met AS MATERIALIZED (
    SELECT * FROM {_FILES} WHERE key IN (SELECT key FROM stirred)),
loose AS (SELECT * FROM met WHERE goal IS NULL),
tight AS (SELECT * FROM met WHERE goal IS NOT NULL),
marked AS (
    SELECT t.*, a.moment AS last
    FROM (SELECT * FROM tight WHERE url IS NOT NULL) t
    ASOF LEFT JOIN (SELECT DISTINCT key, url, moment FROM stirred WHERE url IS NOT NULL) a
    ON t.key = a.key AND t.url = a.url AND t.moment >= a.moment),
plain AS (
    SELECT t.*, a.moment AS last
    FROM (SELECT * FROM tight WHERE url IS NULL) t
    ASOF LEFT JOIN (SELECT DISTINCT key, moment FROM stirred WHERE moment IS NOT NULL) a
    ON t.key = a.key AND t.moment >= a.moment)
SELECT DISTINCT position FROM (
    SELECT position FROM loose WHERE url IS NULL
    UNION ALL
    SELECT position FROM loose SEMI JOIN stirred USING (key, url)
    UNION ALL
    SELECT position FROM marked
    LEFT JOIN (SELECT key, url, min(moment) AS first FROM stirred GROUP BY ALL) USING (key, url)
    WHERE CASE WHEN goal <= moment THEN last >= goal ELSE first <= goal END
    UNION ALL
    SELECT position FROM plain
    LEFT JOIN (SELECT key, min(moment) AS first FROM stirred GROUP BY ALL) USING (key)
    WHERE CASE WHEN goal <= moment THEN last >= goal ELSE first <= goal END
) WHERE position NOT IN (SELECT position FROM superseded)
"""
_COLUMNS = ", ".join(f"r.{name}" for name in schema.names("records"))
_STANDING = (
    f"CREATE TABLE standing AS SELECT {_COLUMNS} FROM {_FILES} r JOIN affected USING (position) "
    f"WHERE {lookup.REVISIT}"
)
_PENDING = f"""
CREATE TABLE pending AS
SELECT * REPLACE ({OWN_VALUES}), list_concat(sets, left_sets) AS earlier, NULL::BIGINT AS was
FROM fresh WHERE {lookup.REVISIT}
UNION ALL BY NAME
SELECT * EXCLUDE (position, sequence) REPLACE ({OWN_VALUES}),
    list_concat(sets, left_sets) AS earlier, position AS was
FROM standing
"""
_LISTS = ", ".join(
    f"CASE WHEN p.{name} IS NULL AND m.{name} IS NOT NULL THEN '{name}' END" for name in INHERITED
)
_GETS_SETS = f"len({_MIME.format(sets='p.sets')}) = 0 AND len(m.sets) > 0"
_SETTLED = f"""
CREATE TABLE settled AS
SELECT * EXCLUDE (earlier), {LEFT.format(earlier="earlier", now="sets")} AS left_sets FROM (
    SELECT p.* EXCLUDE (left_sets) REPLACE (
        {", ".join(f"coalesce(p.{name}, m.{name}) AS {name}" for name in INHERITED)},
        CASE WHEN {_GETS_SETS} THEN list_sort(list_concat(p.sets, m.sets)) ELSE p.sets END AS sets,
        m.identifier AS refers_to,
        list_sort(list_filter([{_LISTS}, CASE WHEN {_GETS_SETS} THEN 'sets' END],
            lambda name: name IS NOT NULL)) AS inherited)
    FROM pending p LEFT JOIN bonds b USING (identifier) LEFT JOIN models m ON m.position = b.model)
"""
_DIFFERS = " OR ".join(f"n.{name} IS DISTINCT FROM o.{name}" for name in TAKEN)
_MOVED = (
    "CREATE TABLE moved AS SELECT o.position FROM settled n JOIN standing o ON o.position = n.was "
    f"WHERE {_DIFFERS}"
)
# `unaltered` must not contain revisits any more: they are in `altered` now.
_ORIGINALS = (
    "CREATE OR REPLACE VIEW fresh AS SELECT * FROM altered "
    f"UNION ALL SELECT * FROM unaltered WHERE NOT ({lookup.REVISIT})"
)
_PUBLISHED = (
    "INSERT INTO altered BY NAME SELECT * EXCLUDE (was) FROM settled "
    "WHERE was IS NULL OR was IN (SELECT position FROM moved)"
)
_REPLACED = (
    f"INSERT INTO superseded BY NAME SELECT {schema.SUPERSEDED} FROM standing "
    "WHERE position IN (SELECT position FROM moved)"
)

# Values of withdrawn originals that are still in versions of revisits.
_HEIRS = f"""
CREATE TABLE heirs AS
WITH held AS MATERIALIZED (SELECT * FROM {_FILES} WHERE key IN (SELECT key FROM ever))
SELECT position FROM held SEMI JOIN (SELECT key FROM ever WHERE moment IS NULL) USING (key)
UNION
SELECT position FROM held
SEMI JOIN (SELECT key, moment AS goal FROM ever WHERE moment IS NOT NULL) USING (key, goal)
"""
# An item that once had another digest or date also had other keys.
_EVER = "CREATE TABLE ever AS " + lookup.original_keys(
    f"(FROM {_FILES} WHERE position IN (SELECT position FROM versions) AND {lookup.ORIGINAL})"
)
_SHOWN = (
    "INSERT INTO versions BY NAME SELECT r.position, list_concat(sets, left_sets) AS sets "
    f"FROM {_FILES} r JOIN heirs USING (position) "
    "WHERE refers_to IN (SELECT identifier FROM superseded) "
    "AND r.position NOT IN (SELECT position FROM versions)"
)


def resolve(connection: engine.Connection, draft: Draft) -> int:
    """Resolve the revisits in `fresh`, and the published revisits that the changes affect.

    Adds the latter to `fresh` and `superseded` if they change; returns how many do. Makes `bonds`:
    by the identifier of a revisit in `fresh`, the rule that found its original and the original's
    date (`goal`).
    """
    with engine.reading("the revisits"):
        connection.execute(_BONDS)
        fresh = connection.execute(f"SELECT count(*) FROM fresh WHERE {lookup.REVISIT}").fetchall()
        published = _standing(connection, draft)
        if not fresh[0][0] and not published:
            return 0
        connection.execute(_PENDING)
        RevisitSearch(connection, draft).run()
        connection.execute(_SETTLED)
        connection.execute(_MOVED)
        connection.execute(_ORIGINALS)
        connection.execute(f"DELETE FROM altered WHERE {lookup.REVISIT}")
        connection.execute(_PUBLISHED)
        connection.execute(_REPLACED)
        moved = rows_of(connection, "moved")
        connection.execute("DROP TABLE pending; DROP TABLE settled; DROP TABLE models")
        return moved


def heirs(connection: engine.Connection, draft: Draft) -> None:
    """Add to `versions` those of revisits that inherited from an original in `superseded`."""
    with engine.reading("the revisits"):
        versions = find_files(connection, draft, "records", ("SELECT position FROM versions", {}))
        if not versions or not draft.tables.get("revisits"):
            return
        connection.execute(_EVER, {"files": draft.paths(versions)})
        keys: Query = ("SELECT DISTINCT key FROM ever", {})
        files = find_files(connection, draft, "revisits", keys)
        if not files:
            return
        connection.execute(_HEIRS, {"files": draft.paths(files)})
        records = find_files(connection, draft, "records", ("SELECT position FROM heirs", {}))
        if records:
            connection.execute(_SHOWN, {"files": draft.paths(records)})


def _standing(connection: engine.Connection, draft: Draft) -> int:
    """Make `standing`, the published revisits whose original may change; return how many."""
    types = ", ".join(f"{c.name} {c.type}" for c in schema.TABLES["records"])
    files = []
    if draft.tables.get("revisits"):
        connection.execute(_STIRRED)
        files = find_files(connection, draft, "revisits", ("SELECT DISTINCT key FROM stirred", {}))
    records = []
    if files:
        connection.execute(_AFFECTED, {"files": draft.paths(files)})
        living(connection, draft, "affected")
        records = find_files(connection, draft, "records", ("SELECT position FROM affected", {}))
    if records:
        connection.execute(_STANDING, {"files": draft.paths(records)})
    else:
        connection.execute(f"CREATE TABLE standing ({types})")
    return rows_of(connection, "standing")
