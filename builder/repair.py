"""Repair: what follows from other objects of a store is written anew where it is damaged.

Only views.sql does: the manifest and its leaves give it to the letter.
"""

from builder.finding import Finding
from builder.inventory import Inventory
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_REPAIRED = frozenset({"views-missing", "views-damaged"})


def repair(store: Writer, inventory: Inventory) -> None:
    """Write damaged views anew; what was repaired is a note in the inventory's findings then.

    Views stay as they are where the manifest is damaged or lacks a leaf. Raises StoreError.
    """
    inventory.findings = [
        _repaired(store, inventory, finding) if finding.code in _REPAIRED else finding
        for finding in inventory.findings
    ]


def _repaired(store: Writer, inventory: Inventory, finding: Finding) -> Finding:
    key = finding.object
    number = layout.snapshot_of(key)
    assert number is not None
    try:
        held = inventory.held(number)
        if not held.whole or Catalogue(store).pointer().is_retired(number):
            return finding
    except (DamagedStore, MissingObject):
        return finding  # another finding tells of it
    store.replace(key, held.views().encode(), store.tag(key))
    return Finding("views-repaired", key, f"{finding.problem}; it was written anew")
