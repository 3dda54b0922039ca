"""Removal of objects below tables/ that the index does not name."""

from datetime import datetime
from typing import Any

from builder.outputs.tables import avro
from builder.outputs.tables import index as keys
from builder.outputs.tables.index import FOLDER, INDEX, TablesIndex
from builder.outputs.tables.update import read_index
from builder.snapshot.orphans import ORPHAN_AGE
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.seal import refuse_damage
from functions.snapshot.store import Reader, Writer


def _read(store: Reader, key: str) -> list[Any]:
    with refuse_damage(key):
        return avro.read_entries(store.read(key))


def list_strays(
    store: Writer, now: datetime, earlier: frozenset[str] = frozenset(), *, anew: bool = False
) -> list[str]:
    """Return the keys below tables/ that the index does not name; `earlier` are named until now.

    Others must be older than ORPHAN_AGE, unless `anew`: an update in progress may have written
    them. Returns none if the tables are damaged: the next publish makes them anew.
    """
    index = read_index(store)
    named = frozenset[str]() if index is None else find_named(store, index)
    if not named:
        return []
    return [
        entry.key
        for entry in store.entries(FOLDER)
        if entry.key not in named
        and (anew or entry.key in earlier or entry.modified <= now - ORPHAN_AGE)
    ]


def find_named(store: Reader, index: TablesIndex) -> frozenset[str]:
    """Return the keys of all objects of the tables and the index; none if they are damaged."""
    named = {INDEX, *map(keys.hint_key, index.snapshots)}
    for version in (index.version, index.version - 1):
        named |= {keys.metadata_key(name, version) for name in index.snapshots}
    lists = {snapshot.key for snapshots in index.snapshots.values() for snapshot in snapshots}
    root = f"{index.location}/"
    try:
        entries = [entry for key in sorted(lists) for entry in _read(store, key)]
        manifests = {entry["manifest_path"].removeprefix(root) for entry in entries}
        entries = [entry for key in sorted(manifests) for entry in _read(store, key)]
    except (MissingObject, DamagedStore):
        return frozenset()
    files = {entry["data_file"]["file_path"].removeprefix(root) for entry in entries}
    return frozenset(named | lists | manifests | {key for key in files if key.startswith(FOLDER)})
