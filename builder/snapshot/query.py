"""SQL queries: finds the tables of the newest snapshot that a query reads and fetches them."""

import re
import shutil
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from builder.snapshot import recovery, views
from builder.threads import map_in_order
from functions.database import engine
from functions.snapshot.errors import NothingPublished, StoreError
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue
from functions.store.store_reader import BucketReader, FolderReader

_FETCHES = 4  # files fetched in parallel
_TRIES = 4
_STORED = frozenset(table for names in views.TABLES.values() for table in names)
# These read tables that DuckDB does not report, even within a SELECT.
_UNTOLD = re.compile(r"\b(show|pragma\w*|query\w*)\b", re.IGNORECASE)


def prepare(connection: engine.Connection, store: Writer, sql: str) -> Manifest:
    """Make the views of the newest snapshot, over the tables that the statements read; return it.

    If the snapshot is expired while it is fetched, the next one is used. Raises NothingPublished
    and StoreError.
    """
    left = _TRIES
    while True:
        left -= 1
        catalogue = Catalogue(store)
        pointer, _ = recovery.current(store)
        newest = pointer.newest()
        if newest is None:
            raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")
        try:
            manifest = catalogue.manifest(newest.snapshot)
            wanted = tables(store, manifest, sql)
            made = statements(store, manifest, wanted)
            with engine.reading(f"snapshot {newest.snapshot}"):
                connection.execute(made)
        except StoreError:
            if not left or catalogue.pointer().newest() == newest:
                raise
        else:
            return manifest


def tables(store: Writer, manifest: Manifest, sql: str) -> set[str]:
    """Return the store's tables that the statements may read.

    For a single SELECT, DuckDB reports them, given views over empty tables. For other statements, a
    folder gives all tables, as that costs nothing. A bucket gives the tables of each view that the
    text names.
    """
    with engine.connect() as connection:
        for table in _STORED:
            connection.execute(f"CREATE TEMP TABLE stored_{table} AS {views.empty(table)[1:-1]}")
        connection.execute(views.views(manifest, lambda table: f"stored_{table}"))
        found = engine.tables(connection, sql) if not _UNTOLD.search(sql) else None
    if found is not None:
        return {table for table in _STORED if f"stored_{table}" in found}
    if isinstance(store, FolderReader):
        return set(_STORED)
    words = set(re.findall(r"\w+", sql.lower()))
    return {table for view, names in views.TABLES.items() if view in words for table in names}


def statements(store: Writer, manifest: Manifest, wanted: Collection[str]) -> str:
    """Return the statements that make the views, over local files of the `wanted` tables.

    The other views have their columns, but statements that read them fail. Raises StoreError, also
    if a bucket's files do not fit on the local disk.
    """
    catalogue = Catalogue(store)
    if isinstance(store, BucketReader):
        _fits(manifest, wanted)

    def source(table: str) -> str:
        if table not in wanted:
            return _absent(table)
        paths = _local(store, [file.key for file in catalogue.files(manifest, table)])
        return views.files(paths) if paths else views.empty(table)

    # The views outlive these tables: reading such a view fails before it can be optimised away.
    absent = sorted(_STORED.difference(wanted))
    made = [f"CREATE OR REPLACE TEMP TABLE {_absent(t)} AS {views.empty(t)[1:-1]};" for t in absent]
    dropped = [f"DROP TABLE {_absent(table)};" for table in absent]
    return "\n".join([*made, views.views(manifest, source), *dropped])


def _absent(table: str) -> str:
    """Return the name of an absent table. DuckDB's error message shows it."""
    return f'"{table}: name this view in the statement"'


def _fits(manifest: Manifest, wanted: Collection[str]) -> None:
    size = sum(leaf.bytes for table in wanted for leaf in manifest.tables.get(table, ()))
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if size > free:
        raise StoreError(
            f"the tables of the statement take {size:,} bytes, but {folder} has {free:,} free: "
            "free some space, or set TMPDIR to another folder"
        )


def _local(store: Writer, keys: Sequence[str]) -> list[Path]:
    return list(map_in_order(store.local, keys, _FETCHES, 2 * _FETCHES))
