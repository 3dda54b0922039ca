"""Filesets as items: results of requests change the items of datasets and their tables.

Of several results for one dataset, the newest counts, whatever URL was requested. A result for an
older version does not count (builder.publish.precedence). A result that lists nothing leaves
the item unchanged. If a dataset is gone, its item becomes a tombstone and keeps its sets. If the
dataset is back, its item is live again, unless it was withdrawn. For a withdrawn item, the tables
record only that the dataset was requested.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from builder.filesets.entry import DELETE
from builder.filesets.status import STATUSES
from builder.intake.intake import FILESETS
from builder.intake.lines import line_table
from builder.publish.precedence import LEFT, LISTED_RESULTS, offer_results
from builder.snapshot.draft import Draft
from builder.snapshot.lookup import find, find_files, put, rows_of
from functions.database import engine
from functions.snapshot import item_tables, schema
from functions.snapshot.manifest import Manifest

RESULTS, FILES = "ingest_fileset_platform", "files"
"""The tables that hold only filesets."""

_TELLING = [one.name for one in STATUSES.values() if one.lists or one.gone]
_KINDS = engine.texts(schema.DATASETS)
_RESULT = ", ".join(c.name for c in item_tables.RESULT if c.name != "identifier")
_TOLD = frozenset(
    {"total_size", "file_count", "manifest", "detail", "until", "archiveorg_item_name"}
    | {"archiveorg_item_bundle_path", "web_bundle_url", "web_bundle_dt"}
)
"""Columns of a result that describe the dataset."""
_EARLIER = engine.table("$earlier")
_NO_EARLIER = (
    "(SELECT "
    + ", ".join(f"NULL::{c.type} AS {c.name}" for c in item_tables.RESULT)
    + " WHERE false)"
)
# The local names of a bucket's files do not give their order.
_GIVEN = """
CREATE TABLE intake_results AS
SELECT * EXCLUDE (part, number, line, identity),
    'oai:' || $namespace || ':' || identity AS identifier,
    row_number() OVER (ORDER BY updated, number, line) AS turn
FROM {}
JOIN (SELECT unnest($files) AS part, unnest(range(len($files))) AS number) USING (part)
"""
_ASKED = "CREATE TABLE earlier_results AS SELECT * FROM {} WHERE base_url IN (FROM requested_urls)"
_STALE = (
    "DELETE FROM intake_results g USING earlier_results a WHERE a.ingest_type = g.ingest_type "
    "AND a.base_url = g.base_url AND a.updated > g.updated"
)
# A result without a list may still be identified by its requested URL. A dataset that is gone is
# identified by its earlier result: a tombstone may not give the id that all versions share.
_RESOLVED = f"""
CREATE TABLE identified_results AS
SELECT * EXCLUDE (before) REPLACE (
    if(deed = '{DELETE}', coalesce(before, identifier), coalesce(identifier, before)) AS identifier)
