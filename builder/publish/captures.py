"""The merge: the intake held against the last snapshot, giving what is new or changed.

Of several copies of one capture one leads: one from an archive file before one from an index (which
tells no length of payload), then a whole one before a damaged one, then one with a payload before a
revisit, then the first by file name and offset, then the one that was read last. Against the
snapshot it is the copy that is published already, unless the very record was read again (same file,
same offset), or only a revisit, a damaged copy or what an index says was published. The leading
copy gives the description; what it lacks is filled from the others, but a whole copy gets nothing
from a damaged one. Its sets stand, and to them come the others' collections, and hierarchies of
which it has none. Where copies lie is no part of the description, so a copy elsewhere changes
nothing by itself. A published revisit counts here without what it has from its original.
"""

from dataclasses import dataclass

from builder.publish.precedence import (
    COLUMNS,
    DESCRIBED,
    FOLDED,
    REQUESTED,
    REVISED,
    SPECIFIC,
    UNITED,
)
from builder.snapshot.draft import Draft
from builder.snapshot.inheritance import OWN
from builder.snapshot.lookup import find
from functions.database import engine
from functions.snapshot import schema
from functions.snapshot.manifest import Manifest

_PUBLISHED = f"{COLUMNS}, NULL::VARCHAR AS document"

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
_ALONE = f"""
SELECT identifier, sets, {COLUMNS}
FROM (SELECT 'oai:' || getvariable('namespace') || ':' || identity AS identifier,
          * EXCLUDE (identity), NULL::VARCHAR AS refers_to, []::VARCHAR[] AS inherited
      FROM {_INTAKE})
"""
_UNITED = f"{_ALONE} ANTI JOIN apart USING (identifier) UNION ALL FROM apart"
_NEW = (
    "SELECT identifier, 'capture' AS kind, false AS deleted, NULL::VARCHAR AS reason, sets, "
    f"[]::VARCHAR[] AS left_sets, {_PUBLISHED} FROM incoming"
)
FRESH = "CREATE VIEW fresh AS SELECT * FROM altered UNION ALL SELECT * FROM unaltered"
"""Makes the view `fresh` of what the tables or views `altered` and `unaltered` have."""
NONE_UNALTERED = "CREATE VIEW unaltered AS SELECT * FROM altered WHERE false"
"""Makes `unaltered` where there is nothing but what is `altered`."""


def _unite_column(column: str) -> str:
    return _request_of(column) if column in REQUESTED else UNITED.format(name=column)


def _request_of(column: str) -> str:
    """Return the value of the first copy that tells its request, be it that there is no method."""
    told = "content_length IS NOT NULL OR fetch_method IS NOT NULL"
    first = f"first_value(CASE WHEN {told} THEN [{column}] END IGNORE NULLS) OVER copy"
    return f"coalesce({first}, first_value([{column}]) OVER copy)[1]"


_COPIES = f"""
CREATE TABLE copies AS
SELECT identifier, row_number() OVER copy AS rank, list(sets) OVER copy AS lists,
    {", ".join(f"{_unite_column(name)} AS {name}" for name in DESCRIBED)},
    {", ".join(sorted(schema.LOCATION))}
FROM ({_GIVEN}) LEFT JOIN parts USING (part) WHERE identifier IN (SELECT identifier FROM repeated)
WINDOW copy AS (
    PARTITION BY identifier
    ORDER BY content_length IS NULL, content_damaged IS NOT NULL,
        warc_record_type = 'revisit', warc_filename, warc_record_offset NULLS LAST, number DESC,
        file_row_number DESC
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
    and, where something came repeatedly, of the table `apart`, which has the rows that are not to
    be as their files have them.
    """
    with engine.reading("the intake"):
        several = _gather(connection, captures, before.namespace)
        (given,) = _row(connection, f"SELECT count(*) FROM {_INTAKE}")
        (incoming,) = _row(connection, "SELECT count(*) FROM incoming") if several else (given,)
    with engine.reading("the last snapshot"):
        find(connection, draft, "incoming")
        (known,) = _row(connection, "SELECT count(*) FROM old WHERE reason IS NOT NULL")
        values = {"files": captures, "namespace": before.namespace}
        connection.execute(*((_HUSHED, values) if known else (_NOTHING_HUSHED, {})))
    with engine.reading("the merge of both"):
        matched, changed = _revise(connection)
    return Merged(incoming - matched, changed, matched - changed, given - incoming)


def _gather(connection: engine.Connection, captures: list[str], namespace: str) -> bool:
    """Make `incoming`: one row for each identity of the intake; tell whether some came repeatedly.

    Where none did, which is usual, nothing has to be united.
    """
    connection.execute("SET VARIABLE intake = $files", {"files": captures})
    connection.execute("SET VARIABLE namespace = $namespace", {"namespace": namespace})
    connection.execute(_REPEATED, {"namespace": namespace})
    (repeated,) = _row(connection, "SELECT count(*) FROM repeated")
    if repeated:
        _unite(connection, captures, namespace)
    connection.execute(f"CREATE VIEW incoming AS {_UNITED if repeated else _ALONE}")
    return repeated > 0


def _unite(connection: engine.Connection, captures: list[str], namespace: str) -> None:
    """Make `apart`: one row for each identity that came several times."""
    # A bucket's files have names on this machine that say nothing of their order.
    connection.execute(
        "CREATE TABLE parts AS SELECT unnest($files) AS part, unnest(range(len($files))) AS number",
        {"files": captures},
    )
    connection.execute(_COPIES, {"files": captures, "namespace": namespace})
    united = SPECIFIC.format(sets=FOLDED.format(lists="lists"))
    connection.execute(
        f"CREATE TABLE apart AS SELECT identifier, {united} AS sets, {COLUMNS} FROM copies "
        "WHERE rank = 1"
    )
    connection.execute("DROP TABLE copies; DROP TABLE parts;")


def _revise(connection: engine.Connection) -> tuple[int, int]:
    """Make `altered`, `fresh` and `superseded`; return how many were there, how many change."""
    matched = changed = 0
    if _row(connection, "SELECT count(*) FROM old") != (0,):
        connection.execute(_OWN)
        connection.execute(REVISED)
        counts = "SELECT count(*), count(*) FILTER (WHERE changed) FROM revised"
        (matched, changed) = _row(connection, counts)
        connection.execute(
            f"CREATE TABLE altered AS {_NEW} WHERE identifier NOT IN (SELECT identifier FROM old) "
            f"UNION ALL SELECT identifier, 'capture', false, NULL, sets, left_sets, {_PUBLISHED} "
            "FROM revised WHERE changed"
        )
        connection.execute(NONE_UNALTERED)
        replaced = "position IN (SELECT old_position FROM revised WHERE changed)"
    else:
        connection.execute(f"CREATE TABLE altered AS {_NEW} WHERE false")
        connection.execute(f"CREATE VIEW unaltered AS {_NEW}")
        replaced = "false"
    connection.execute(FRESH)
    connection.execute(
        f"CREATE TABLE superseded AS SELECT {schema.SUPERSEDED} FROM old WHERE {replaced}"
    )
    return matched, changed


def _row(
    connection: engine.Connection, sql: str, values: dict[str, list[str]] | None = None
) -> tuple[int, ...]:
    (row,) = connection.execute(sql, values or {}).fetchall()
    return tuple(row)
