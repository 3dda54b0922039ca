"""Filesets as items: what requests came to changes the items of datasets, and their tables.

Of several results for one dataset the newest counts, whatever they were asked by, unless it is of
an older version (builder.publish.fileset_versions). One that lists nothing leaves the item as it
is. A dataset that is gone becomes a tombstone and keeps its sets; it takes its item up again when
it is back, but for an item that was withdrawn. Of that no table tells more than that it was asked
for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from builder.filesets.entry import DELETE
from builder.filesets.status import STATUSES
from builder.publish.fileset_versions import LISTED, offer
from builder.publish.precedence import LEFT
from builder.snapshot.draft import Draft
from builder.snapshot.lookup import find, find_files, put, rows_of
from functions.database import engine
from functions.snapshot import fileset, schema
from functions.snapshot.manifest import Manifest

RESULTS, FILES = "ingest_fileset_platform", "files"
"""The tables that are of filesets alone."""

_TELLING = [one.name for one in STATUSES.values() if one.lists or one.gone]
_KINDS = engine.texts(schema.DATASETS)
_RESULT = ", ".join(c.name for c in fileset.RESULT if c.name != "identifier")
_TOLD = frozenset(
    {"total_size", "file_count", "manifest", "detail", "until", "archiveorg_item_name"}
    | {"archiveorg_item_bundle_path", "web_bundle_url", "web_bundle_dt"}
)
"""Columns of a result that say what a dataset is like."""
_EARLIER = engine.table("$earlier")
_NO_EARLIER = (
    "(SELECT " + ", ".join(f"NULL::{c.type} AS {c.name}" for c in fileset.RESULT) + " WHERE false)"
)
# A bucket's files have names on this machine that say nothing of their order.
_GIVEN = """
CREATE TABLE given AS
SELECT * EXCLUDE (part, number, file_row_number, identity),
    'oai:' || $namespace || ':' || identity AS identifier,
    row_number() OVER (ORDER BY updated, number, file_row_number) AS turn
FROM read_parquet($files, filename = 'part', file_row_number = true, hive_partitioning = false)
JOIN (SELECT unnest($files) AS part, unnest(range(len($files))) AS number) USING (part)
"""
_ASKED = "CREATE TABLE asked AS SELECT * FROM {} WHERE base_url IN (FROM urls)"
_STALE = (
    "DELETE FROM given g USING asked a WHERE a.ingest_type = g.ingest_type "
    "AND a.base_url = g.base_url AND a.updated > g.updated"
)
# What lists nothing may still be known by the URL that it was asked for by. What is gone is what
# was there, for a tombstone may not tell the id that all versions had.
_RESOLVED = f"""
CREATE TABLE resolved AS
SELECT * EXCLUDE (before) REPLACE (
    if(deed = '{DELETE}', coalesce(before, identifier), coalesce(identifier, before)) AS identifier)
