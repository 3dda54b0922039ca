"""Takedown: what the current data files hold of withdrawn items goes, tombstones aside.

Only files that hold a version of such an item are written anew, without it. Of what was found
wrong with its records the detail goes, for it may quote them.
"""

from collections.abc import Sequence

from builder import provenance
from builder.merge import narrowed
from builder.snapshot import Draft, Query
from functions.oai import engine
from functions.snapshot import identifier, setspec
from functions.snapshot.manifest import DataFile

_FILES = engine.table("$files")
_KEPT = (
    f"SELECT * FROM {_FILES} WHERE deleted OR identifier NOT IN (SELECT identifier FROM withdrawn) "
    "ORDER BY "
)
_HUSHED = (
    f"SELECT * REPLACE ({provenance.DETAIL} AS detail) FROM {_FILES} f "
    f"ORDER BY {provenance.order('faults')}"
)


def versions(connection: engine.Connection, draft: Draft, wanted: str) -> int:
    """Make `versions`: every row with metadata that files hold of the items of table `wanted`.

    It has position, sets, source and place; returns how many rows.
    """
    with engine.reading("the last snapshot"):
        connection.execute(
            "CREATE OR REPLACE TABLE versions "
            "(position BIGINT, sets VARCHAR[], source VARCHAR, place BIGINT)"
        )
        key = f"SELECT DISTINCT {identifier.LOOKUP_KEY} AS key FROM {wanted}"
        keys = [key for (key,) in connection.execute(f"{key} ORDER BY key").fetchall()]
        lookup = draft.paths(narrowed(_files(draft, "lookup"), keys))
        if not lookup:
            return 0
        places = connection.execute(
            f"SELECT DISTINCT position FROM {_FILES} WHERE key IN ({key}) ORDER BY position",
            {"files": lookup},
        ).fetchall()
        records = narrowed(_files(draft, "records"), [place for (place,) in places])
        if records:
            connection.execute(
                "INSERT INTO versions SELECT position, sets, warc_filename, warc_record_offset "
                f"FROM {_FILES} WHERE NOT deleted AND identifier IN "
                f"(SELECT identifier FROM {wanted})",
                {"files": draft.paths(records)},
            )
        ((count,),) = connection.execute("SELECT count(*) FROM versions").fetchall()
    return int(count)


def scrub(connection: engine.Connection, draft: Draft) -> None:
    """Write those files of the draft anew that hold the `versions` of the items in `withdrawn`."""
    with engine.reading("the last snapshot"):
        rows = connection.execute("SELECT position, sets FROM versions").fetchall()
        connection.execute(
            "CREATE TABLE hushed AS SELECT DISTINCT source, place FROM versions "
            "WHERE source IS NOT NULL AND place IS NOT NULL"
        )
        sources = connection.execute("SELECT DISTINCT source FROM hushed ORDER BY 1").fetchall()
    positions = sorted({place for place, _ in rows})
    listings = sorted({(spec, p) for p, own in rows for s in own for spec in setspec.lineage(s)})
    _rewrite(draft, "records", positions, f"{_KEPT} position")
    _rewrite(draft, "copies", listings, f"{_KEPT} listing, position")
    _rewrite(draft, "faults", [source for (source,) in sources], _HUSHED)


def _rewrite(draft: Draft, table: str, keys: Sequence[object], sql: str) -> None:
    """Write the files of a table that can hold the keys anew, but those that are new."""
    new = set(draft.written)
    found = {}
    for file in narrowed(_files(draft, table), keys):
        if file.key not in new:
            query: Query = (sql, {"files": draft.paths([file])})
            found[file.key] = draft.write(table, [query])
    if found:
        draft.substitute(table, found)


def _files(draft: Draft, table: str) -> list[DataFile]:
    return draft.files(draft.tables.get(table, ()))
