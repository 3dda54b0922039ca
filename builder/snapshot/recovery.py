"""Recovery: the identity of a store, and the correct pointer to its newest snapshot.

Three objects show which snapshot is the newest: the pointer, the witness that a publish writes
after it, and `settled` beside a snapshot. A pointer to an earlier snapshot must not be used:
later snapshots would be overwritten. Every command first calls `current` or `check`.

The witness also holds the store's id, generated once. Copies of the store keep it. A copy that is
published to gets an id of its own: resumption tokens of its source belong to another history.
"""

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from builder.store.findings import Finding
from builder.store.identity import BEGUN, find_trace, read_identity, revise_identity
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, DamagedStore, MissingObject
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import REMEDY, Pointer, PointerEntry, Witness, contradiction, spans
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_CERTAIN = frozenset(
    {"pointer-missing", "pointer-damaged", "pointer-behind", "witness-missing", "witness-damaged"}
)
"""Faults for which the rest of the store shows the correct content."""
_TRIES = 8
_NOTHING = Pointer()


def current(store: Writer) -> tuple[Pointer, str | None]:
    """Return the pointer and its tag; check that no later snapshot was published.

    Raises DamagedStore, or Conflict if other processes moved the pointer every time.
    """
    for _ in range(_TRIES):
        tag, pointer = store.tag(layout.POINTER), Catalogue(store).pointer()
        try:
            check(store, pointer, tag)
        except Conflict:
            continue
        return pointer, tag
    raise Conflict(f"the pointer changed {_TRIES} times; run the command again")


def check(store: Writer, pointer: Pointer, tag: str | None) -> None:
    """Check that no snapshot was published that the pointer does not know.

    Raises DamagedStore, or Conflict if the pointer's tag is no longer `tag`.
    """
    finding = behind(store, pointer, written=tag is not None)
    if finding is None:
        return
    if store.tag(layout.POINTER) != tag:
        raise Conflict("another process published a snapshot")
    remedy = finding.remedy if finding.code == "snapshots-lost" else REMEDY
    raise DamagedStore(f"{store.address}: {finding.object}: {finding.problem}: {remedy}")


def behind(store: Writer, pointer: Pointer, *, written: bool) -> Finding | None:
    """Return a finding if the store has snapshots that the pointer does not know.

    `written` is True if the pointer exists. A first publish writes an empty pointer before anything
    else, so a store without a pointer must have no snapshot.
    """
    there = layout.numbers_in(store.folders(layout.SNAPSHOTS))
    if not written and there:
        problem = f"there are snapshots up to {max(there)}, but no pointer"
        if not any(store.tag(layout.settled_key(number)) is not None for number in there):
            problem += " (if a copy to this place did not finish, run it again)"
        return Finding("pointer-missing", layout.POINTER, problem)
    try:
        witness = Catalogue(store).witness()
    except DamagedStore as error:
        problem = str(error).partition(": ")[2].rpartition("; ")[0]
        return Finding("witness-damaged", layout.WITNESS, f"it cannot be read: {problem}")
    fault = contradiction(pointer, witness)
    if fault is not None:
        return Finding(fault.code, fault.object, fault.problem)
    newest = pointer.newest()
    if newest is None and (lost := _find_loss(store, written=written)):
        return lost
    last = newest.snapshot if newest else 0
    later = [n for n in there if n > last and store.tag(layout.settled_key(n)) is not None]
    if later:
        names = f"names {last} as the newest" if last else "names no snapshot"
        problem = f"it {names}, but {max(later)} was published: an old copy was restored"
        return Finding("pointer-behind", layout.POINTER, problem)
    return None


def _find_loss(store: Writer, *, written: bool) -> Finding | None:
    """Return a finding if a store without snapshots had one, by all that lies beside them."""
    try:
        identity = read_identity(store)
    except DamagedStore as error:
        return Finding("identity-damaged", layout.IDENTITY, str(error))
    if identity is not None and identity.is_published:
        problem = f"{layout.IDENTITY} says that a snapshot was published, but there is none"
    elif identity is not None and layout.POINTER in identity.parts and not written:
        problem = f"it is missing, though {layout.IDENTITY} says that it was written"
    elif identity is None and not written and (trace := find_trace(store)):
        problem = f"it is missing, and so are all snapshots, but a publish wrote {trace}"
    else:
        return None
    return Finding("snapshots-lost", layout.POINTER, problem)


