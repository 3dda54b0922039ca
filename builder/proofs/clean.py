"""Removal of proof indexes whose snapshots are retired. The log itself is kept for good."""

from contextlib import suppress

from builder.proofs.index import NEWEST, RUNS, SNAPSHOTS, index_key, run_keys
from builder.snapshot import consistency, recovery
from functions.snapshot.errors import MissingObject
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue


def remove_retired(store: Writer) -> int:
    """Remove the indexes of retired snapshots, and runs that no index names; return their number.

    A publish that signs meanwhile writes its runs again, for its index comes after them.
    """
    there = list(store.keys(SNAPSHOTS))
    if not there:
        return 0
    pointer, _ = recovery.current(store)
    newest = pointer.newest()
    if newest is None:
        return 0
    manifest = Catalogue(store).manifest(newest.snapshot)
    kept = {index_key(n) for n in consistency.kept_snapshots(pointer, manifest.skipped)}
    gone = [key for key in there if key not in kept]
    named: set[str] = set()
    for key in (NEWEST, *(key for key in there if key in kept)):
        with suppress(MissingObject):
            named |= run_keys(store.read(key))
    runs = [key for key in store.keys(RUNS) if key not in named]
    if gone:
        store.remove(*gone, *runs)
    return len(gone) + len(runs) if gone else 0
