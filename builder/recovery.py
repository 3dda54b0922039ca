"""Recovery: what a store tells of its pointer where that was lost, or an old copy was put back.

A publish writes down beside its snapshot that the pointer named it in time. A pointer that names
an earlier one, or none, is not one to go on from: what came later would be overwritten.
"""

from builder.finding import Finding
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, DamagedStore
from functions.snapshot.pointer import Entry, Pointer, spans
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

REMEDY = "`sheaf verify` says what to write into it"


def check(store: Writer, pointer: Pointer, tag: str | None) -> None:
    """See that nothing was published that the pointer does not know of.

    Raises DamagedStore, or Conflict if the pointer has another tag than `tag` by now.
    """
    found = behind(store, pointer, written=tag is not None)
    if found is None:
        return
    if store.tag(layout.POINTER) != tag:
        raise Conflict("somebody else published meanwhile")
    raise DamagedStore(f"{store.address}: {layout.POINTER}: {found.problem}: {REMEDY}")


def check_store(store: Writer) -> None:
    """See that the pointer that is there now knows of all that was published.

    Raises DamagedStore, or Conflict if it is another one by the end.
    """
    tag = store.tag(layout.POINTER)
    check(store, Catalogue(store).pointer(), tag)


def behind(store: Writer, pointer: Pointer, *, written: bool) -> Finding | None:
    """Return what is wrong if the store has snapshots that the pointer does not know of.

    `written` tells that there is a pointer: a first publish writes an empty one before all else, so
    without one there must be no snapshot.
    """
    there, settled = numbered(store)
    newest = pointer.newest()
    last = newest.snapshot if newest else 0
    later = [number for number in settled if number > last]
    if not written and there:
        problem = f"there are snapshots up to {max(there)}, and no pointer"
        if not settled:
            problem += " (if an export to here did not come to its end, run it again)"
        return Finding("pointer-missing", layout.POINTER, problem)
    if later:
        names = f"names {last} as the newest" if last else "names no snapshot"
        problem = f"it {names}, and {max(later)} was published, so an old copy of it was put back"
        return Finding("pointer-behind", layout.POINTER, problem)
    return None


def rebuilt(store: Writer) -> Pointer | None:
    """Return a pointer to the newest snapshot that is there; None where there is none.

    One of which nothing says that it took effect is named only where there is no other, and then
    as one that may have come too late; of earlier ones such as these count as retired.
    """
    there, settled = numbered(store)
    if not there:
        return None
    known = sorted(there & settled)
    number = known[-1] if known else max(there)
    manifest = Catalogue(store).manifest(number)
    gone = set(range(1, number)).difference(known, manifest.skipped)
    entry = Entry(number, manifest.effective)
    return Pointer((entry,), settled=bool(known), retired=spans(gone))


def numbered(store: Writer) -> tuple[set[int], set[int]]:
    """Return the snapshots that have a manifest, and those that are known to have taken effect."""
    there, settled = set(), set()
    for key in store.keys(layout.SNAPSHOTS):
        number = layout.snapshot_of(key)
        if number is not None and key == layout.manifest_key(number):
            there.add(number)
        if number is not None and key == layout.settled_key(number):
            settled.add(number)
    return there, settled
