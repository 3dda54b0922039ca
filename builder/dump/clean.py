"""Removal of objects below dumps/ that the index does not name."""

from datetime import datetime

from builder.dump.listing import DumpState
from builder.snapshot.orphans import ORPHAN_AGE
from functions.snapshot import dumps
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Writer


def list_strays(store: Writer, state: DumpState, now: datetime | None) -> list[str]:
    """Return the keys below dumps/ that the index does not name.

    With `now`, only those older than ORPHAN_AGE: readers may still use the others, and an update in
    progress may have written them. Without, those of newer snapshots are left out: an update writes
    them, and they have no item that was withdrawn until this snapshot. Raises StoreError.
    """
    named = {*state.keys(store)}
    return [
        entry.key
        for entry in store.entries(dumps.FOLDER)
        if entry.key != dumps.INDEX
        and entry.key not in named
        and (
            entry.modified <= now - ORPHAN_AGE
            if now is not None
            else _find_snapshot(entry.key) <= state.index.snapshot
        )
    ]


def remove_strays(store: Writer) -> None:
    """Remove all that the index does not name, as after a purge. Raises StoreError."""
    try:
        store.remove(*list_strays(store, DumpState.read(store), None))
    except (MissingObject, DamagedStore):
        return  # without dumps, or the next publish makes them anew


def _find_snapshot(key: str) -> int:
    """Return the snapshot that an object was read from, 0 if the key is not of a dump."""
    number = key.rpartition("/")[2].partition("-")[0]
    return int(number) if number.isdecimal() else 0
