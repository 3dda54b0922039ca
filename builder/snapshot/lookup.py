"""Look-ups: finds the versions of given items, and the rows of the tables of keys.

Data files that can hold given keys are found by the bounds of their row groups. The table of URLs
has one row for each published version of a capture: the beginning of its SURT and its date. Its
rows of superseded versions stay until more than half of the table is stale.

The table `originals` has two rows for most captures that are not revisits. Keys have 40 bits of
hash:

- one row for the URL and date, to the second: a revisit may refer to these;
- one row for the payload digest, and one for a declared digest. They also have 24 bits of the
  URL's hash and the date, so the best of many originals with one digest is found without reading
  records. A damaged original has no URL there, and a date after all others.

The table `revisits` has, for each revisit, the keys of the rule that found its original and of
the rules before it. A revisit without an original has the keys of all rules. If the original was
found by its digest, the row also has the dates of the revisit (`moment`) and of the original
(`goal`): only an original dated between them is better. Different texts may have the same key,
so matches are checked against the records.
"""

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from builder.snapshot import scratch_tables
from builder.snapshot.draft import RECORDS_RATIO, Draft, Query, runs_to_merge
from functions.database import engine
from functions.snapshot import oai_name, schema
from functions.snapshot.manifest import DataFile, RowGroup

WITHIN_KIND = "url_surtkey, fetch_date NULLS LAST, identifier"
NATURAL_ORDER = f"kind, {WITHIN_KIND}"
_POSITIONS: Query = ("SELECT position FROM version_positions", {})
LOCATED = (
    f"{engine.table('$records')} r JOIN version_positions p "
    "ON r.position = p.position AND r.identifier = p.identifier"
)
"""The versions found by `locate`, as a table expression over the files that it returned."""
_FILES = engine.table("$files")
URLS = "urls"
LISTED_CAPTURE = "kind = 'capture' AND NOT deleted"
"""Items that have rows here."""
URL_SURT = f"left(url_surtkey, {schema.SURT_LONGEST})"
_DIGITS = "translate(left(fetch_date, 19), '-T:Z', '')"
URL_STAMP = (
    f"CASE WHEN length({_DIGITS}) >= 4 "
    f"THEN ({_DIGITS} || substr('00000101000000', length({_DIGITS}) + 1))::BIGINT ELSE 0 END"
)
"""The date of a capture as Capture.stamp gives it, as a number; 0 without a date."""

_RECORDS, _URL_FILES = engine.table("$records"), engine.table("$files")
# All versions of an item have the same URL and date, which are part of its identity. So their rows
# are found even if no file of records has the version any more.
_URLS_OF_ITEMS = "SELECT DISTINCT surt, stamp FROM item_versions WHERE surt IS NOT NULL"
_LEFTOVER_URLS = (
    "CREATE OR REPLACE TEMP TABLE leftover_urls AS "
    f"SELECT position FROM {_URL_FILES} SEMI JOIN ({_URLS_OF_ITEMS}) USING (surt, stamp)"
)
_STAYING_URLS = (
    f"DELETE FROM leftover_urls WHERE position IN (SELECT position FROM {_RECORDS}) "
    "AND position NOT IN (SELECT position FROM item_versions)"
)
_KEPT_URLS = (
    f"SELECT * FROM {_URL_FILES} WHERE position NOT IN (SELECT position FROM leftover_urls) "
    f"ORDER BY {', '.join(schema.ORDER[URLS])}"
)
KEY_SPAN = 1 << 40
"""Keys of a URL and date are below this value, those of a digest are not."""
UNDATED = 1 << 38
"""Sort value of undated captures, in seconds since 1970: after all dates."""

_DAMAGED = 2 * UNDATED
"""Seconds added to the date of a damaged capture."""

ORIGINAL = "kind = 'capture' AND NOT deleted AND warc_record_type != 'revisit'"
REVISIT = "kind = 'capture' AND NOT deleted AND warc_record_type = 'revisit'"

SECOND = "epoch_us(fetch_time) // 1000000"
"""The date of a capture in seconds since 1970; NULL if the date is less exact."""

_DATE = "rtrim({}, 'Z')"
_WHOLE = "epoch_us(try_cast({0} || substr('0001-01-01T00:00:00', length({0}) + 1) AS TIMESTAMP))"
_AT = f"coalesce({SECOND}, {_WHOLE.format(_DATE.format('fetch_date'))} // 1000000, {UNDATED})"
_REFERRED = (
    f"CASE WHEN length({_DATE.format('refers_to_date')}) >= 19 THEN "
    f"{_WHOLE.format(_DATE.format('refers_to_date'))} // 1000000 END"
)


