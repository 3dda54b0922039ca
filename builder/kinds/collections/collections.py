"""Collections as items: rewrites a collection's document when its captures change.

The tallies of a collection count its captures and bytes by host, media type, status and day. A
publish, a withdrawal or a restoration updates the tallies of the touched collections and of their
parent collections. The document is made from the tallies and from the crawl metadata in the archive
files. If it differs from the published document, the item gets a new version. A collection without
captures is deleted.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from builder.kinds.kind import KindChange, KindCounts
from builder.snapshot.draft import Draft
from builder.snapshot.lookup import fetch_groups, find, put, rows_of
from builder.snapshot.sql import Statements
from builder.snapshot.transaction import Transaction
from functions.kinds.collections import COLUMNS
from functions.snapshot import oai_name, schema
from functions.store import engine

_SQL = Statements(__file__)

KIND = "collection"
SHOWN = 100
"""Number of values of each facet in a document: those with the most captures."""

FACETS = {
    # facet: the column or expression that it counts by
    "host": "url_host_name",
    "media_type": "coalesce(content_mime_type, content_mime_detected)",
    "status": "fetch_status::VARCHAR",
    "day": "left(fetch_date, 10)",
}
_COUNTED = (
    "url_host_name, content_mime_type, content_mime_detected, fetch_status, fetch_date, "
    "content_length"
)
_FILES = engine.table("$files")
_AT_ONCE = 256  # collections whose documents are in memory
# The collections in a list of sets and their parent collections, each once.
_WITHIN = (
    "unnest(list_distinct(flatten(list_transform("
    "list_filter({sets}, lambda s: starts_with(s, 'collection:')), lambda s: list_transform("
    "range(2, len(string_split(s, ':')) + 1), lambda n: "
    "array_to_string(string_split(s, ':')[:n], ':'))))))"
)
# Most publishes touch no collection. This query finds that out much faster than the full one.
_CONCERNED = """
SELECT 1 FROM (SELECT sets FROM new_versions UNION ALL SELECT sets FROM superseded_versions
    UNION ALL SELECT collections FROM {added})
WHERE len(list_filter(sets, lambda s: starts_with(s, 'collection:'))) > 0 LIMIT 1
"""
_COLLECTION_CHANGES = _SQL.get(
    "collection_changes",
    collections=_WITHIN.format(sets="sets"),
    facets=", ".join((f"coalesce({source}, '') AS {facet}" for facet, source in FACETS.items())),
    counted=_COUNTED,
)
_CHANGES = " UNION ALL ".join(
    f"SELECT collection, '{facet}' AS facet, {facet} AS value, sum(sign) AS captures, "
    f"sum(sign * bytes) AS bytes FROM collection_changes GROUP BY ALL"
    for facet in FACETS
)
_COLLECTION_TALLIES = """
CREATE TABLE collection_tallies AS
SELECT collection, facet, value, sum(captures)::BIGINT AS captures, sum(bytes)::BIGINT AS bytes
FROM (SELECT * FROM ({changes}) UNION ALL
      SELECT * FROM {earlier} WHERE collection IN (SELECT collection FROM touched_collections))