FROM (
    SELECT g.*,
        coalesce(last_value(g.identifier IGNORE NULLS) OVER earlier, a.identifier) AS before,
        coalesce(g.platform_version, last_value(g.platform_version IGNORE NULLS) OVER earlier,
            a.platform_version) AS known_version
    FROM given g LEFT JOIN asked a USING (ingest_type, base_url)
    WINDOW earlier AS (PARTITION BY g.ingest_type, g.base_url ORDER BY g.turn
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
"""
_LEFT = LEFT.format(earlier="list_concat(o.sets, o.left_sets)", now="n.sets")
# That one version of a dataset is gone says nothing of another.
_ANOTHER = "o.document ->> '$.version' != n.known_version"
_REVISED = f"""
CREATE TABLE filesets AS
SELECT n.identifier, coalesce(n.kind, o.kind) AS kind, n.gone AS deleted, NULL::VARCHAR AS reason,
    if(n.gone, o.sets, n.sets) AS sets,
    CASE WHEN o.identifier IS NULL THEN [] WHEN n.gone OR o.sets = n.sets THEN o.left_sets
        ELSE {_LEFT} END AS left_sets,
    n.document, o.position AS was
FROM (SELECT *, deed = '{DELETE}' AS gone FROM offered) n LEFT JOIN old o USING (identifier)
WHERE CASE WHEN o.identifier IS NULL THEN NOT n.gone WHEN o.reason IS NOT NULL THEN false
    WHEN n.gone THEN NOT o.deleted AND ({_ANOTHER}) IS NOT TRUE
    ELSE o.deleted OR o.kind != n.kind OR o.sets != n.sets
        OR o.document IS DISTINCT FROM n.document END
"""
# Runs come late where a machine was cut off: what was published may be newer, asked by another URL.
_LATE = """
SELECT count(*) FROM filesets JOIN offered USING (identifier)
WHERE was IS NOT NULL AND updated < $since
"""
# A later result of another version says nothing of one that is newer than what is listed, or gone.
_OUTDONE = f"""
DELETE FROM filesets WHERE identifier IN (
    SELECT o.identifier FROM offered o JOIN {engine.table("$results")} r USING (identifier)
    WHERE r.updated > o.updated AND list_contains($telling, r.status)
        AND ((o.onward OR o.deed = '{DELETE}') AND r.platform_version != o.known_version)
            IS NOT TRUE)
"""
_ADDED = (
    "INSERT INTO altered BY NAME "
    "SELECT identifier, kind, deleted, reason, sets, left_sets, document FROM filesets"
)
_REPLACED = (
    f"INSERT INTO superseded BY NAME SELECT {schema.SUPERSEDED} FROM old "
    "WHERE position IN (SELECT was FROM filesets)"
)
_NEWEST = f"""
CREATE TABLE results AS
SELECT {_RESULT}, if(identifier IN (SELECT identifier FROM old UNION ALL
    SELECT identifier FROM filesets), identifier, NULL) AS identifier
FROM (SELECT {_RESULT}, identifier, turn FROM resolved
    UNION ALL SELECT {_RESULT}, identifier, 0 FROM asked)
QUALIFY row_number() OVER (PARTITION BY ingest_type, base_url ORDER BY turn DESC) = 1
"""
_KNOWN = "SELECT identifier FROM old WHERE reason IS NOT NULL"
# What came of a dataset before it was listed has no identifier, and still tells of it.
_NAMES = ", ".join(f"url_decode(string_split(string_split(identifier, ':')[3], ',')[{n}])"
                   for n in (2, 3, 4))  # fmt: skip
_IS_OF = (
    "(identifier IN ({withdrawn}) OR (platform_name, platform_domain, platform_id) IN "
    f"(SELECT ({_NAMES}) FROM ({{withdrawn}})))"
)
_FILE = ", ".join(c.name for c in fileset.FILE if c.name != "identifier")
_FORM = ", ".join(f'"{c.name}": "{c.type}"' for c in fileset.FILE if c.name != "identifier")
_HELD = (
    f"SELECT identifier, {_FILE} FROM (SELECT identifier, unnest(from_json(document -> '$.files', "
    f"'[{{{_FORM}}}]'), recursive := true) FROM altered WHERE kind IN {_KINDS} AND NOT deleted)"
)


@dataclass(frozen=True, slots=True)
class RevisedFilesets:
    """How many datasets are new as items, how many changed, and of these how many are gone."""

    new: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0


def revise(
    connection: engine.Connection, draft: Draft, files: Sequence[str], before: Manifest
) -> RevisedFilesets:
    """Add to `altered` and `superseded` what the intake's `files` say of datasets.

    The earliest run's files come first. The tables of filesets are written. `draft` begins as the
    snapshot `before`.
    """
    with engine.reading("the intake"):
        connection.execute(_GIVEN, {"files": list(files), "namespace": before.namespace})
        connection.execute("CREATE TABLE urls AS SELECT DISTINCT base_url FROM given")
    with engine.reading("the last snapshot"):
        earlier = draft.paths(find_files(connection, draft, RESULTS, ("FROM urls", {})))
        values = {"earlier": earlier} if earlier else {}
        connection.execute(_ASKED.format(_EARLIER if earlier else _NO_EARLIER), values)
        for sql in (_STALE, _RESOLVED):
            connection.execute(sql)
        connection.execute(
            "CREATE TABLE told_of AS SELECT identifier FROM (SELECT identifier FROM resolved "
            "UNION SELECT identifier FROM asked) WHERE identifier IS NOT NULL"
        )
        find(connection, draft, "told_of")
        offer(connection)
        connection.execute(_REVISED)
        _leave_what_is_newer(connection, draft, before.effective)
        for sql in (_ADDED, _REPLACED, _NEWEST):
            connection.execute(sql)
        put(connection, draft, RESULTS, "base_url", "urls", _without_withdrawn("results", _KNOWN))
        hold(connection, draft)
        ((new, changed, deleted),) = connection.execute(
            "SELECT count(*) FILTER (WHERE was IS NULL), count(was), "
            "count(*) FILTER (WHERE deleted) FROM filesets"
        ).fetchall()
        listed = rows_of(connection, LISTED)
    return RevisedFilesets(
        int(new), int(changed), int(deleted), listed - int(new + changed - deleted)
    )


def _leave_what_is_newer(connection: engine.Connection, draft: Draft, since: datetime) -> None:
    """Take out of `filesets` what was published since `since` or before by a newer result.

    The whole table of results is read for it, unless all that is to change came about later.
    """
    ((late,),) = connection.execute(_LATE, {"since": since.replace(tzinfo=None)}).fetchall()
    if late and (published := draft.paths(draft.files(draft.tables.get(RESULTS, ())))):
        connection.execute(_OUTDONE, {"results": published, "telling": _TELLING})


def hold(connection: engine.Connection, draft: Draft) -> None:
    """Write of the datasets in `altered` the files anew."""
    with engine.reading("the last snapshot"):
        connection.execute(
            f"CREATE TABLE held AS SELECT identifier FROM altered WHERE kind IN {_KINDS}"
        )
        if rows_of(connection, "held"):
            put(connection, draft, FILES, "identifier", "held", _HELD)


def hush(connection: engine.Connection, draft: Draft) -> None:
    """Write the tables anew without what they say of datasets that are withdrawn by `altered`."""
    hold(connection, draft)
    files = draft.paths(draft.files(draft.tables.get(RESULTS, ())))
    if not files:
        return
    known = f"SELECT identifier FROM altered WHERE reason IS NOT NULL AND kind IN {_KINDS}"
    with engine.reading("the last snapshot"):
        connection.execute(
            f"CREATE TABLE hushed_urls AS SELECT DISTINCT base_url FROM {engine.table('$files')} "
            f"WHERE {_IS_OF.format(withdrawn=known)}",
            {"files": files},
        )
        if not rows_of(connection, "hushed_urls"):
            return
        connection.execute(
            f"CREATE TABLE quiet AS SELECT * FROM {engine.table('$files')} "
            "WHERE base_url IN (FROM hushed_urls)",
            {"files": files},
        )
        put(
            connection,
            draft,
            RESULTS,
            "base_url",
            "hushed_urls",
            _without_withdrawn("quiet", known),
        )


def shows(connection: engine.Connection, draft: Draft, wanted: str) -> bool:
    """Tell whether the table of results says what a dataset is like that `wanted` identifies."""
    known = f"SELECT identifier FROM {wanted} WHERE identifier LIKE 'oai:%:dataset,%'"
    with engine.reading("an older snapshot"):
        if not rows_of(connection, f"({known})"):
            return False
        files = draft.paths(draft.files(draft.tables.get(RESULTS, ())))
        told = " OR ".join(f"{name} IS NOT NULL" for name in sorted(_TOLD))
        sql = (
            f"SELECT count(*) FROM {engine.table('$files')} "
            f"WHERE {_IS_OF.format(withdrawn=known)} AND ({told})"
        )
        return bool(files) and bool(connection.execute(sql, {"files": files}).fetchall()[0][0])


def _without_withdrawn(table: str, withdrawn: str) -> str:
    """Return the query of results without what they say of datasets that are withdrawn."""
    which = _IS_OF.format(withdrawn=withdrawn)
    columns = ", ".join(
        f"if({which}, NULL, {c.name}) AS {c.name}" if c.name in _TOLD else c.name
        for c in fileset.RESULT
    )
    return f"SELECT {columns} FROM {table}"
