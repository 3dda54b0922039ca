"""Upgrade of a store in place. It can be ended anywhere, and completes when it is repeated."""

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path

from builder.obi.conversion import find_unpacked
from builder.obi.history import history
from builder.runtime import Advance, Runtime
from builder.snapshot.draft import Draft
from builder.snapshot.template_changes import complete_records
from builder.upgrade import documents
from builder.upgrade.data_files import NOTES, FileConversion
from builder.upgrade.intake_runs import convert_runs
from builder.upgrade.obi_runs import pack_runs
from builder.upgrade.snapshots import SnapshotConversion
from functions.database import engine
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, MissingObject
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_TRIES = 8


@dataclass(frozen=True, slots=True)
class UpgradeResult:
    """What was converted: the schema before, snapshots, data files, and runs of both kinds."""

    schema: int | None
    snapshots: int
    files: int
    intake: int
    obi: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to do."""
        return self.schema is None and not (self.snapshots or self.intake or self.obi)


def upgrade(
    store: Writer,
    runtime: Runtime,
    memory: int,
    progress: Callable[[str, int | None], AbstractContextManager[Advance]],
) -> UpgradeResult:
    """Bring a store to the present schema. DuckDB takes up to `memory` megabytes.

    Raises NewerSchema, DamagedStore if an object is damaged, Conflict if other processes publish
    every time, and StoreError.
    """
    for _ in range(_TRIES):
        try:
            schema, snapshots, files = _upgrade_snapshots(store, runtime, memory)
            break
        except Conflict:
            runtime.say("an earlier Sheaf has published meanwhile; converting its snapshot too")
    else:
        raise Conflict(f"other publishes came first {_TRIES} times; stop them, and run this again")
    _upgrade_witness(store)
    runs = convert_runs(store)
    notes = list(store.keys(NOTES))
    # Of an interrupted upgrade, the packs may not have been checked.
    is_unchecked = bool(notes or find_unpacked(history(store)))
    packed = pack_runs(store, progress)[0] if is_unchecked else []
    complete_records(store)  # what it packed has changes that no record names yet
    store.remove(*notes)
    return UpgradeResult(schema, snapshots, files, runs, tuple(packed))


def _upgrade_witness(store: Writer) -> None:
    tag = store.tag(layout.WITNESS)
    if tag is None:
        return  # no release before 0.2.0 wrote one
    found = documents.parse(store.read(layout.WITNESS), layout.WITNESS)
    if documents.is_older(found):
        store.replace(layout.WITNESS, documents.convert_witness(found).to_json(), tag)


def _upgrade_snapshots(store: Writer, runtime: Runtime, memory: int) -> tuple[int | None, int, int]:
    """Convert all kept snapshots, then move the pointer to the present schema."""
    tag = store.tag(layout.POINTER)
    try:
        found = documents.parse(store.read(layout.POINTER), layout.POINTER)
    except MissingObject:
        return None, 0, 0  # nothing was published yet
    pointer = documents.convert_pointer(found)
    if not documents.is_older(found):
        return None, 0, 0
    with (
        tempfile.TemporaryDirectory(prefix="sheaf-upgrade-") as scratch,
        closing(
            engine.connect(threads=runtime.threads, memory_megabytes=memory, scratch=Path(scratch))
        ) as connection,
    ):
        threads = runtime.threads
        draft = Draft(store, connection, Path(scratch), Catalogue(store), {}, threads=threads)
        files = FileConversion(store, connection, draft)
        snapshots = SnapshotConversion(store, draft, files, runtime).convert(pointer)
    store.replace(layout.POINTER, pointer.to_json(), tag)
    return found["schema"], snapshots, files.written
