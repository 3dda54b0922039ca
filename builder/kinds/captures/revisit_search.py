"""Search for the originals of pending revisits; the first rule with a match wins.

The rows of the table of originals are checked against the records that they name: two texts may
share a key, and a record may be gone. If the check fails, the next best row is tried, until none is
left. Many captures can have the same digest; only those dated in the best second are read.
"""

from builder.kinds.captures.precedence import INHERITED
from builder.snapshot import match_keys
from builder.snapshot.draft import Draft
from builder.snapshot.lookup import fetch_groups, rows_of
from functions.store import engine

_FILES = engine.table("$files")

# The search goes back from the second `upto`, and then forward from the second `since`.
_SEARCHES = (
    "CREATE TABLE revisit_searches AS SELECT *, moment AS upto, moment + 1 AS since "
    f"FROM ({match_keys.wanted_keys('pending_revisits', 'identifier')})"
)
_SOUGHT = (
    "(SELECT date_key AS key FROM revisit_searches WHERE date_key IS NOT NULL "
    "UNION SELECT digest_key FROM revisit_searches WHERE digest_key IS NOT NULL)"
)
# Unpublished rows have no position: negative numbers stand for rows of `new_versions`. Only rows
# with a sought key are kept.
_NAMED = f"(SELECT identifier AS position, * FROM new_versions WHERE {match_keys.ORIGINAL})"
_NEW_ORIGINALS = (
    "CREATE TABLE new_originals AS SELECT -row_number() OVER () AS position, * FROM new_versions "
    f"WHERE {match_keys.ORIGINAL} "
    f"AND identifier IN (SELECT position FROM ({match_keys.original_keys(_NAMED)}) "
    f"WHERE key IN (SELECT key FROM {_SOUGHT}))"
)
_CANDIDATES = (
    f"CREATE TABLE candidate_originals AS FROM ({match_keys.original_keys('new_originals')}) "
    f"WHERE key IN (SELECT key FROM {_SOUGHT})"
)
_MORE_CANDIDATES = (
    f"INSERT INTO candidate_originals SELECT * FROM {match_keys.stored_rows(_FILES)} "
    f"WHERE key IN (SELECT key FROM {_SOUGHT}) "
    "AND position NOT IN (SELECT position FROM superseded_versions)"
)
_VALUES = (
    f"identifier, url AS address, {match_keys.SECOND} AS second, "
    "[content_digest, content_digest_declared] AS digests, content_damaged IS NOT NULL AS damaged, "
    f"{', '.join(INHERITED)}, list_filter(sets, lambda s: starts_with(s, 'mime:')) AS sets"
)
_MATCHED_ORIGINALS = (
    f"CREATE TABLE matched_originals AS SELECT position, {_VALUES} FROM new_originals WHERE false"
)

_LEFT = "(FROM revisit_searches ANTI JOIN revisit_matches USING (identifier))"
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
_CANDIDATES_OF = {
    # rule: the best candidates for each revisit that has no original yet
    1: f"""
SELECT identifier, date_key AS key, NULL::INTEGER AS url, referred AS address, second, digest,
    NULL::BIGINT AS moment
FROM {_LEFT} WHERE date_key IN (SELECT key FROM candidate_originals)
""",
    2: f"""
WITH s AS (
    SELECT identifier, digest_key AS key, url_hash AS url, address, NULL::BIGINT AS second, digest,
        upto, since FROM {_LEFT}),
offered AS (SELECT DISTINCT key, url, moment FROM candidate_originals WHERE url IS NOT NULL),
{_NEAREST.format(same="s.key = o.key AND s.url = o.url")}
""",
    3: f"""
WITH s AS (
    SELECT identifier, digest_key AS key, NULL::INTEGER AS url, NULL::VARCHAR AS address,
        NULL::BIGINT AS second, digest, upto, since FROM {_LEFT}),
offered AS (SELECT DISTINCT key, moment FROM candidate_originals WHERE url IS NOT NULL),
{_NEAREST.format(same="s.key = o.key")}
""",
}
_GROUP = "key, url, moment, address, second, digest"
_BEST_CANDIDATES = (
    f"CREATE OR REPLACE TABLE best_candidates AS SELECT identifier, {_GROUP}, "
    f"dense_rank() OVER (ORDER BY {_GROUP}) AS target FROM ({{best}})"
)
_SAME = {
    1: "o.key = t.key",
    2: "o.key = t.key AND o.url = t.url AND o.moment = t.moment",
    3: "o.key = t.key AND o.moment = t.moment",
}
_CANDIDATE_POSITIONS = (
    "CREATE OR REPLACE TABLE candidate_positions AS SELECT t.*, o.position "
    f"FROM (SELECT DISTINCT target, {_GROUP} FROM best_candidates) t "
    "JOIN candidate_originals o ON {same}"
)
_CANDIDATE_RECORDS = (
    f"CREATE OR REPLACE TABLE candidate_records AS SELECT position, {_VALUES} FROM new_originals "
    "WHERE position IN (SELECT position FROM candidate_positions)"
)
_PLACES = "SELECT DISTINCT position FROM candidate_positions WHERE position > 0"
_MORE_RECORDS = (
    f"INSERT INTO candidate_records SELECT position, {_VALUES} FROM {_FILES} "
    f"WHERE position IN ({_PLACES}) AND {match_keys.ORIGINAL}"
)
_MATCHES = {
    1: "f.address = h.address AND f.second = h.second",
    2: "f.address = h.address AND list_contains(f.digests, h.digest)",
    3: "list_contains(f.digests, h.digest)",
}
_BEST_ORIGINALS = (
    "CREATE OR REPLACE TABLE best_originals AS SELECT DISTINCT ON (target) target, position "
    "FROM candidate_positions h JOIN candidate_records f USING (position) WHERE {matches} "
    "ORDER BY target, coalesce(list_contains(f.digests, h.digest), false) DESC, f.damaged, "
    "f.identifier"
)
_NEW_MATCHES = (
    "INSERT INTO revisit_matches SELECT identifier, $rule, moment, position "
    "FROM best_candidates JOIN best_originals USING (target)"
)
_NEW_MATCHED = (
    "INSERT INTO matched_originals FROM candidate_records "
    "SEMI JOIN best_originals USING (position) ANTI JOIN matched_originals m USING (position)"
)
_FAILED_CANDIDATES = (
    "CREATE OR REPLACE TABLE failed_candidates AS FROM best_candidates "
    "ANTI JOIN best_originals USING (target)"
)
# Records may be gone from files of which the table of originals still has rows, after a withdrawal
# of many. Such rows are removed in batches, because each one would take a round of its own.
_NEAR_CANDIDATES = (
    "CREATE OR REPLACE TABLE near_candidates AS SELECT position FROM (SELECT o.position, "
    "row_number() OVER (PARTITION BY {same} ORDER BY abs(o.moment - f.moment), o.position) AS n "
    "FROM (SELECT {same}, max(moment) AS moment FROM failed_candidates GROUP BY {same}) f "
    "JOIN candidate_originals o USING ({same}) WHERE o.position > 0) WHERE n <= $most"
)
_NEAR = "SELECT position FROM near_candidates"
_GONE_CANDIDATES = f"DELETE FROM candidate_originals WHERE position IN ({_NEAR})"
_EXISTING = f" AND position NOT IN (SELECT position FROM {_FILES})"
# So would originals whose URL has the hash of a revisit's URL: they lose it.
_STRANGE_CANDIDATES = (
    "UPDATE candidate_originals SET url = -1 WHERE url >= 0 AND position IN (SELECT position "
    "FROM {records} WHERE url NOT IN (SELECT address FROM revisit_searches))"
)
_SWEPT, _MORE_SWEPT = 16, 4
"""Rows that are looked at behind the first failure, and the factor behind each further one."""
_NEXT_CANDIDATES = (
    "UPDATE revisit_searches s SET upto = if(f.moment <= s.moment, f.moment - 1, s.upto), "
    "since = if(f.moment > s.moment, f.moment + 1, s.since) "
    "FROM failed_candidates f WHERE f.identifier = s.identifier"
)


