"""Loss: a store that holds snapshots and has no pointer that names one."""

from builder.expire import snapshots
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue


def check(store: Writer) -> None:
    """See that the pointer names a snapshot, or that nothing was ever published.

    Raises DamagedStore otherwise: what is there is not to be taken for a store that is new.
    """
    tag = store.tag(layout.POINTER)
    if Catalogue(store).pointer().newest() is None:
        check_unnamed(store, tag)


def check_unnamed(store: Writer, tag: str | None) -> None:
    """See that nothing was ever published, where the pointer of that tag names no snapshot.

    A first publish that died leaves a pointer that names none, and manifests of its own. Raises
    DamagedStore otherwise, but not if the pointer is another by now.
    """
    there = snapshots(store)
    catalogue = Catalogue(store)
    first = tag is not None and all(_is_first(catalogue, number) for number in there)
    if first or not there or store.tag(layout.POINTER) != tag:
        return
    raise DamagedStore(
        f"{store.address} has snapshots up to {there[-1]}, and no current.json that names one: put "
        "back a copy of it, or write it anew (docs/operating.md says how); where an export to here "
        "did not come to its end, run that again"
    )


def _is_first(catalogue: Catalogue, number: int) -> bool:
    try:
        return len(catalogue.manifest(number).sequences) < 2
    except MissingObject:
        return True  # its publish died, and the next one has removed it meanwhile