def rebuilt(store: Writer, pointer: Pointer = _NOTHING) -> Pointer | None:
    """Return a pointer to the newest existing snapshot; None if there is no snapshot.

    `pointer` is the existing one, or empty if it cannot be read. Its statements on snapshots up to
    its newest one are kept. A snapshot without evidence that it took effect is named only if there
    is no other, and then as unsettled. Earlier snapshots without such evidence count as retired.
    """
    there, effective = list_snapshots(store)
    witness = find_witness(store)
    if witness is not None and witness.newest is not None:
        effective.add(witness.number)
    newest = pointer.newest()
    if newest is not None:
        effective |= {n for n in there if n <= newest.snapshot and not pointer.is_retired(n)}
    effective &= there
    if not there:
        return None
    number = max(effective or there)
    manifest = Catalogue(store).manifest(number)
    gone = set(range(1, number)).difference(effective, manifest.skipped)
    entry = PointerEntry(number, manifest.effective)
    name = manifest.store or (witness.store if witness else "")
    return Pointer(
        (entry,), bool(effective), retired=spans(gone), copied=pointer.copied, store=name
    )


def diagnose(store: Writer, pointer: Pointer, now: datetime, *, written: bool) -> Finding | None:
    """Return a finding on pointer and witness, with the content to write as a repair."""
    finding = behind(store, pointer, written=written) or _compare_copy(store)
    if finding is None:
        newest, witness = pointer.newest(), Catalogue(store).witness()
        if newest is None or newest.effective > now or witness is None or witness.covers(pointer):
            return None
        problem = f"it names {witness.number}, but the pointer names {newest.snapshot}"
        return Finding("witness-behind", layout.WITNESS, problem)
    if finding.object == layout.WITNESS:
        return replace(finding, problem=finding.problem + advise_witness(store, pointer))
    witness = find_witness(store) if finding.code == "pointer-behind" else None
    if witness is not None and witness.number and _manifest(store, witness.number) is None:
        problem = f"it names snapshot {witness.number}, which does not exist"
        return Finding("witness-ahead", layout.WITNESS, problem + advise_witness(store, pointer))
    return replace(finding, problem=finding.problem + advise(store, pointer))


def advise(store: Writer, pointer: Pointer) -> str:
    """Return text on the correct content of the pointer; empty if there is no snapshot."""
    right = _right_pointer(store, pointer)
    return _remedy(layout.POINTER, right.to_json()) if right is not None else ""


def advise_witness(store: Writer, pointer: Pointer) -> str:
    """Return text on the correct content of the witness, given a correct pointer."""
    right = _right_witness(store, pointer)
    if right is None:
        return f"; remove {layout.WITNESS}, and the next publish writes it"
    return _remedy(layout.WITNESS, right.to_json())


def find_repair(store: Writer) -> tuple[Finding, bytes] | None:
    """Return the fault of the pointer or the witness, and its correct content.

    Returns None if there is no fault, or if the store does not show the correct content for
    certain.
    """
    try:
        pointer = Catalogue(store).pointer()
        written = store.tag(layout.POINTER) is not None
        finding = behind(store, pointer, written=written) or _compare_copy(store)
    except DamagedStore as error:
        pointer, finding = Pointer(), Finding("pointer-damaged", layout.POINTER, str(error))
    if finding is None or finding.code not in _CERTAIN:
        return None
    if finding.object == layout.WITNESS:
        witness = _right_witness(store, pointer)
        return (finding, witness.to_json()) if witness else None
    right, witness = _right_pointer(store, pointer), find_witness(store)
    newest = right.newest() if right else None
    if right is None or newest is None or not right.settled:
        return None
    # The witness may name a snapshot that is gone: then no pointer is correct.
    return (finding, right.to_json()) if not witness or witness.number <= newest.snapshot else None


def _compare_copy(store: Writer) -> Finding | None:
    """Return a finding if the manifest in the witness is another than that beside it."""
    witness = find_witness(store)
    # A manifest that is damaged or gone is a finding of its own, and its copy may be all there is.
    if witness and witness.manifest and _manifest(store, witness.number) is not None:
        key = layout.manifest_key(witness.number)
        if store.read(key) != witness.manifest.encode():
            return Finding("witness-damaged", layout.WITNESS, f"its copy of {key} differs from it")
    return None


