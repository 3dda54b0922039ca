"""Every kind of item: what holds of its steps, whichever kind it is."""

from pathlib import Path

import pytest

from builder.kinds import KINDS
from builder.kinds.kind import KindChange, KindCounts
from builder.publish.store_copy import export
from builder.snapshot import scratch_tables
from builder.snapshot.transaction import Transaction
from builder.store.folder import FolderStore
from functions import kinds
from tests.builder.conftest import World, capture


@pytest.mark.parametrize("effects", ["recover reinstate", "inherit scrub"])
def test_a_change_of_nothing_counts_and_writes_nothing(world: World, effects: str) -> None:
    world.add([capture(1)])
    base = Transaction.of(world.store, world.configuration(), world.runtime())
    with base.draft() as (connection, draft):
        change, tables = KindChange(base, connection, draft), dict(draft.tables)
        for kind in KINDS:
            kind.check(change)
        for step in ("gather", "settle", "revise"):
            assert [getattr(kind, step)(change) for kind in KINDS] == [KindCounts()] * len(KINDS)
        for table in ("withdrawn_items", "recovered_versions", "item_versions"):
            connection.execute(scratch_tables.ensure(table))
        for effect in effects.split():
            for kind in KINDS:
                getattr(kind, effect)(change)
        assert not any(kind.shows(connection, draft, "withdrawn_items") for kind in KINDS)
        assert (draft.tables, draft.written) == (tables, [])
        assert (change.has_rows, change.rows, change.fields) == (False, {}, {})
        assert change.provenance == {}


def test_what_lies_beside_records_is_checked_and_copied(world: World, tmp_path: Path) -> None:
    assert sorted(name for kind in KINDS for name in kind.names) == sorted(kinds.KINDS)
    world.add([capture(1)])
    copy = FolderStore(tmp_path / "copy")
    export(world.store, copy, world.runtime())
    strays = {f"{prefix}stray" for kind in KINDS for prefix in kind.copied}
    for key in strays:
        copy.create(key, b"")
    done = world.verify(copy)
    assert strays <= {finding.object for finding in done.findings}
    assert [kind.verify for kind in KINDS if kind.verify] == [type(a).begin for a in done.kinds]
    assert not any(audit.count or audit.objects or audit.read for audit in done.kinds)
