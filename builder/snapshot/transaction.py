"""Transaction: a change of the published content becomes the next snapshot.

Data files, leaves and the manifest are written first. Then the pointer is moved by a conditional
write. If anything fails before that, the old snapshot stays in effect. Of two concurrent changes,
one wins, and the other starts over from the winner's snapshot.

What `obi/` records of a snapshot is written before the next change and after each.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from builder.runtime import Runtime
from builder.snapshot import recovery
from builder.snapshot.commit import Ready, commit, remove_leftovers, settle
from builder.snapshot.expiry import complete
from builder.snapshot.template_changes import record_changes
from builder.store.identity import revise_identity
from functions.config.configuration import Configuration, check_namespace
from functions.snapshot import layout
from functions.snapshot.errors import (
    ConfigurationError,
    Conflict,
    SheafError,
    StoreError,
)
from functions.snapshot.manifest import UNSTAMPED, Manifest
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue

if TYPE_CHECKING:  # it loads what writes tables, which a publish of nothing does without
    from builder.snapshot.draft import Draft

_TRIES = 8
_LEFTOVERS = 8  # latest interrupted publishes whose files are removed


class NothingSelectedError(SheafError):
    """No item matches the operator's selection."""


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """The result of a change; `manifest` is None if nothing changes.

    `records` are all listed ones, tombstones included. `moved` are published revisits whose
    original changed or is gone. `deleted` are lost templates, which also count as changed. `keys`
    are the objects that were written.
    """

    manifest: Manifest | None
    records: int
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    copies: int = 0
    faults: int = 0
    withdrawn: int = 0
    reinstated: int = 0
    moved: int = 0
    keys: tuple[str, ...] = ()
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Transaction:
    """The base of a change: the newest snapshot, and the pointer at that time."""

    store: Writer
    catalogue: Catalogue
    configuration: Configuration
    runtime: Runtime
    pointer: Pointer
    tag: str | None
    before: Manifest

    @staticmethod
    def of(store: Writer, configuration: Configuration, runtime: Runtime) -> "Transaction":
        """Return the newest snapshot as a base. Raises NothingPublished if there is none."""
        pointer, tag = recovery.current(store)
        before = Catalogue(store).manifest(pointer.require_newest().snapshot)
        return Transaction(store, Catalogue(store), configuration, runtime, pointer, tag, before)

    @contextmanager
    def draft(self, most: int | None = None) -> Iterator[tuple[engine.Connection, "Draft"]]:
        """Context of a database and a draft that begins as the last snapshot.

        The database takes `most` megabytes, if `publish.memory` is not less.
        """
        from builder.snapshot.draft import Draft

        memory = self.configuration["publish.memory"]
        with tempfile.TemporaryDirectory(prefix="sheaf-publish-") as scratch:
            folder = Path(scratch)
            connection = engine.connect(
                threads=self.runtime.threads,
                memory_megabytes=min(memory, most or memory),
                scratch=folder,
            )
            try:
                draft = Draft(
                    self.store,
                    connection,
                    folder,
                    self.catalogue,
                    self.before.tables,
                    threads=self.runtime.threads,
                )
                yield connection, draft
            finally:
                connection.close()

    def manifest(self, after: Manifest, draft: "Draft") -> Manifest:
        """Return the next manifest: `after` with the draft's tables and the libraries' versions."""
        return replace(after, tables=draft.tables, libraries=dict(self.runtime.libraries))


class Change(Protocol):
    """A change of the published content; it may have to be built several times."""

    def build(self, base: Transaction) -> ChangeResult:
        """Build on the newest snapshot. Raises Conflict to start over, and SheafError."""
        ...

    def clean_up(self) -> None:
        """Remove the inputs that are published now, if there are some."""
        return


def revise(
    store: Writer, configuration: Configuration, runtime: Runtime, change: Change
) -> ChangeResult:
    """Make the change the next snapshot, and return when it is in effect.

    Raises ConfigurationError if the namespace differs from the last snapshot's, Conflict if other
    publishers won every time, the errors of `change`, and StoreError.
    """
    for _ in range(_TRIES):
        try:
            return _attempt(store, configuration, runtime, change)
        except Conflict:
            runtime.say("another publish came first; starting over from its snapshot")
    raise Conflict(f"other publishes came first {_TRIES} times; run the command again")


def _attempt(
    store: Writer, configuration: Configuration, runtime: Runtime, change: Change
) -> ChangeResult:
    pointer, tag = complete(store, runtime)
    try:
        built = _apply_change(store, configuration, runtime, change, pointer, tag)
    except Conflict:
        raise
    except StoreError as error:
        # Its base may be gone: another process has published or expired since.
        if store.tag(layout.POINTER) == tag:
            raise
        raise Conflict("another process changed the store") from error
    change.clean_up()
    return built


def _apply_change(
    store: Writer,
    configuration: Configuration,
    runtime: Runtime,
    change: Change,
    pointer: Pointer,
    tag: str | None,
) -> ChangeResult:
    now = runtime.clock()
    # Without the leaves that the manifest holds: the next manifest, which may not hold them, names
    # their objects, so these must be whole.
    catalogue = Catalogue(store)
    newest = pointer.newest()
    namespace = configuration["repository.namespace"]
    nothing = Manifest(0, UNSTAMPED, namespace, (), {})
    recovery.check(store, pointer, tag)
    before = Catalogue(store).manifest(newest.snapshot) if newest else nothing
    _check(before, namespace)
    remove_leftovers(store, before.skipped[-_LEFTOVERS:])
    # A snapshot that is not in effect yet was written in time, by any process.
    late = newest is not None and not pointer.settled and newest.effective <= now
    since = newest.effective if newest and late else UNSTAMPED
    if not late:
        record_changes(store, before)  # its own process may have been killed before
    base = Transaction(store, catalogue, configuration, runtime, pointer, tag, before)
    refusal: NothingSelectedError | None = None
    try:
        built = change.build(base)
    except NothingSelectedError as error:  # an interrupted publish is completed in any case
        built, refusal = ChangeResult(None, 0), error
    instants = [s.effective for s in before.sequences]
    instants += [m.since for m in before.formats.values() if m.since is not None]
    if built.manifest is None and any(instant >= since for instant in instants):
        runtime.say(
            f"snapshot {before.snapshot} was published after its instant: it gets a new one"
        )
        built = replace(built, manifest=before)
    if built.manifest is not None:
        name = recovery.identify_store(store, runtime.identity, pointer)
        if not before.identified:
            revise_identity(store, name)  # before any manifest says that there is one
        named = recovery.stamp_identity(built.manifest, before, name)
        ready = Ready(named, since, built.keys, catalogue, before if newest else None)
        manifest = commit(store, runtime, pointer, tag, ready, configuration["publish.lead"])
        built = replace(built, manifest=manifest)
    else:
        if store.tag(layout.POINTER) != tag:
            raise Conflict("another process changed the store")
        if newest is not None:
            recovery.identify_store(store, runtime.identity, pointer)
        settle(store, pointer, tag)  # a snapshot that was late has nothing that needs a new instant
    record_changes(store, built.manifest or before)
    if refusal is not None:
        raise refusal
    return built


def _check(before: Manifest, namespace: str) -> None:
    if before.namespace != namespace:
        raise ConfigurationError(
            f"repository.namespace is {namespace}, but the store was published with "
            f"{before.namespace}: identifiers must not change, so restore that value or use "
            "another store"
        )
    if before.snapshot == 0:
        check_namespace(namespace)
