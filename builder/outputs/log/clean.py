"""Removal of proof indexes whose snapshots are retired. The log itself is kept for good."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from builder.outputs.log.index import NEWEST, RUNS, SNAPSHOTS, index_key, run_keys
from builder.snapshot import consistency, recovery
from builder.snapshot.orphans import ORPHAN_AGE
from functions.snapshot.errors import MissingObject
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue


def remove_retired(store: Writer, now: datetime, *, anew: bool = False) -> int:
    """Remove the indexes of retired snapshots, and runs that no index names; return their number.

    A publish that signs meanwhile writes its runs before its index. So young runs stay, unless
    `anew`, and those that a new index names.
    """
    old = [run.key for run in store.entries(RUNS) if anew or run.modified <= now - ORPHAN_AGE]
    there = list(store.keys(SNAPSHOTS))
    if not there:
        return 0
    pointer, _ = recovery.current(store)
    newest = pointer.newest()
    if newest is None:
        return 0
    manifest = Catalogue(store).manifest(newest.snapshot)
    current = {index_key(n) for n in consistency.kept_snapshots(pointer, manifest.skipped)}
    gone = [key for key in there if key not in current]
    named = _find_runs(store, (NEWEST, *(key for key in there if key in current)))
    named |= _find_runs(store, [key for key in store.keys(SNAPSHOTS) if key not in there])
    runs = [key for key in old if key not in named]
    if gone:
        store.remove(*gone, *runs)
    return len(gone) + len(runs) if gone else 0


def _find_runs(store: Writer, indexes: Iterable[str]) -> set[str]:
    """Return the keys of the runs that these indexes name."""
    named: set[str] = set()
    for key in indexes:
        with suppress(MissingObject):
            named |= run_keys(store.read(key))
    return named
