"""Look-ups: finds the versions of given items, and keeps the table of URLs.

Row groups that can hold given keys are found by their bounds, and only they are read. The table of
URLs has one row for each published version of a capture: the beginning of its SURT and its date.
Its rows of superseded versions stay until more than half of the table is stale.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from builder.snapshot import match_keys, scratch_tables
from builder.snapshot.compaction import RECORDS_RATIO, runs_to_merge
from builder.snapshot.draft import Draft, Query
from functions.snapshot import layout, oai_name, schema
from functions.snapshot.manifest import DataFile, LeafReference, RowGroup
from functions.store import engine

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
URL_SURT = f"left(url_surtkey, {schema.SURT_LONGEST})"
_DIGITS = "translate(left(fetch_date, 19), '-T:Z', '')"
URL_STAMP = (
    "CASE WHEN fetch_time IS NOT NULL THEN strftime(fetch_time, '%Y%m%d%H%M%S')::BIGINT "
    f"WHEN length({_DIGITS}) >= 4 "
    f"THEN ({_DIGITS} || substr('00000101000000', length({_DIGITS}) + 1))::BIGINT ELSE 0 END"
)
"""The date of a capture as Capture.stamp gives it, as a number; 0 without a date."""

_RECORDS = engine.table("$records")
# All versions of an item have the same URL and date, which are part of its identity. So their rows
# are found even if no file of records has the version any more.
_URLS_OF_ITEMS = "SELECT DISTINCT surt, stamp FROM item_versions WHERE surt IS NOT NULL"
_LEFTOVER_URLS = (
    "CREATE OR REPLACE TEMP TABLE leftover_urls AS "
    f"SELECT position FROM {_FILES} SEMI JOIN ({_URLS_OF_ITEMS}) USING (surt, stamp)"
)
_STAYING_URLS = (
    f"DELETE FROM leftover_urls WHERE position IN (SELECT position FROM {_RECORDS}) "
    "AND position NOT IN (SELECT position FROM item_versions)"
)
_KEPT_URLS = (
    f"SELECT * FROM {_FILES} WHERE position NOT IN (SELECT position FROM leftover_urls) "
    f"ORDER BY {', '.join(schema.ORDER[URLS])}"
)

_ASKED = (
    "deleted",
    match_keys.ORIGINAL,
    match_keys.REVISIT,
    match_keys.UNRESOLVED,
    match_keys.LISTED_CAPTURE,
)
_COUNTS = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in _ASKED)


@dataclass(frozen=True, slots=True)
class VersionCounts:
    """Numbers of versions: by group, sorted; and in total for each condition of _ASKED.

    One query for all, because each query would read and bind the whole view again.
    """

    groups: Mapping[tuple[object, ...], int]
    meeting: Mapping[str, int]

    @staticmethod
    def of(connection: engine.Connection, table: str, *by: str) -> "VersionCounts":
        """Count the rows of a scratch table of versions, grouped by these columns."""
        sql = f"SELECT {', '.join(by)}, count(*), {_COUNTS} FROM {table} GROUP BY ALL ORDER BY ALL"
        with engine.reading("the merge"):
            rows = connection.execute(sql).fetchall()
        first = len(by) + 1
        met = {name: sum(row[n] for row in rows) for n, name in enumerate(_ASKED, first)}
        return VersionCounts({row[: len(by)]: row[len(by)] for row in rows}, met)


def find(
    connection: engine.Connection,
    draft: Draft,
    wanted: str,
    *,
    newest: bool = False,
    instead: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Make `listed_versions`: the listed versions of the items in the table `wanted`.

    Each row of `wanted` has an `identifier`. Only those row groups of the last snapshot are read
    that can hold the items. With `newest`, only those that can hold the version with the highest
    position. That is for items with very many versions. `instead` has expressions for columns.
    """
    records = locate(connection, draft, wanted, newest=newest)
    if not records:
        connection.execute(scratch_tables.create("listed_versions"))
        return
    columns = ", ".join(
        f"{instead[c.name]}::{c.type} AS {c.name}" if c.name in instead else f"r.{c.name}"
        for c in schema.TABLES["records"]
    )
    values = {"records": records}
    dead = fetch_groups(connection, draft, "dead", _POSITIONS)
    live = ""
    if dead:
        live = f"WHERE r.position NOT IN (SELECT position FROM {engine.table('$dead')})"
        values["dead"] = dead
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
    connection.execute(
        "CREATE OR REPLACE TABLE version_positions (identifier VARCHAR, position BIGINT)"
    )
    keys: Query = (f"SELECT {oai_name.LOOKUP_KEY} FROM {wanted}", {})
    lookup = fetch_groups(connection, draft, "lookup", keys)
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
    return fetch_groups(connection, draft, "records", _POSITIONS)


