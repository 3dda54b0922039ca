"""The merge: the intake held against the last snapshot, giving what is new or changed.

Of several copies of one capture one leads: one from an archive file before one from an index (which
tells no length of payload), then one with a payload before a revisit, then the first by file name
and offset, then the one that was read last. Against the snapshot it is the copy that is published
already, unless the very record was read again (same file, same offset), only a revisit was
published, or only what an index says. The leading copy gives the description; what it lacks is
filled from the others. Its sets stand, and to them come the others' collections, and hierarchies of
which it has none. Where copies lie is no part of the description, so a copy elsewhere changes
nothing by itself. A published revisit counts here without what it has from its original.
"""

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from builder.inheritance import OWN
from builder.snapshot import Draft, Query
from functions.oai import engine
from functions.snapshot import identifier, schema
from functions.snapshot.manifest import DataFile, Manifest, RowGroup

_CAPTURE = tuple(column.name for column in schema.CAPTURE)
_COLUMNS = ", ".join(_CAPTURE)
_PUBLISHED = f"{_COLUMNS}, NULL::VARCHAR AS document"
_DESCRIBED = tuple(name for name in _CAPTURE if name not in schema.LOCATION)
WITHIN_KIND = "url_surtkey, fetch_date NULLS LAST, identifier"
NATURAL_ORDER = f"kind, {WITHIN_KIND}"

# Lists of sets, the leading copy's first, folded into one; then without sets above others.
_FOLDED = (
    "list_reduce({lists}, lambda have, more: list_concat(have, list_filter(more, "
    "lambda s: starts_with(s, 'collection:') OR NOT list_contains("
    "list_transform(have, lambda h: split_part(h, ':', 1)), split_part(s, ':', 1)))))"
)
_SPECIFIC = (
    "list_sort(list_filter(list_distinct({sets}), lambda s: NOT coalesce(list_bool_or("
    "list_transform({sets}, lambda o: starts_with(o, s || ':'))), false)))"
)
LEFT = (
    f"list_filter({_SPECIFIC.format(sets='{earlier}')}, lambda s: NOT coalesce(list_bool_or("
    "list_transform({now}, lambda t: t = s OR starts_with(t, s || ':'))), false))"
)
"""The most specific of the `earlier` sets that a version in the sets `now` is not in, sorted."""

_GIVEN = (
    "SELECT 'oai:' || $namespace || ':' || identity AS identifier, * EXCLUDE (identity), "
    "NULL::VARCHAR AS refers_to, []::VARCHAR[] AS inherited "
    "FROM read_parquet($files, filename = 'part', file_row_number = true, "
    "hive_partitioning = false)"
)
_INTAKE = engine.table("getvariable('intake')")
# Few identities share a hash by chance, so those that come twice are looked for among few.
_REPEATED = f"""
CREATE TABLE repeated AS
WITH suspect AS (
    SELECT hash(identity) AS hash FROM {_INTAKE} GROUP BY hash HAVING count(*) > 1
)
SELECT 'oai:' || $namespace || ':' || identity AS identifier FROM {_INTAKE}
WHERE hash(identity) IN (SELECT hash FROM suspect)
GROUP BY identity HAVING count(*) > 1
"""
# What is as its file has it is never copied: the larger part by far is read, sorted and written.
_INCOMING = f"""
CREATE VIEW incoming AS
SELECT identifier, sets, {_COLUMNS}
FROM (SELECT 'oai:' || getvariable('namespace') || ':' || identity AS identifier,
          * EXCLUDE (identity), NULL::VARCHAR AS refers_to, []::VARCHAR[] AS inherited
      FROM {_INTAKE}) ANTI JOIN apart USING (identifier)
UNION ALL SELECT identifier, sets, {_COLUMNS} FROM apart
"""
_NEW = (
    "SELECT identifier, 'capture' AS kind, false AS deleted, NULL::VARCHAR AS reason, sets, "
    f"[]::VARCHAR[] AS left_sets, {_PUBLISHED} FROM incoming"
)
FRESH = "CREATE VIEW fresh AS SELECT * FROM altered UNION ALL SELECT * FROM unaltered"
"""Makes the view `fresh` of what the tables or views `altered` and `unaltered` have."""
NONE_UNALTERED = "CREATE VIEW unaltered AS SELECT * FROM altered WHERE false"
"""Makes `unaltered` where there is nothing but what is `altered`."""

_COPIES = f"""
CREATE TABLE copies AS
SELECT identifier, row_number() OVER copy AS rank, list(sets) OVER copy AS lists,
    {", ".join(f"first_value({n} IGNORE NULLS) OVER copy AS {n}" for n in _DESCRIBED)},
    {", ".join(sorted(schema.LOCATION))}
FROM ({_GIVEN}) LEFT JOIN parts USING (part) WHERE identifier IN (SELECT identifier FROM repeated)
WINDOW copy AS (
    PARTITION BY identifier
    ORDER BY content_length IS NULL, warc_record_type = 'revisit', warc_filename,
        warc_record_offset NULLS LAST, number DESC, file_row_number DESC
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
"""