def _right_pointer(store: Writer, pointer: Pointer) -> Pointer | None:
    try:
        return rebuilt(store, pointer)
    except (MissingObject, DamagedStore):
        return None  # verify reports it when it checks the snapshot


def _right_witness(store: Writer, pointer: Pointer) -> Witness | None:
    newest = pointer.newest()
    manifest = _manifest(store, newest.snapshot) if newest else None
    name = pointer.store or (manifest.store if manifest else "")
    return Witness(name, newest) if name else None


def _remedy(key: str, data: bytes) -> str:
    return f"; according to the snapshots, {key} must be {json.dumps(json.loads(data))}"


def find_witness(store: Writer) -> Witness | None:
    """Return the witness; None if it is missing or cannot be read."""
    try:
        return Catalogue(store).witness()
    except DamagedStore:
        return None


def _manifest(store: Writer, number: int) -> Manifest | None:
    try:
        return Catalogue(store).manifest(number)
    except (MissingObject, DamagedStore):
        return None


def list_snapshots(store: Writer) -> tuple[set[int], set[int]]:
    """Return the snapshots with a manifest, and those that are known to have taken effect."""
    there, settled = set(), set()
    for key in store.keys(layout.SNAPSHOTS):
        number = layout.snapshot_of(key)
        if number is not None and key == layout.manifest_key(number):
            there.add(number)
        if number is not None and key == layout.settled_key(number):
            settled.add(number)
    return there, settled


def begin_identity(store: Writer, draw: Callable[[], str]) -> bool:
    """Give an empty store an id from `draw`; return False if it already had an id or snapshots.

    A store with snapshots is not changed: its next publish gives it an id.
    """
    if (
        any(store.tag(key) is not None for key in (layout.POINTER, layout.IDENTITY))
        or layout.numbers_in(store.folders(layout.SNAPSHOTS))
        or find_trace(store)
    ):
        return False
    pointer = Pointer(store=identify_store(store, draw, Pointer()))
    try:
        store.replace(layout.POINTER, pointer.to_json(), None)
    except Conflict:
        return False
    # Last: from now on, a missing pointer was lost.
    revise_identity(store, pointer.store, parts=BEGUN)
    return True


def identify_store(store: Writer, draw: Callable[[], str], pointer: Pointer) -> str:
    """Return the id for the next snapshot, and write the witness before any pointer has the id.

    The snapshot is built on `pointer`.
    """
    if pointer.store and pointer.copied is None:
        return pointer.store
    name = prepare_identity(store, pointer.store or draw(), pointer)
    return name if pointer.copied is None else draw()


def prepare_identity(store: Writer, name: str, pointer: Pointer) -> str:
    """Return the id in the witness. If there is no witness, write one with the id `name`."""
    catalogue = Catalogue(store)
    if catalogue.witness() is None:
        with contextlib.suppress(Conflict):  # if two processes create it, one wins
            store.create(layout.WITNESS, Witness(name, pointer.newest()).to_json())
    witness = catalogue.witness()
    return witness.store if witness else name


def stamp_identity(manifest: Manifest, before: Manifest, store: str) -> Manifest:
    """Return the manifest with the store's id; if the id changed, add the old one to `former`."""
    former = before.former
    if before.snapshot and before.store != store:
        former = (*former, (before.snapshot, before.store))
    return replace(manifest, store=store, former=former, identified=True)


def write_witness(store: Writer, pointer: Pointer) -> None:
    """Make the witness name the pointer's newest snapshot, unless it names a newer one.

    `pointer` has been written already: the witness must never be ahead of it.
    """
    while True:
        tag, witness = store.tag(layout.WITNESS), Catalogue(store).witness()
        if witness is None and not pointer.store:
            return
        if witness is not None and witness.covers(pointer):
            return
        name = pointer.store or (witness.store if witness else "")
        newest, copy = pointer.newest(), ""
        with contextlib.suppress(MissingObject):
            copy = store.read(layout.manifest_key(newest.snapshot)).decode() if newest else ""
        try:
            store.replace(layout.WITNESS, Witness(name, newest, copy).to_json(), tag)
        except Conflict:
            continue
        return
