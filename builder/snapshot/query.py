"""SQL queries: finds the tables of the newest snapshot that a query reads and fetches them."""

import re
import shutil
import tempfile
from collections.abc import Callable, Collection

from builder.snapshot import recovery, views
from builder.threads import map_in_order
from functions.snapshot.errors import StoreError
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue
from functions.store.checked_files import CheckedFiles
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

    def make(manifest: Manifest) -> str:
        return statements(store, manifest, tables(store, manifest, sql))

    return _prepare(connection, store, make)


def prepare_view(connection: engine.Connection, store: Writer, view: str) -> Manifest:
    """Make a view of the newest snapshot; return that snapshot. Raises as `prepare` does."""

    def make(manifest: Manifest) -> str:
        wanted = views.TABLES[view]
        if isinstance(store, BucketReader):
            _fits(manifest, wanted)

        def source(table: str) -> str:
            return _read(store, manifest, table) if table in wanted else views.empty(table)

        return views.views(manifest, source, {view})

    return _prepare(connection, store, make)


def _prepare(
    connection: engine.Connection, store: Writer, make: Callable[[Manifest], str]
) -> Manifest:
    left = _TRIES
    while True:
        left -= 1
        catalogue = Catalogue(store)
        newest = recovery.current(store)[0].require_newest()
        try:
            manifest = catalogue.manifest(newest.snapshot)
            script = make(manifest)
            with engine.reading(f"snapshot {newest.snapshot}"):
                connection.execute(script)
        except StoreError:
            if not left or catalogue.pointer().newest() == newest:
                raise
        else:
            return manifest


def tables(store: Writer, manifest: Manifest, sql: str) -> set[str]:
    """Return the store's tables that the statements may read.

    For a single SELECT, DuckDB reports them, given views over empty tables. For other statements, a
    folder gives all tables, as nothing is fetched. A bucket gives the tables of each view that the
    text names.
    """
    words = set(re.findall(r"\w+", sql.lower()))
    reported = _find_tables(manifest, sql, words) if not _UNTOLD.search(sql) else None
    if reported is not None:
        return reported
    if isinstance(store, FolderReader):
        return set(_STORED)
    return {table for view, names in views.TABLES.items() if view in words for table in names}


def _find_tables(manifest: Manifest, sql: str, words: Collection[str]) -> set[str] | None:
    """Return the store's tables that a SELECT reads by views of these names, if DuckDB tells."""
    with engine.connect_reader() as connection:

        def source(table: str) -> str:
            columns = views.empty(table)[1:-1]
            connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS stored_{table} AS {columns}")
            return f"stored_{table}"

        connection.execute(views.views(manifest, source, words))
        reported = engine.tables(connection, sql)
    return (
        None if reported is None else {table for table in _STORED if f"stored_{table}" in reported}
    )


def statements(store: Writer, manifest: Manifest, wanted: Collection[str]) -> str:
    """Return the statements that make the views, over local files of the `wanted` tables.

    The other views have their columns, but statements that read them fail. Raises StoreError, also
    if a bucket's files do not fit on the local disk.
    """
    if isinstance(store, BucketReader):
        _fits(manifest, wanted)

    def source(table: str) -> str:
        return _read(store, manifest, table) if table in wanted else _absent(table)

    # The views outlive these tables: reading such a view fails before it can be optimised away.
    absent = sorted(_STORED.difference(wanted))
    created = [
        f"CREATE OR REPLACE TEMP TABLE {_absent(t)} AS {views.empty(t)[1:-1]};" for t in absent
    ]
    dropped = [f"DROP TABLE {_absent(table)};" for table in absent]
    return "\n".join([*created, views.views(manifest, source), *dropped])


def _read(store: Writer, manifest: Manifest, table: str) -> str:
    """Return the expression of a table, over files that are local and checked now.

    Raises StoreError.
    """
    keys = (file.key for file in Catalogue(store).files(manifest, table))
    paths = list(map_in_order(CheckedFiles(store).whole, keys, _FETCHES, 2 * _FETCHES))
    return views.files(paths) if paths else views.empty(table)


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