# Where records of withdrawn items lie: what was found wrong there is not to be told in detail.
_HUSHED = f"""
CREATE TABLE hushed AS
SELECT DISTINCT warc_filename AS source, warc_record_offset AS place FROM ({_GIVEN})
WHERE identifier IN (SELECT identifier FROM old WHERE reason IS NOT NULL)
"""
_NOTHING_HUSHED = "CREATE TABLE hushed (source VARCHAR, place BIGINT)"

_OWN = f"CREATE VIEW own AS SELECT * REPLACE ({OWN}), sets AS published FROM old"

_POSITIONS: Query = ("SELECT position FROM places", {})
LOCATED = (
    f"{engine.table('$records')} r JOIN places p "
    "ON r.position = p.position AND r.identifier = p.identifier"
)
"""The versions that `locate` found, as a table expression of the files that it returned."""


@dataclass(frozen=True, slots=True)
class Merged:
    """How many items of the intake are new, changed, as they were, and further copies of these."""

    new: int
    changed: int
    unchanged: int
    copies: int


def merge(
    connection: engine.Connection, captures: list[str], before: Manifest, draft: Draft
) -> Merged:
    """Make the view `fresh` (versions to publish) and the table `superseded` (those they replace).

    `captures` are Parquet files with the columns of intake.CAPTURES, the earliest run's first;
    `draft` begins as the snapshot `before`. `fresh` has the columns of `records` but
    position and sequence; `superseded` has those of schema.SUPERSEDED.
    `hushed` has source and place of records of withdrawn items.

    `fresh` is what the table `altered` has, which others may change, and where the snapshot has
    nothing of the intake, `unaltered`: the whole of `incoming`, a view too, of the intake's files
    and of the table `apart`, which has the rows that are not to be as their files have them.
    """
    with engine.reading("the intake"):
        _gather(connection, captures, before.namespace)
        (given,) = _row(connection, f"SELECT count(*) FROM {_INTAKE}")
        (incoming,) = _row(connection, "SELECT count(*) FROM incoming")
    with engine.reading("the last snapshot"):
        find(connection, draft, "incoming")
        (known,) = _row(connection, "SELECT count(*) FROM old WHERE reason IS NOT NULL")
        values = {"files": captures, "namespace": before.namespace}
        connection.execute(*((_HUSHED, values) if known else (_NOTHING_HUSHED, {})))
    with engine.reading("the merge of both"):
        _revise(connection)
        counts = "SELECT count(*), count(*) FILTER (WHERE changed) FROM revised"
        (matched, changed) = _row(connection, counts)
    return Merged(incoming - matched, changed, matched - changed, given - incoming)


def find(connection: engine.Connection, draft: Draft, wanted: str, *, newest: bool = False) -> None:
    """Make `old`: the listed versions of the items that the table `wanted` names.

    `wanted` has rows with an `identifier` each. Of the last snapshot only those files are read
    that can hold them; with `newest` only those that can hold the version with the highest
    position, for items that have very many.
    """
    records = locate(connection, draft, wanted, newest=newest)
    if not records:
        types = ", ".join(f"{c.name} {c.type}" for c in schema.TABLES["records"])
        connection.execute(f"CREATE OR REPLACE TABLE old ({types})")
        return
    columns = ", ".join(f"r.{name}" for name in schema.names("records"))
    values = {"records": records}
    dead = narrowed(connection, draft, "dead", _POSITIONS)
    live = ""
    if dead:
        live = f"WHERE r.position NOT IN (SELECT position FROM {engine.table('$dead')})"
        values["dead"] = draft.paths(dead)
    connection.execute(
        f"CREATE OR REPLACE TABLE old AS SELECT {columns} FROM {LOCATED} {live}", values
    )


def locate(
    connection: engine.Connection, draft: Draft, wanted: str, *, newest: bool = False
) -> list[str]:
    """Make `places`: where versions of the wanted items may lie, or only where the newest may.

    Returns the paths of the files for $records in LOCATED, which has these versions; none where
    there are none.
    """
    connection.execute("CREATE OR REPLACE TABLE places (identifier VARCHAR, position BIGINT)")
    keys: Query = (f"SELECT {identifier.LOOKUP_KEY} FROM {wanted}", {})
    lookup = draft.paths(narrowed(connection, draft, "lookup", keys))
    if lookup:
        connection.execute(
            f"INSERT INTO places SELECT identifier, l.position FROM {engine.table('$lookup')} l "
            f"JOIN {wanted} ON l.key = {identifier.LOOKUP_KEY}",
            {"lookup": lookup},
        )
    if newest:
        connection.execute(
            "CREATE OR REPLACE TABLE places AS "
            "SELECT identifier, max(position) AS position FROM places GROUP BY identifier"
        )
    return draft.paths(narrowed(connection, draft, "records", _POSITIONS))


