"""Purge: removes the metadata of withdrawn items from the current data files, except tombstones.

Only files with a version of such an item are rewritten, without that version. The details of faults
of its records are removed as well, because they may quote the records.
"""

from contextlib import closing

from builder.publish import faults
from builder.snapshot import url_index
from builder.snapshot.draft import Draft, Query
from builder.snapshot.lookup import LOCATED, find_files, locate
from functions.database import engine
from functions.snapshot import schema
from functions.url import surt

_FILES = engine.table("$files")
_VERSIONS = (
    "versions (position BIGINT, sets VARCHAR[], source VARCHAR, place BIGINT, surt VARCHAR, "
    "stamp BIGINT)"
)
_ASKED = (
    f"SELECT r.position, coalesce(url_bytes, encode(url)), {url_index.STAMP} FROM {LOCATED} "
    "WHERE NOT deleted AND fetch_method IS NOT NULL"
)
_POSITIONS = "SELECT position FROM versions"
# The copied set may be a parent of a set of the item.
_LISTINGS = (
    "SELECT array_to_string(parts[:unnest(range(1, len(parts) + 1))], ':'), position FROM ("
    "SELECT position, string_split(unnest(sets), ':') AS parts FROM versions)"
)
_SHOWN = (
    "CREATE OR REPLACE TABLE hushed AS SELECT DISTINCT source, place FROM versions "
    "WHERE source IS NOT NULL AND place IS NOT NULL"
)
_KEPT = f"SELECT * FROM {_FILES} WHERE position NOT IN ({_POSITIONS}) ORDER BY "
_HUSHED = (
    f"SELECT * REPLACE ({faults.DETAIL} AS detail) FROM {_FILES} f "
    f"ORDER BY {faults.order('faults')}"
)


def versions(connection: engine.Connection, draft: Draft, wanted: str) -> int:
    """Make `versions`: all rows with metadata of the items in the table `wanted`.

    Its columns are position, sets (including those left), source, place, and the key of the table
    of URLs (surt and stamp). Returns the number of rows.
    """
    with engine.reading("the last snapshot"):
        connection.execute(f"CREATE OR REPLACE TABLE {_VERSIONS}")
        records = locate(connection, draft, wanted)
        if not records:
            return 0
        connection.execute(
            "INSERT INTO versions SELECT r.position, list_concat(sets, left_sets), "
            f"warc_filename, warc_record_offset, {url_index.SURT}, {url_index.STAMP} "
            f"FROM {LOCATED} WHERE NOT deleted",
            {"records": records},
        )
        ((count,),) = connection.execute("SELECT count(*) FROM versions").fetchall()
        _former(connection, records)
    return int(count)


def _former(connection: engine.Connection, records: list[str]) -> None:
    """Add to `versions` the former keys of captures with other methods than GET.

    Before their method was known, their key was that of their URL alone.
    """
    with closing(connection.cursor()) as cursor:
        for batch in engine.batches(cursor, _ASKED, {"records": records}):
            rows = [(place, surt.of(raw)[: schema.SURT_LONGEST], at) for place, raw, at in batch]
            connection.executemany(
                "INSERT INTO versions (position, surt, stamp) VALUES ($1, $2, $3)", rows
            )


def scrub(connection: engine.Connection, draft: Draft) -> None:
    """Rewrite the draft's files that hold rows in `versions`."""
    with engine.reading("the last snapshot"):
        connection.execute(_SHOWN)
    url_index.scrub(connection, draft)
    _rewrite(connection, draft, "records", _POSITIONS, f"{_KEPT} position")
    _rewrite(connection, draft, "copies", _LISTINGS, f"{_KEPT} listing, position")
    _rewrite(connection, draft, "faults", "SELECT DISTINCT source FROM hushed", _HUSHED)


def _rewrite(connection: engine.Connection, draft: Draft, table: str, keys: str, sql: str) -> None:
    """Rewrite the files of a table that can hold the keys, except files written by this draft."""
    with engine.reading("the last snapshot"):
        files = find_files(connection, draft, table, (keys, {}))
    new = set(draft.written)
    found = {}
    for file in files:
        if file.key not in new:
            query: Query = (sql, {"files": draft.paths([file])})
            found[file.key] = draft.write(table, [query])
    if found:
        draft.substitute(table, found)