FROM (
    SELECT g.*,
        coalesce(last_value(g.identifier IGNORE NULLS) OVER earlier, a.identifier) AS before,
        coalesce(g.platform_version, last_value(g.platform_version IGNORE NULLS) OVER earlier,
            a.platform_version) AS known_version
    FROM intake_results g LEFT JOIN earlier_results a USING (ingest_type, base_url)
    WINDOW earlier AS (PARTITION BY g.ingest_type, g.base_url ORDER BY g.turn
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
"""
_LEFT = LEFT.format(earlier="list_concat(o.sets, o.left_sets)", now="n.sets")
# The removal of one version of a dataset does not affect another version.
_ANOTHER = "o.document ->> '$.version' != n.known_version"
_REVISED = f"""
CREATE TABLE revised_filesets AS
SELECT n.identifier, coalesce(n.kind, o.kind) AS kind, n.gone AS deleted, NULL::VARCHAR AS reason,
    if(n.gone, o.sets, n.sets) AS sets,
    CASE WHEN o.identifier IS NULL THEN [] WHEN n.gone OR o.sets = n.sets THEN o.left_sets
        ELSE {_LEFT} END AS left_sets,
    n.document, o.position AS was
FROM (SELECT *, deed = '{DELETE}' AS gone FROM decisive_results) n
LEFT JOIN listed_versions o USING (identifier)
WHERE CASE WHEN o.identifier IS NULL THEN NOT n.gone WHEN o.reason IS NOT NULL THEN false
    WHEN n.gone THEN NOT o.deleted AND ({_ANOTHER}) IS NOT TRUE
    ELSE o.deleted OR o.kind != n.kind OR o.sets != n.sets
        OR o.document IS DISTINCT FROM n.document END
"""
# Runs can arrive late, for example after a crash: a newer result for another URL may be published.
_LATE = """
SELECT count(*) FROM revised_filesets JOIN decisive_results USING (identifier)
WHERE was IS NOT NULL AND updated < $since
"""
# A later result for another version does not override a change to a newer version or a deletion.
_OUTDONE = f"""
DELETE FROM revised_filesets WHERE identifier IN (
    SELECT o.identifier FROM decisive_results o JOIN {engine.table("$results")} r USING (identifier)
    WHERE r.updated > o.updated AND list_contains($telling, r.status)
        AND ((o.onward OR o.deed = '{DELETE}') AND r.platform_version != o.known_version)
            IS NOT TRUE)
"""
_ADDED = (
    "INSERT INTO prepared_versions BY NAME "
    "SELECT identifier, kind, deleted, reason, sets, left_sets, document FROM revised_filesets"
)
_REPLACED = (
    f"INSERT INTO superseded_versions BY NAME SELECT {schema.SUPERSEDED} FROM listed_versions "
    "WHERE position IN (SELECT was FROM revised_filesets)"
)
_NEWEST = f"""
CREATE TABLE newest_results AS
SELECT {_RESULT}, if(identifier IN (SELECT identifier FROM listed_versions UNION ALL
    SELECT identifier FROM revised_filesets), identifier, NULL) AS identifier
FROM (SELECT {_RESULT}, identifier, turn FROM identified_results
    UNION ALL SELECT {_RESULT}, identifier, 0 FROM earlier_results)
QUALIFY row_number() OVER (PARTITION BY ingest_type, base_url ORDER BY turn DESC) = 1
"""
_KNOWN = "SELECT identifier FROM listed_versions WHERE reason IS NOT NULL"
# Results from before the dataset was listed have no identifier, but still belong to it.
_NAMES = ", ".join(f"url_decode(string_split(string_split(identifier, ':')[3], ',')[{n}])"
                   for n in (2, 3, 4))  # fmt: skip
_IS_OF = (
    "(identifier IN ({withdrawn}) OR (platform_name, platform_domain, platform_id) IN "
    f"(SELECT ({_NAMES}) FROM ({{withdrawn}})))"
)
_FILE = ", ".join(c.name for c in item_tables.FILE if c.name != "identifier")
_FORM = ", ".join(f'"{c.name}": "{c.type}"' for c in item_tables.FILE if c.name != "identifier")
_HELD = (
    f"SELECT identifier, {_FILE} FROM (SELECT identifier, unnest(from_json(document -> '$.files', "
    f"'[{{{_FORM}}}]'), recursive := true) FROM prepared_versions WHERE kind IN {_KINDS} "
    "AND NOT deleted)"
)


@dataclass(frozen=True, slots=True)
class RevisedFilesets:
    """Numbers of datasets: new, changed, deleted ones among these, and unchanged."""

    new: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0


def revise(
    connection: engine.Connection, draft: Draft, files: Sequence[str], before: Manifest
) -> RevisedFilesets:
    """Add the changes of datasets in the intake's `files`.

    They go to `prepared_versions` and `superseded_versions`. The earliest run's files come first.
    Also writes the tables of filesets. `draft` begins as the snapshot `before`.
    """
    with engine.reading("the intake"):
        connection.execute(
            _GIVEN.format(line_table(files, FILESETS)),
            {"files": list(files), "namespace": before.namespace},
        )
        connection.execute(
            "CREATE TABLE requested_urls AS SELECT DISTINCT base_url FROM intake_results"
        )
    with engine.reading("the last snapshot"):
        earlier = draft.paths(find_files(connection, draft, RESULTS, ("FROM requested_urls", {})))
        values = {"earlier": earlier} if earlier else {}
        connection.execute(_ASKED.format(_EARLIER if earlier else _NO_EARLIER), values)
        for sql in (_STALE, _RESOLVED):
            connection.execute(sql)
        connection.execute(
            "CREATE TABLE result_datasets AS SELECT identifier FROM ("
            "SELECT identifier FROM identified_results "
            "UNION SELECT identifier FROM earlier_results) WHERE identifier IS NOT NULL"
        )
        find(connection, draft, "result_datasets")
        offer_results(connection)
        connection.execute(_REVISED)
        _leave_what_is_newer(connection, draft, before.effective)
        for sql in (_ADDED, _REPLACED, _NEWEST):
            connection.execute(sql)
        put(
            connection,
            draft,
            RESULTS,
            "base_url",
            "requested_urls",
            _without_withdrawn("newest_results", _KNOWN),
        )
        hold(connection, draft)
        ((new, changed, deleted),) = connection.execute(
            "SELECT count(*) FILTER (WHERE was IS NULL), count(was), "
            "count(*) FILTER (WHERE deleted) FROM revised_filesets"
        ).fetchall()
        listed = rows_of(connection, LISTED_RESULTS)
    return RevisedFilesets(
        int(new), int(changed), int(deleted), listed - int(new + changed - deleted)
    )


def _leave_what_is_newer(connection: engine.Connection, draft: Draft, since: datetime) -> None:
    """Remove from `revised_filesets` the items for which a newer result is already published.

    The whole table of results is read for it, unless all changes are later than `since`.
    """
    ((late,),) = connection.execute(_LATE, {"since": since.replace(tzinfo=None)}).fetchall()
    if late and (published := draft.paths(draft.files(draft.tables.get(RESULTS, ())))):
        connection.execute(_OUTDONE, {"results": published, "telling": _TELLING})


def hold(connection: engine.Connection, draft: Draft) -> None:
    """Rewrite the table of files for the datasets in `prepared_versions`."""
    with engine.reading("the last snapshot"):
        connection.execute(
            "CREATE TABLE prepared_datasets AS SELECT identifier FROM prepared_versions "
            f"WHERE kind IN {_KINDS}"
        )
        if rows_of(connection, "prepared_datasets"):
            put(connection, draft, FILES, "identifier", "prepared_datasets", _HELD)


def hush(connection: engine.Connection, draft: Draft) -> None:
    """Rewrite the tables without the descriptions of the datasets that are withdrawn."""
    hold(connection, draft)
    files = draft.paths(draft.files(draft.tables.get(RESULTS, ())))
    if not files:
        return
    known = (
        f"SELECT identifier FROM prepared_versions WHERE reason IS NOT NULL AND kind IN {_KINDS}"
    )
    with engine.reading("the last snapshot"):
        connection.execute(
            "CREATE TABLE withdrawn_urls AS SELECT DISTINCT base_url "
            f"FROM {engine.table('$files')} "
            f"WHERE {_IS_OF.format(withdrawn=known)}",
            {"files": files},
        )
        if not rows_of(connection, "withdrawn_urls"):
            return
        connection.execute(
            f"CREATE TABLE withdrawn_results AS SELECT * FROM {engine.table('$files')} "
            "WHERE base_url IN (FROM withdrawn_urls)",
            {"files": files},
        )
        put(
            connection,
            draft,
            RESULTS,
            "base_url",
            "withdrawn_urls",
            _without_withdrawn("withdrawn_results", known),
        )


def shows(connection: engine.Connection, draft: Draft, wanted: str) -> bool:
    """Return whether the table of results describes a dataset that `wanted` identifies."""
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
    """Return a query of results with the descriptions of withdrawn datasets set to NULL."""
    which = _IS_OF.format(withdrawn=withdrawn)
    columns = ", ".join(
        f"if({which}, NULL, {c.name}) AS {c.name}" if c.name in _TOLD else c.name
        for c in item_tables.RESULT
    )
    return f"SELECT {columns} FROM {table}"
