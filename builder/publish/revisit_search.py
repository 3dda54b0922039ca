"""Search for the originals of pending revisits; the first rule with a match wins.

The rows of the table of originals are checked against the records that they name: two texts may
share a key, and a record may be gone. If the check fails, the next best row is tried, until none is
left. Many captures can have the same digest; only those dated in the best second are read.
"""

from builder.publish.precedence import INHERITED
from builder.snapshot import lookup
from builder.snapshot.draft import Draft
from builder.snapshot.lookup import find_files, rows_of
from functions.database import engine

_FILES = engine.table("$files")

# The search goes back from the second `upto`, and then forward from the second `since`.
_SEEKING = (
    "CREATE TABLE seeking AS SELECT *, moment AS upto, moment + 1 AS since "
    f"FROM ({lookup.wanted_keys('pending', 'identifier')})"
)
_SOUGHT = (
    "(SELECT dated AS key FROM seeking WHERE dated IS NOT NULL "
    "UNION SELECT digested FROM seeking WHERE digested IS NOT NULL)"
)
# Unpublished rows have no position: negative numbers stand for rows of `fresh`. Only rows with a
# sought key are kept.
_NAMED = f"(SELECT identifier AS position, * FROM fresh WHERE {lookup.ORIGINAL})"
_NOVEL = (
    "CREATE TABLE novel AS SELECT -row_number() OVER () AS position, * FROM fresh "
    f"WHERE {lookup.ORIGINAL} "
    f"AND identifier IN (SELECT position FROM ({lookup.original_keys(_NAMED)}) "
    f"WHERE key IN (SELECT key FROM {_SOUGHT}))"
)
_OFFERS = (
    f"CREATE TABLE offers AS FROM ({lookup.original_keys('novel')}) "
    f"WHERE key IN (SELECT key FROM {_SOUGHT})"
)
_MORE_OFFERS = (
    f"INSERT INTO offers SELECT * FROM {_FILES} WHERE key IN (SELECT key FROM {_SOUGHT}) "
    "AND position NOT IN (SELECT position FROM superseded)"
)
_MODEL = (
    f"identifier, url AS address, {lookup.SECOND} AS second, "
    "[content_digest, content_digest_declared] AS digests, content_damaged IS NOT NULL AS damaged, "
    f"{', '.join(INHERITED)}, list_filter(sets, lambda s: starts_with(s, 'mime:')) AS sets"
)
_MODELS = f"CREATE TABLE models AS SELECT position, {_MODEL} FROM novel WHERE false"