class RevisitSearch:
    """Finds the originals of `pending_revisits`.

    Adds to `revisit_matches` and makes `matched_originals`.
    """

    def __init__(self, connection: engine.Connection, draft: Draft) -> None:
        self._connection = connection
        self._draft = draft
        self._swept = _SWEPT

    def run(self) -> None:
        """Apply the rules, one after the other."""
        self._connection.execute(_SEARCHES)
        # Make `candidate_originals`: the rows of live originals that have a sought key.
        self._connection.execute(_NEW_ORIGINALS)
        self._connection.execute(_CANDIDATES)
        files = fetch_groups(self._connection, self._draft, "originals", (_SOUGHT[1:-1], {}))
        if files:
            self._connection.execute(_MORE_CANDIDATES, {"files": files})
            delete_superseded(self._connection, self._draft, "candidate_originals")
        self._connection.execute(_MATCHED_ORIGINALS)
        for rule in _CANDIDATES_OF:
            while self._apply(rule):
                pass
            self._connection.execute(
                "UPDATE revisit_searches SET upto = moment, since = moment + 1"
            )
        self._connection.execute(
            "DROP TABLE revisit_searches; DROP TABLE candidate_originals; DROP TABLE new_originals"
        )

    def _apply(self, rule: int) -> bool:
        """Bind the matches of a rule; return whether a candidate failed, so the next is tried."""
        execute = self._connection.execute
        execute(_BEST_CANDIDATES.format(best=_CANDIDATES_OF[rule]))
        if not rows_of(self._connection, "best_candidates"):
            return False
        execute(_CANDIDATE_POSITIONS.format(same=_SAME[rule]))
        execute(_CANDIDATE_RECORDS)
        files = fetch_groups(self._connection, self._draft, "records", (_PLACES, {}))
        if files:
            execute(_MORE_RECORDS, {"files": files})
        execute(_BEST_ORIGINALS.format(matches=_MATCHES[rule]))
        execute(_NEW_MATCHES, {"rule": rule})
        execute(_NEW_MATCHED)
        execute(_FAILED_CANDIDATES)
        if rule == 1 or not rows_of(self._connection, "failed_candidates"):
            return False
        execute(_NEXT_CANDIDATES)
        # Candidates near the failed ones are removed, too, if their records are gone.
        same = "key, url" if rule == 2 else "key"
        execute(_NEAR_CANDIDATES.format(same=same), {"most": self._swept})
        self._swept *= _MORE_SWEPT
        files = fetch_groups(self._connection, self._draft, "records", (_NEAR, {}))
        values = {"files": files} if files else {}
        execute(_GONE_CANDIDATES + (_EXISTING if files else ""), values)
        execute(_STRANGE_CANDIDATES.format(records="new_originals"))
        if files:
            execute(_STRANGE_CANDIDATES.format(records=_FILES), values)
        return True


def delete_superseded(connection: engine.Connection, draft: Draft, table: str) -> None:
    """Delete from a table the positions that a published version has superseded."""
    dead = fetch_groups(connection, draft, "dead", (f"SELECT position FROM {table}", {}))
    if dead:
        connection.execute(
            f"DELETE FROM {table} WHERE position IN (SELECT position FROM {_FILES})",
            {"files": dead},
        )
