"""What a check of a store gives to kinds and outputs: the store, its newest snapshot, limits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from builder.snapshot import views
from functions.snapshot.manifest import DataFile, Leaf, LeafReference, Manifest
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue


@dataclass(frozen=True, slots=True)
class SnapshotContents:
    """A kept snapshot: its manifest and, by table, its leaves; `whole` if no leaf is missing."""

    manifest: Manifest
    leaves: Mapping[str, tuple[tuple[LeafReference, Leaf], ...]]
    whole: bool

    def files(self, *tables: str) -> Iterator[DataFile]:
        """Yield the data files of the tables; of all tables if none is given."""
        for table in tables or self.leaves:
            for _, leaf in self.leaves.get(table, ()):
                yield from leaf.files

    def views(self) -> str:
        """Return the snapshot's views as this version of Sheaf writes them."""
        return views.naming(self.manifest, lambda table: (f.key for f in self.files(table)))


@dataclass(frozen=True, slots=True)
class StoreAudit:
    """A check of a store: what its members are compared with, and how much is read.

    `is_read` tells by key whether an object's bytes are read. Without `listed`, the store cannot be
    listed, or only the newest snapshot is checked. Rows are compared with `rows`, in a database
    that `open_database` opens with a folder. `newest` is the number of the newest snapshot whose
    manifest is sound, if there is one; `read_snapshot` reads it. That raises MissingObject if it
    was removed meanwhile, and DamagedStore. `keys` and `checkpoint` are what a person trusts:
    verifier keys, and an earlier log; None if nothing is named.
    """

    store: Writer
    pointer: Pointer
    now: datetime
    is_read: Callable[[str], bool]
    listed: bool
    rows: bool
    open_database: Callable[[], AbstractContextManager[tuple[engine.Connection, Path]]]
    newest: int | None
    read_snapshot: Callable[[int], SnapshotContents]
    keys: Sequence[str] | None = None
    checkpoint: str | None = None

    @property
    def catalogue(self) -> Catalogue:
        """The snapshots of the store."""
        return Catalogue(self.store)