def find_files(
    connection: engine.Connection, draft: Draft, table: str, keys: Query
) -> list[DataFile]:
    """Return the files of a table in which some row group can hold one of the keys.

    `keys` is that of `find_groups`.
    """
    return [file for file, _ in find_groups(connection, draft, table, keys)]


def fetch_groups(connection: engine.Connection, draft: Draft, table: str, keys: Query) -> list[str]:
    """Return local paths of files with all row groups of a table that can hold one of the keys.

    The files may hold other row groups as well. Raises DamagedStore, MissingObject, StoreError.
    """
    return draft.group_paths(find_groups(connection, draft, table, keys))


def find_groups(
    connection: engine.Connection, draft: Draft, table: str, keys: Query
) -> list[tuple[DataFile, list[RowGroup]]]:
    """Return the row groups of a table that can hold one of the keys, by file, in order.

    The query `keys` returns the columns that bound row groups (schema.KEY), or the first alone. The
    keys are read in batches to save memory. Only leaves are read whose bounds hold a key.
    """
    unread = dict(enumerate(draft.tables.get(table, ())))
    left: dict[tuple[int, int, int], tuple[DataFile, RowGroup]] = {}
    groups: dict[tuple[int, int, int], tuple[DataFile, RowGroup]] = {}
    with closing(engine.batches(connection, *keys)) as batches:
        while (unread or left) and (batch := sorted(next(batches, ()))):
            near = [number for number, leaf in unread.items() if _holds(table, leaf, batch)]
            leaves = draft.leaf_files([unread.pop(number) for number in near])
            for number, files in zip(near, leaves, strict=True):
                for at, file in enumerate(files):
                    left |= {(number, at, n): (file, g) for n, g in enumerate(file.groups)}
            for place in [p for p, (_, group) in left.items() if _holds(table, group, batch)]:
                groups[place] = left.pop(place)
    return [
        (members[0][1][0], [group for _, (_, group) in members])
        for _, rows in groupby(sorted(groups.items(), key=itemgetter(0)), lambda pair: pair[0][:2])
        for members in (list(rows),)
    ]


def _holds(table: str, bounds: RowGroup | LeafReference, keys: Sequence[Any]) -> bool:
    first, last = bounds.first, bounds.last
    if table in layout.TIES and isinstance(first, int) and isinstance(last, int):
        first, last = match_keys.shorten(first), match_keys.shorten(last)
    if isinstance(first, tuple) and not isinstance(keys[0], tuple):
        first, last = first[0], last[0]  # type: ignore[index]
    place = bisect_left(keys, first)
    return place < len(keys) and keys[place] <= last


def put(
    connection: engine.Connection, draft: Draft, table: str, key: str, touched: str, query: str
) -> None:
    """Replace the rows of a table whose key is in the table `touched` by the rows of `query`.

    Files with such rows are dropped; their other rows are written to the new leaf as well. If there
    are no such files, the small leaves at the end of the table are merged with the new rows.
    """
    files = find_files(connection, draft, table, (f"SELECT {key} FROM {touched}", {}))
    draft.substitute(table, {file.key: () for file in files})
    leaves = draft.tables.get(table, ())
    if leaves and not files:
        ((count,),) = connection.execute(f"SELECT count(*) FROM ({query})").fetchall()
        rows = [leaf.rows for leaf in leaves]
        size = len(leaves) - runs_to_merge(rows, count, RECORDS_RATIO)
        files, leaves = draft.files(leaves[size:]), leaves[:size]
    values: dict[str, Any] = {}
    sql = query
    if files:
        values = {"files": draft.paths(files)}
        sql += f" UNION ALL SELECT * FROM {_FILES} WHERE {key} NOT IN (SELECT {key} FROM {touched})"
    order = ", ".join(schema.ORDER[table])
    written = draft.write(table, [(f"SELECT * FROM ({sql}) ORDER BY {order}", values)])
    draft.tables[table] = (*leaves, *draft.leaves(written))


def rows_of(connection: engine.Connection, table: str) -> int:
    """Return the number of rows of a table."""
    ((number,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
    return int(number)


def scrub_urls(connection: engine.Connection, draft: Draft) -> None:
    """Rewrite the draft's files that hold rows of the items in `item_versions`.

    `item_versions` is made by builder.publish.withdraw.
    """
    with engine.reading("the last snapshot"):
        files = find_files(connection, draft, URLS, (_URLS_OF_ITEMS, {}))
        if not files:
            return
        connection.execute(_LEFTOVER_URLS, {"files": draft.paths(files)})
        places: Query = ("SELECT position FROM leftover_urls", {})
        if homes := fetch_groups(connection, draft, "records", places):
            connection.execute(_STAYING_URLS, {"records": homes})
    draft.substitute(
        URLS, {f.key: draft.write(URLS, [(_KEPT_URLS, {"files": draft.paths([f])})]) for f in files}
    )
