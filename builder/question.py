"""A question in SQL: which tables of a snapshot it reads, and these tables on this machine."""

import re
import shutil
import tempfile
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from builder import views
from builder.bucket import BucketStore
from builder.store import FolderStore
from functions.oai import engine
from functions.snapshot.errors import StoreError
from functions.snapshot.manifest import Manifest
from functions.store.catalog import Catalogue

_FETCHES = 4  # files side by side


def tables(manifest: Manifest, sql: str) -> set[str]:
    """Return the store's tables that the statements read.

    DuckDB itself says so, of views over tables that are empty. Where it cannot, because a
    statement builds on what another one makes, every view counts that is named at all.
    """
    stored = {table for names in views.TABLES.values() for table in names}
    with engine.connect() as connection:
        for table in stored:
            connection.execute(f"CREATE TEMP TABLE stored_{table} AS {views.empty(table)[1:-1]}")
        connection.execute(views.views(manifest, lambda table: f"stored_{table}"))
        found = engine.tables(connection, sql)
    if found is not None:
        return {table for table in stored if f"stored_{table}" in found}
    words = set(re.findall(r"\w+", sql.lower()))
    return {table for view, names in views.TABLES.items() if view in words for table in names}


def statements(
    store: FolderStore | BucketStore, manifest: Manifest, wanted: Collection[str]
) -> str:
    """Return the statements that make the views, over local files of the `wanted` tables.

    The other views have their columns, and say when they are read that they are not there. Raises
    StoreError, too where a bucket's files would not fit on this machine's disk.
    """
    catalogue = Catalogue(store)
    if isinstance(store, BucketStore):
        _fits(manifest, wanted)

    def source(table: str) -> str:
        if table not in wanted:
            return views.empty(table, f"error('{table}: name this view in the statement') IS NULL")
        paths = _local(store, [file.key for file in catalogue.files(manifest, table)])
        return views.files(paths) if paths else views.empty(table)

    return views.views(manifest, source)


def _fits(manifest: Manifest, wanted: Collection[str]) -> None:
    size = sum(leaf.bytes for table in wanted for leaf in manifest.tables.get(table, ()))
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if size > free:
        raise StoreError(
            f"the tables that the statement reads take {size:,} bytes, and {folder} has {free:,} "
            "free: free some space, or name another folder by TMPDIR"
        )


def _local(store: FolderStore | BucketStore, keys: Sequence[str]) -> list[Path]:
    with ThreadPoolExecutor(_FETCHES) as pool:
        return list(pool.map(store.local, keys))
