"""Identity of a store: its id, and the witness that holds the id and the newest snapshot.

An id is generated once, by `sheaf init` or by the first publish. Copies of the store keep it. A
copy that is published to gets an id of its own: from then on, resumption tokens of its source
belong to another history.
"""

import contextlib
from collections.abc import Callable
from dataclasses import replace

from functions.snapshot import layout
from functions.snapshot.errors import Conflict
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Writer
from functions.snapshot.witness import Witness
from functions.store.catalog import Catalogue


def begin(store: Writer, draw: Callable[[], str]) -> bool:
    """Give an empty store an id from `draw`; return False if it already had an id or snapshots.

    A store with snapshots is not changed: its next publish gives it an id.
    """
    if store.tag(layout.POINTER) is not None or layout.numbers_in(store.folders(layout.SNAPSHOTS)):
        return False
    pointer = Pointer(store=identify(store, draw, Pointer()))
    try:
        store.replace(layout.POINTER, pointer.to_json(), None)
    except Conflict:
        return False
    return True


def identify(store: Writer, draw: Callable[[], str], pointer: Pointer) -> str:
    """Return the id for the next snapshot, and write the witness before any pointer has the id.

    The snapshot is built on `pointer`.
    """
    if pointer.store and pointer.copied is None:
        return pointer.store
    name = prepare(store, pointer.store or draw(), pointer)
    return name if pointer.copied is None else draw()


def prepare(store: Writer, name: str, pointer: Pointer) -> str:
    """Return the id in the witness. If there is no witness, write one with the id `name`."""
    catalogue = Catalogue(store)
    if catalogue.witness() is None:
        with contextlib.suppress(Conflict):  # if two processes create it, one wins
            store.create(layout.WITNESS, Witness(name, pointer.newest()).to_json())
    witness = catalogue.witness()
    return witness.store if witness else name


def stamp(manifest: Manifest, before: Manifest, store: str) -> Manifest:
    """Return the manifest with the store's id; if the id changed, add the old one to `former`."""
    former = before.former
    if before.snapshot and before.store != store:
        former = (*former, (before.snapshot, before.store))
    return replace(manifest, store=store, former=former)


def attest(store: Writer, pointer: Pointer) -> None:
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
        try:
            store.replace(layout.WITNESS, Witness(name, pointer.newest()).to_json(), tag)
        except Conflict:
            continue
        return
