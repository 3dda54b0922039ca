"""Removal of objects below dumps/ that the index does not name."""

from dataclasses import replace
from datetime import datetime, timedelta

from builder.dump.listing import DumpState
from builder.iceberg.clean import expire_tables
from builder.runtime import Runtime
from builder.snapshot import expiry
from builder.snapshot.expiry import Expired
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


def expire(
    store: Writer, runtime: Runtime, keep: int = 1, older: timedelta = timedelta(0)
) -> Expired:
    """Retire old snapshots (expiry.expire), and what tables and dumps need no longer."""
    done = expiry.expire(store, runtime, keep, older)
    done = replace(done, objects=done.objects + expire_tables(store, runtime))
    try:
        state = DumpState.read(store)
        strays = list_strays(store, state, runtime.clock())
    except (MissingObject, DamagedStore):
        return done  # without dumps, or the next publish makes them anew
    store.remove(*strays, *state.index.removed)
    return replace(done, objects=done.objects + len(strays))