GROUP BY collection, facet, value HAVING sum(captures) > 0
"""
_NOTHING = "(SELECT NULL, NULL, NULL, NULL, NULL WHERE false) t(collection, f, v, c, b)"
_RANKED_TALLIES = _SQL.get("ranked_tallies", shown=str(SHOWN))
_CRAWLS = f"""
SELECT collection, count(*), sum(bytes), {{fields}} FROM (
    SELECT DISTINCT ON (collection, digest) * FROM (
        SELECT {_WITHIN.format(sets="collections")} AS collection, * FROM {_FILES}
        WHERE digest != '' AND (format != '' OR captures > 0)
    ) WHERE list_contains($some, collection) ORDER BY collection, digest, source
) GROUP BY collection
"""
_CRAWL_FIELDS = ("operator", "software", "part_of", "description")


def restate(change: KindChange) -> KindCounts:
    """Add the affected collections to `new_versions` and `superseded_versions`.

    The collections of archive files that were read are updated as well.
    """
    connection, draft = change.connection, change.draft
    added = "(SELECT NULL::VARCHAR[] AS collections WHERE false)"
    if change.has_sources:
        added = "added_sources"
    with engine.reading("the collections"):
        if connection.execute(_CONCERNED.format(added=added)).fetchone() is None:
            return KindCounts()
        connection.execute(_COLLECTION_CHANGES)
        connection.execute(
            "CREATE TABLE touched_collections AS SELECT collection FROM collection_changes "
            f"UNION SELECT {_WITHIN.format(sets='collections')} FROM {added}"
        )
        touched = connection.execute(
            "SELECT collection FROM touched_collections ORDER BY ALL"
        ).fetchall()
        if not touched:
            return KindCounts()
        connection.execute(
            "CREATE TABLE collection_documents "
            "(identifier VARCHAR, set_spec VARCHAR, deleted BOOLEAN, document VARCHAR)"
        )
        _tally(connection, draft)
        names = [name for (name,) in touched]
        for start in range(0, len(names), _AT_ONCE):
            rows = list(_items(connection, draft, change.base, names[start : start + _AT_ONCE]))
            connection.executemany("INSERT INTO collection_documents VALUES ($1, $2, $3, $4)", rows)
        count = _revise(connection, draft)
        if count:
            query = "SELECT identifier, document FROM revised_collections WHERE NOT deleted"
            put(connection, draft, "documents", "identifier", "revised_collections", query)
        return KindCounts(restated=count)


def _tally(connection: engine.Connection, draft: Draft) -> None:
    """Make `collection_tallies`, and replace the rows of touched collections in `tallies`."""
    files = fetch_groups(
        connection, draft, "tallies", ("SELECT collection FROM touched_collections", {})
    )
    values: dict[str, Any] = {"files": files} if files else {}
    earlier = _FILES if files else _NOTHING
    connection.execute(_COLLECTION_TALLIES.format(changes=_CHANGES, earlier=earlier), values)
    put(
        connection,
        draft,
        "tallies",
        "collection",
        "touched_collections",
        "SELECT * FROM collection_tallies",
    )


def _items(
    connection: engine.Connection, draft: Draft, base: Transaction, specs: list[str]
) -> Iterator[tuple[str, str, bool, str | None]]:
    """Yield identifier, set, deleted flag and document of each collection in `specs`."""
    names = base.configuration["sets.names"]
    descriptions = base.configuration["sets.descriptions"]
    crawls = _crawls(connection, draft, specs)
    ranked = connection.execute(_RANKED_TALLIES, {"some": specs}).fetchall()
    counts = {
        spec: {facet: list(rows) for facet, rows in groupby(tallies, key=lambda row: row[1])}
        for spec, tallies in groupby(ranked, key=lambda row: row[0])
    }
    for spec in specs:
        name = oai_name.collection_identifier(base.before.namespace, spec)
        if spec not in counts:
            yield name, spec, True, None
            continue
        crawl = crawls.get(spec)
        description = descriptions.get(spec)
        number, size, *lists = crawl or (0, 0, *([] for _ in _CRAWL_FIELDS))
        described = {
            name: [value for value in values or () if value is not None]
            for name, values in zip(_CRAWL_FIELDS, lists, strict=True)
        }
        if description:
            described["description"] = [
                description,
                *(d for d in described["description"] if d != description),
            ]
        document = {
            "name": oai_name.set_name(spec, names),
            "set_spec": spec,
            **{"files": number, "file_bytes": int(size or 0), **described},
            **_count_facets(counts[spec]),
        }
        assert document.keys() == {column.name for column in COLUMNS}
        yield name, spec, False, json.dumps(document, ensure_ascii=False)


def _crawls(
    connection: engine.Connection, draft: Draft, specs: list[str]
) -> dict[str, tuple[Any, ...]]:
    """Return by collection: number and bytes of its archive files, then values of _CRAWL_FIELDS."""
    files = draft.paths(draft.files(draft.tables.get("sources", ())))
    if not files:
        return {}
    fields = ", ".join(f"list_sort(list(DISTINCT {name}))[:{SHOWN}]" for name in _CRAWL_FIELDS)
    sql = _CRAWLS.format(fields=fields)
    rows = connection.execute(sql, {"files": files, "some": specs}).fetchall()
    return {row[0]: row[1:] for row in rows}


def _count_facets(facets: Mapping[str, list[tuple[Any, ...]]]) -> dict[str, Any]:
    """Return the document's counts; each row has the columns of _RANKED_TALLIES."""
    days = facets["day"][0]
    counts: dict[str, Any] = {
        "captures": int(days[6]),
        "bytes": int(days[7]),
        "first_date": days[8],
        "last_date": days[9],
    }
    for facet in ("host", "media_type", "status"):
        rows = facets[facet]
        counts[facet] = {
            "different": rows[0][5],
            "most": [{"value": r[2] or None, "captures": r[3], "bytes": r[4]} for r in rows],
        }
    return counts


def _revise(connection: engine.Connection, draft: Draft) -> int:
    """Make `revised_collections`, the collections that get a new version; return how many."""
    find(connection, draft, "collection_documents", newest=True)
    files = draft.files(draft.tables.get("documents", ()))
    values = {"files": draft.paths(files)} if files else {}
    documents = _FILES if files else "(SELECT NULL AS identifier, NULL AS document WHERE false)"
    # A collection that was never published is not deleted.
    connection.execute(
        "CREATE TABLE revised_collections AS SELECT c.* FROM collection_documents c "
        "LEFT JOIN listed_versions o USING (identifier) "
        f"LEFT JOIN {documents} d USING (identifier) "
        "WHERE CASE WHEN o.identifier IS NULL THEN NOT c.deleted "
        "ELSE c.deleted != o.deleted OR c.document IS DISTINCT FROM d.document END",
        values,
    )
    connection.execute(
        f"INSERT INTO prepared_versions BY NAME SELECT identifier, '{KIND}' AS kind, deleted, "
        "[set_spec] AS sets, []::VARCHAR[] AS left_sets FROM revised_collections"
    )
    connection.execute(
        f"INSERT INTO superseded_versions BY NAME SELECT {schema.SUPERSEDED} FROM listed_versions "
        "WHERE identifier IN (SELECT identifier FROM revised_collections)"
    )
    return rows_of(connection, "revised_collections")
