"""The shape of an output: what follows a snapshot, how it is checked, retired and copied."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from builder.runtime import Runtime
from builder.store.copier import ObjectCopier
from builder.store.findings import Finding
from functions.config.configuration import Configuration
from functions.database import engine
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Writer


@dataclass(frozen=True, slots=True)
class OutputUpdate:
    """What an output does after each change, as a configuration wants it.

    `run` brings it to the newest snapshot; it raises StoreError, and completes what an earlier one
    left undone. From then on there must be the `objects`, and there need not be the `ended` ones,
    by the store's identity, which also names the `signers`.
    """

    run: Callable[[Writer, Runtime], None]
    objects: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    signers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputAudit:
    """A check of a store: what the outputs are compared with, and how much is read.

    `is_read` tells by key whether an object's bytes are read. Without `listed`, the store cannot be
    listed, or only the newest snapshot is checked. Rows are compared with `rows`, in a database
    that `open_database` opens with a folder. `keys` and `checkpoint` are what a person trusts:
    verifier keys, and an earlier log; None if nothing is named.
    """

    store: Writer
    pointer: Pointer
    now: datetime
    is_read: Callable[[str], bool]
    listed: bool
    rows: bool
    open_database: Callable[[], AbstractContextManager[tuple[engine.Connection, Path]]]
    keys: Sequence[str] | None = None
    checkpoint: str | None = None


class Output(Protocol):
    """An output. A module with these names is one."""

    copied: tuple[str, ...]
    """Prefixes of the objects that a copy of the store gets; the others follow from those."""

    def open(self, configuration: Configuration) -> OutputUpdate:
        """Check the configuration, before anything is published, and return the update.

        Raises ConfigurationError, UsageError, and StoreError if a service does not answer.
        """
        ...

    def retire(self, store: Writer, runtime: Runtime, *, anew: bool) -> int:
        """Remove what no kept snapshot needs; return the number of objects. Raises StoreError.

        With `anew`, that is all that is not named, as after a purge. Otherwise, young objects stay
        for readers and for updates in progress.
        """
        ...

    def verify(self, audit: OutputAudit) -> Sequence[Finding]:
        """Return what is wrong with it. Raises StoreError if the store cannot be read."""
        ...

    def check_copy(self, source: Writer, target: Writer) -> None:
        """Raise StoreError if a copy would destroy what the target has."""
        ...

    def copy(
        self, source: Writer, copier: ObjectCopier, runtime: Runtime, snapshots: Sequence[int]
    ) -> None:
        """Bring the output of the copier's target to that of the source, after its pointer.

        `snapshots` are those that the target keeps. Raises as the copier does.
        """
        ...