def find(connection: engine.Connection, draft: Draft, wanted: str, *, newest: bool = False) -> None:
    """Make `listed_versions`: the listed versions of the items in the table `wanted`.

    Each row of `wanted` has an `identifier`. Only those files of the last snapshot are read that
    can hold the items. With `newest`, only the files are read that can hold the version with the
    highest position. That is for items with very many versions.
    """
    records = locate(connection, draft, wanted, newest=newest)
    if not records:
        connection.execute(scratch_tables.create("listed_versions"))
        return
    columns = ", ".join(f"r.{name}" for name in schema.names("records"))
    values = {"records": records}
    dead = find_files(connection, draft, "dead", _POSITIONS)
    live = ""
    if dead:
        live = f"WHERE r.position NOT IN (SELECT position FROM {engine.table('$dead')})"
        values["dead"] = draft.paths(dead)
    connection.execute(
        f"CREATE OR REPLACE TABLE listed_versions AS SELECT {columns} FROM {LOCATED} {live}", values
    )


def locate(
    connection: engine.Connection, draft: Draft, wanted: str, *, newest: bool = False
) -> list[str]:
    """Make `version_positions`: the possible positions of all versions, or only of the newest ones.

    Returns the paths of the files for $records in LOCATED. The list is empty if there are no
    versions.
    """
    connection.execute(scratch_tables.create("version_positions"))
    keys: Query = (f"SELECT {oai_name.LOOKUP_KEY} FROM {wanted}", {})
    lookup = draft.paths(find_files(connection, draft, "lookup", keys))
    if lookup:
        connection.execute(
            "INSERT INTO version_positions SELECT identifier, l.position "
            f"FROM {engine.table('$lookup')} l JOIN {wanted} ON l.key = {oai_name.LOOKUP_KEY}",
            {"lookup": lookup},
        )
    if newest:
        connection.execute(
            "CREATE OR REPLACE TABLE version_positions AS "
            "SELECT identifier, max(position) AS position FROM version_positions "
            "GROUP BY identifier"
        )
    return draft.paths(find_files(connection, draft, "records", _POSITIONS))


