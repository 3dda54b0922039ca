"""Checks of the store's identity: what it says must be there is there."""

from collections.abc import Collection, Iterator

from builder.obi.publishes import PUBLISHES
from builder.store.findings import Finding
from builder.store.identity import read_identity
from builder.store.web_store import WebStore
from builder.verify.inventory import Inventory
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore
from functions.snapshot.fixity import FIXITY, read_reports
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Writer


def identity_findings(
    store: Writer, inventory: Inventory, lacking: Collection[str]
) -> Iterator[Finding]:
    """Yield what is wrong with the identity, and the parts that are gone.

    Objects in `lacking` are reported already. Raises StoreError if the store cannot be read.
    """
    pointer = inventory.pointer
    if not isinstance(store, WebStore):
        try:
            read_reports(store)
        except DamagedStore as error:
            yield Finding("fixity-damaged", FIXITY, str(error))
    if pointer.copied is not None and not pointer.store:
        return  # written by hand for a copy that is served (docs/operations/deploy.md)
    try:
        identity = read_identity(store)
    except DamagedStore as error:
        yield Finding("identity-damaged", layout.IDENTITY, str(error))
        return
    if identity is None:
        if inventory.identified:
            problem = "it is missing, though the newest snapshot was published with it"
            yield Finding("identity-missing", layout.IDENTITY, problem)
        elif not isinstance(store, WebStore) and pointer == Pointer() and not lacking:
            for key in store.keys(PUBLISHES):
                problem = f"it is missing, and so are all snapshots, but a publish wrote {key}"
                yield Finding("snapshots-lost", layout.POINTER, problem)
                break
        return
    for part in sorted(identity.parts.difference(lacking)):
        if isinstance(store, WebStore) and not part.startswith((layout.SNAPSHOTS, layout.POINTER)):
            continue  # a web server need not have what readers do not need
        problem = f"{layout.IDENTITY} says that it must be there, but it does not exist"
        try:
            first = next(iter(store.keys(part)), None) if part.endswith("/") else store.size(part)
            is_there = first is not None
        except DamagedStore as error:
            is_there, problem = False, str(error)
        if not is_there:
            yield Finding("part-missing", part, problem)