def narrowed(
    connection: engine.Connection, draft: Draft, table: str, keys: Query
) -> list[DataFile]:
    """Return the files of a table of which some row group can hold one of the keys.

    The query `keys` gives them, in any order: the columns that bound row groups (schema.KEY).
    However many there are, few are in memory; once all files are found no more are asked for.
    """
    files = draft.files(draft.tables.get(table, ()))
    left = dict(enumerate(files))
    with closing(engine.batches(connection, *keys)) as batches:
        while left and (batch := sorted(next(batches, ()))):
            found = [n for n, file in left.items() if any(_holds(g, batch) for g in file.groups)]
            for number in found:
                del left[number]
    return [file for number, file in enumerate(files) if number not in left]


def _holds(group: RowGroup, keys: Sequence[Any]) -> bool:
    place = bisect_left(keys, group.first)
    return place < len(keys) and keys[place] <= group.last


def _gather(connection: engine.Connection, captures: list[str], namespace: str) -> None:
    """Make `incoming`: one row for each identity of the intake."""
    values = {"files": captures, "namespace": namespace}
    connection.execute("SET VARIABLE intake = $files", {"files": captures})
    connection.execute("SET VARIABLE namespace = $namespace", {"namespace": namespace})
    connection.execute(_REPEATED, {"namespace": namespace})
    # A bucket's files have names on this machine that say nothing of their order.
    connection.execute(
        "CREATE TABLE parts AS SELECT unnest($files) AS part, unnest(range(len($files))) AS number",
        {"files": captures},
    )
    connection.execute(_COPIES, values)
    united = _SPECIFIC.format(sets=_FOLDED.format(lists="lists"))
    connection.execute(
        f"CREATE TABLE apart AS SELECT identifier, {united} AS sets, {_COLUMNS} FROM copies "
        "WHERE rank = 1"
    )
    connection.execute("DROP TABLE copies; DROP TABLE parts;")
    connection.execute(_INCOMING)


def _revise(connection: engine.Connection) -> None:
    """Make `revised`, `altered`, `fresh` and `superseded` out of `incoming` and `old`."""
    leads = (
        "(o.deleted OR CASE WHEN (i.content_length IS NULL) != (o.content_length IS NULL) "
        "THEN o.content_length IS NULL ELSE i.warc_filename = o.warc_filename "
        "AND i.warc_record_offset IS NOT DISTINCT FROM o.warc_record_offset "
        "OR o.warc_record_type = 'revisit' AND i.warc_record_type != 'revisit' END)"
    )
    connection.execute(_OWN)
    columns = [
        f"CASE WHEN {leads} THEN coalesce(i.{n}, o.{n}) ELSE coalesce(o.{n}, i.{n}) END AS {n}"
        if n in _DESCRIBED
        else f"CASE WHEN {leads} THEN i.{n} ELSE o.{n} END AS {n}"
        for n in _CAPTURE
    ]
    # A tombstone does not say whether its set of a media type was its original's.
    earlier = (
        "CASE WHEN o.deleted AND i.warc_record_type = 'revisit' THEN "
        "list_filter(o.sets, lambda s: NOT starts_with(s, 'mime:')) ELSE o.sets END"
    )
    lists = f"CASE WHEN {leads} THEN [i.sets, {earlier}] ELSE [{earlier}, i.sets] END"
    sets = _SPECIFIC.format(sets=_FOLDED.format(lists=f"({lists})"))
    differs = " OR ".join(f"n.{name} IS DISTINCT FROM o.{name}" for name in ("sets", *_DESCRIBED))
    left = LEFT.format(earlier="list_concat(o.published, o.left_sets)", now="n.sets")
    connection.execute(
        "CREATE TABLE revised AS WITH n AS (SELECT o.position AS old_position, o.identifier, "
        f"{sets} AS sets, {', '.join(columns)} FROM incoming i JOIN own o USING (identifier)) "
        "SELECT n.*, CASE WHEN n.sets = o.published THEN o.left_sets "
        f"ELSE {left} END AS left_sets, o.reason IS NULL AND (o.deleted OR {differs}) AS changed "
        "FROM n JOIN own o ON o.position = n.old_position"
    )
    (known,) = _row(connection, "SELECT count(*) FROM old")
    unknown = "WHERE identifier NOT IN (SELECT identifier FROM old)" if known else "WHERE false"
    connection.execute(
        f"CREATE TABLE altered AS {_NEW} {unknown} UNION ALL "
        f"SELECT identifier, 'capture', false, NULL, sets, left_sets, {_PUBLISHED} FROM revised "
        "WHERE changed"
    )
    connection.execute(NONE_UNALTERED if known else f"CREATE VIEW unaltered AS {_NEW}")
    connection.execute(FRESH)
    connection.execute(
        f"CREATE TABLE superseded AS SELECT {schema.SUPERSEDED} FROM old "
        "WHERE position IN (SELECT old_position FROM revised WHERE changed)"
    )


def _row(
    connection: engine.Connection, sql: str, values: dict[str, list[str]] | None = None
) -> tuple[int, ...]:
    (row,) = connection.execute(sql, values or {}).fetchall()
    return tuple(row)