_LEFT = "(FROM seeking ANTI JOIN bonds USING (identifier))"
_NEAREST = """
low AS (
    SELECT s.* EXCLUDE (upto, since), o.moment
    FROM s ASOF JOIN offered o ON {same} AND s.upto >= o.moment),
high AS (
    SELECT s.* EXCLUDE (upto, since), o.moment
    FROM (FROM s ANTI JOIN low USING (identifier)) s
    ASOF JOIN offered o ON {same} AND s.since <= o.moment)
FROM low UNION ALL FROM high
"""
_BEST = {
    # rule: the best candidates for each revisit that has no original yet
    1: f"""
SELECT identifier, dated AS key, NULL::INTEGER AS url, referred AS address, second, digest,
    NULL::BIGINT AS moment
FROM {_LEFT} WHERE dated IN (SELECT key FROM offers)
""",
    2: f"""
WITH s AS (
    SELECT identifier, digested AS key, mark AS url, address, NULL::BIGINT AS second, digest,
        upto, since FROM {_LEFT}),
offered AS (SELECT DISTINCT key, url, moment FROM offers WHERE url IS NOT NULL),
{_NEAREST.format(same="s.key = o.key AND s.url = o.url")}
""",
    3: f"""
WITH s AS (
    SELECT identifier, digested AS key, NULL::INTEGER AS url, NULL::VARCHAR AS address,
        NULL::BIGINT AS second, digest, upto, since FROM {_LEFT}),
offered AS (SELECT DISTINCT key, moment FROM offers WHERE url IS NOT NULL),
{_NEAREST.format(same="s.key = o.key")}
""",
}
_GROUP = "key, url, moment, address, second, digest"
_RANKED = (
    f"CREATE OR REPLACE TABLE best AS SELECT identifier, {_GROUP}, "
    f"dense_rank() OVER (ORDER BY {_GROUP}) AS target FROM ({{best}})"
)
_SAME = {
    1: "o.key = t.key",
    2: "o.key = t.key AND o.url = t.url AND o.moment = t.moment",
    3: "o.key = t.key AND o.moment = t.moment",
}
_HITS = (
    "CREATE OR REPLACE TABLE hits AS SELECT t.*, o.position "
    f"FROM (SELECT DISTINCT target, {_GROUP} FROM best) t JOIN offers o ON {{same}}"
)
_FOUND = (
    f"CREATE OR REPLACE TABLE found AS SELECT position, {_MODEL} FROM novel "
    "WHERE position IN (SELECT position FROM hits)"
)
_PLACES = "SELECT DISTINCT position FROM hits WHERE position > 0"
_MORE_FOUND = (
    f"INSERT INTO found SELECT position, {_MODEL} FROM {_FILES} "
    f"WHERE position IN ({_PLACES}) AND {lookup.ORIGINAL}"
)
_MATCHES = {
    1: "f.address = h.address AND f.second = h.second",
    2: "f.address = h.address AND list_contains(f.digests, h.digest)",
    3: "list_contains(f.digests, h.digest)",
}
_WINNERS = (
    "CREATE OR REPLACE TABLE winners AS SELECT DISTINCT ON (target) target, position "
    "FROM hits h JOIN found f USING (position) WHERE {matches} "
    "ORDER BY target, coalesce(list_contains(f.digests, h.digest), false) DESC, f.damaged, "
    "f.identifier"
)
_BOUND = (
    "INSERT INTO bonds SELECT identifier, $rule, moment, position "
    "FROM best JOIN winners USING (target)"
)
_ADDED = (
    "INSERT INTO models FROM found SEMI JOIN winners USING (position) "
    "ANTI JOIN models m USING (position)"
)
_FAILED = "CREATE OR REPLACE TABLE failed AS FROM best ANTI JOIN winners USING (target)"
_ONWARDS = (
    "UPDATE seeking s SET upto = if(f.moment <= s.moment, f.moment - 1, s.upto), "
    "since = if(f.moment > s.moment, f.moment + 1, s.since) "
    "FROM failed f WHERE f.identifier = s.identifier"
)


class RevisitSearch:
    """Finds the originals of the rows in `pending`; adds to `bonds` and makes `models`."""

    def __init__(self, connection: engine.Connection, draft: Draft) -> None:
        self._connection = connection
        self._draft = draft

    def run(self) -> None:
        """Apply the rules, one after the other."""
        self._connection.execute(_SEEKING)
        self._offer()
        self._connection.execute(_MODELS)
        for rule in _BEST:
            while self._apply(rule):
                pass
            self._connection.execute("UPDATE seeking SET upto = moment, since = moment + 1")
        self._connection.execute("DROP TABLE seeking; DROP TABLE offers; DROP TABLE novel")

    def _offer(self) -> None:
        """Make `offers`: the rows of live originals that have a sought key."""
        self._connection.execute(_NOVEL)
        self._connection.execute(_OFFERS)
        files = find_files(self._connection, self._draft, "originals", (_SOUGHT[1:-1], {}))
        if files:
            self._connection.execute(_MORE_OFFERS, {"files": self._draft.paths(files)})
            living(self._connection, self._draft, "offers")

    def _apply(self, rule: int) -> bool:
        """Bind the matches of a rule; return whether a candidate failed, so the next is tried."""
        execute = self._connection.execute
        execute(_RANKED.format(best=_BEST[rule]))
        if not rows_of(self._connection, "best"):
            return False
        execute(_HITS.format(same=_SAME[rule]))
        execute(_FOUND)
        files = find_files(self._connection, self._draft, "records", (_PLACES, {}))
        if files:
            execute(_MORE_FOUND, {"files": self._draft.paths(files)})
        execute(_WINNERS.format(matches=_MATCHES[rule]))
        execute(_BOUND, {"rule": rule})
        execute(_ADDED)
        execute(_FAILED)
        if rule == 1 or not rows_of(self._connection, "failed"):
            return False
        execute(_ONWARDS)
        return True


def living(connection: engine.Connection, draft: Draft, table: str) -> None:
    """Delete from a table the positions that a published version has superseded."""
    dead = find_files(connection, draft, "dead", (f"SELECT position FROM {table}", {}))
    if dead:
        connection.execute(
            f"DELETE FROM {table} WHERE position IN (SELECT position FROM {_FILES})",
            {"files": draft.paths(dead)},
        )
