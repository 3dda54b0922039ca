"""Repair: writes damaged objects again if other objects of the store determine their content.

The manifest and its leaves determine views.sql exactly. Pointer and witness follow from each other
and from the snapshots, unless one of them names a missing snapshot.
"""

from builder.snapshot import recovery
from builder.store.findings import Finding
from builder.verify.inventory import Inventory
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_REPAIRED = frozenset({"views-missing", "views-damaged"})


def repair_pointer(store: Writer) -> list[Finding]:
    """Rewrite a pointer or a witness that contradicts the store; return a note for each.

    Raises Conflict if another process publishes meanwhile, and StoreError.
    """
    notes: list[Finding] = []
    for _ in layout.POINTER, layout.WITNESS:  # a lost witness is found once the pointer is right
        tags = {key: store.tag(key) for key in (layout.POINTER, layout.WITNESS)}
        repair = recovery.find_repair(store)
        if repair is None:
            break
        finding, data = repair
        store.replace(finding.object, data, tags[finding.object])
        code = f"{finding.code.partition('-')[0]}-repaired"
        notes.append(Finding(code, finding.object, f"{finding.problem}; it was rewritten"))
    return notes


def repair(store: Writer, inventory: Inventory) -> None:
    """Rewrite damaged views; the finding on each repaired object becomes a note.

    Views do not change if the manifest is damaged or lacks a leaf. Raises StoreError.
    """
    inventory.findings = [
        _repair_views(store, inventory, finding) if finding.code in _REPAIRED else finding
        for finding in inventory.findings
    ]


def _repair_views(store: Writer, inventory: Inventory, finding: Finding) -> Finding:
    key = finding.object
    number = layout.snapshot_of(key)
    assert number is not None
    try:
        held = inventory.read_snapshot(number)
        if not held.whole or Catalogue(store).pointer().is_retired(number):
            return finding
    except (DamagedStore, MissingObject):
        return finding  # another finding reports it
    store.replace(key, held.views().encode(), store.tag(key))
    return Finding("views-repaired", key, f"{finding.problem}; it was rewritten")