def find_files(
    connection: engine.Connection, draft: Draft, table: str, keys: Query
) -> list[DataFile]:
    """Return the files of a table in which some row group can hold one of the keys.

    The query `keys` returns the columns that bound row groups (schema.KEY), in any order. The keys
    are read in batches to save memory, and only until all files are found.
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


def put(
    connection: engine.Connection, draft: Draft, table: str, key: str, touched: str, query: str
) -> None:
    """Replace the rows of a table whose key is in the table `touched` by the rows of `query`.

    Files with such rows are dropped; their other rows are written to the new leaf as well. If there
    are no such files, the small leaves at the end of the table are merged with the new rows.
    """
    files = find_files(connection, draft, table, (f"SELECT {key} FROM {touched}", {}))
    draft.substitute(table, {file.key: () for file in files})
    kept = draft.tables.get(table, ())
    if kept and not files:
        ((count,),) = connection.execute(f"SELECT count(*) FROM ({query})").fetchall()
        rows = [leaf.rows for leaf in kept]
        size = len(kept) - runs_to_merge(rows, count, RECORDS_RATIO)
        files, kept = draft.files(kept[size:]), kept[:size]
    values: dict[str, Any] = {}
    sql = query
    if files:
        values = {"files": draft.paths(files)}
        sql += f" UNION ALL SELECT * FROM {_FILES} WHERE {key} NOT IN (SELECT {key} FROM {touched})"
    order = ", ".join(schema.ORDER[table])
    written = draft.write(table, [(f"SELECT * FROM ({sql}) ORDER BY {order}", values)])
    draft.tables[table] = (*kept, *draft.leaves(written))


def rows_of(connection: engine.Connection, table: str) -> int:
    """Return the number of rows of a table."""
    ((number,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(number)


def url_rows(records: str) -> str:
    """Return the query of the rows of the captures in `records`."""
    return f"SELECT {URL_SURT} AS surt, {URL_STAMP} AS stamp, position FROM {records}"


def scrub_urls(connection: engine.Connection, draft: Draft) -> None:
    """Rewrite the draft's files that hold rows of the items in `item_versions`.

    `item_versions` is made by builder.withdraw.withdraw.
    """
    with engine.reading("the last snapshot"):
        files = find_files(connection, draft, URLS, (_URLS_OF_ITEMS, {}))
        if not files:
            return
        connection.execute(_LEFTOVER_URLS, {"files": draft.paths(files)})
        places: Query = ("SELECT position FROM leftover_urls", {})
        if homes := find_files(connection, draft, "records", places):
            connection.execute(_STAYING_URLS, {"records": draft.paths(homes)})
    draft.substitute(
        URLS, {f.key: draft.write(URLS, [(_KEPT_URLS, {"files": draft.paths([f])})]) for f in files}
    )


def _hash(text: str) -> str:
    return f"('0x' || left(sha1({text}), 16))::UBIGINT"


def _date_key(url_hash: str, second: str) -> str:
    """Return the key of a URL and a date; `url_hash` is the hash of the URL."""
    key = f"(({url_hash} >> 24)::BIGINT + {second} * 1000003)"
    return f"({key} % {KEY_SPAN} + {KEY_SPAN}) % {KEY_SPAN}"


_DIGEST = f"{KEY_SPAN} + ({_hash('digest')} >> 24)::BIGINT"
_URL_HASH = "(url_hash & 16777215)::INTEGER"
_NO_URL_HASH = -1


def original_keys(items: str) -> str:
    """Return the query of the table rows for the originals in `items` (with `position`)."""
    by_digest = (
        "SELECT {key}, if(damaged, {none}, {url}), if(damaged, {late}, 0) + moment, position "
        "FROM (SELECT *, {column} AS digest FROM m) "
    )
    return (
        "WITH m AS MATERIALIZED (SELECT position, content_digest, content_digest_declared, "
        "content_damaged IS NOT NULL AS damaged, "
        f"{SECOND} AS second, {_AT} AS moment, {_hash('url')} AS url_hash FROM {items}) "
        f"SELECT {_date_key('url_hash', 'second')} AS key, NULL::INTEGER AS url, "
        "NULL::BIGINT AS moment, position FROM m WHERE second IS NOT NULL"
    ) + "".join(
        " UNION ALL "
        + by_digest.format(
            key=_DIGEST, url=_URL_HASH, column=column, none=_NO_URL_HASH, late=_DAMAGED
        )
        + "WHERE digest IS NOT NULL"
        for column in ("content_digest", "content_digest_declared")
    )


def wanted_keys(items: str, given: str) -> str:
    """Return the query of the search keys of the revisits in `items`, one row each.

    Its columns are `given`, `date_key` (the key of the URL `referred` and the second `second` that
    the revisit refers to), `digest_key` (the key of `digest`), `url_hash` (the hash of `address`,
    its own URL) and its date `moment`.
    """
    return (
        f"SELECT {given}, address, digest, referred, second, moment, {_URL_HASH} AS url_hash, "
        f"CASE WHEN digest IS NOT NULL THEN {_DIGEST} END AS digest_key, "
        "CASE WHEN referred IS NOT NULL THEN "
        f"{_date_key(_hash('referred'), 'second')} END AS date_key "
        f"FROM (SELECT {given}, url AS address, content_digest AS digest, "
        f"refers_to_url AS referred, {_REFERRED} AS second, {_AT} AS moment, "
        f"{_hash('url')} AS url_hash FROM {items})"
    )


def keys_of_revisits(items: str) -> str:
    """Return the query of the table rows for the revisits in `items`.

    `items` has their position, `rule` and `goal`. `rule` found the original (NULL without an
    original); `goal` is the original's date.
    """
    return f"""
SELECT unnest(ties, recursive := true), position FROM (
    SELECT position, list_filter([
        {{'key': date_key, 'url': NULL::INTEGER, 'moment': NULL::BIGINT, 'goal': NULL::BIGINT}},
        {{'key': if(rule >= 2, digest_key, NULL), 'url': url_hash,
            'moment': if(rule = 2, moment, NULL), 'goal': if(rule = 2, goal, NULL)}},
        {{'key': if(rule IS NULL OR rule = 3, digest_key, NULL), 'url': NULL::INTEGER,
            'moment': if(rule = 3, moment, NULL), 'goal': if(rule = 3, goal, NULL)}}
    ], lambda tie: tie.key IS NOT NULL) AS ties
    FROM ({wanted_keys(items, "position, rule, goal")})
)"""
