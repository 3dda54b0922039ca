"""Copies a store to another place, in the state of one value of its pointer.

The pointer is written last, by a conditional write. So the target holds a complete store or none at
any time. Numbers, positions and instants stay the same: harvests can continue at the copy.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain

from builder.kinds import KINDS
from builder.obi import key as obi
from builder.obi.publishes import PUBLISHES
from builder.outputs import OUTPUTS
from builder.publish.copied_objects import (
    PLACES,
    RunList,
    list_files,
    list_manifests,
)
from builder.runtime import Progress, Runtime
from builder.snapshot import consistency, recovery
from builder.snapshot.expiry import complete, retire, snapshots
from builder.store.copier import (
    DAMAGED,
    ForeignTarget,
    ObjectCopier,
    TargetListing,
    read_document,
)
from builder.store.identity import read_identity, revise_identity
from builder.store.web_store import WebStore
from functions.snapshot import instant, layout
from functions.snapshot.errors import (
    Conflict,
    DamagedStore,
    MissingObject,
    StoreError,
)
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import Pointer, spans
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_TRIES = 8
_SETTLING = timedelta(seconds=10)
"""Time until a publish that has not confirmed its commit counts as crashed."""
_POLL = 0.5  # seconds


@dataclass(frozen=True, slots=True)
class CopyResult:
    """Result of a copy: its snapshots, and the number of objects and bytes copied.

    `there` counts the objects that the target already had. `retired` are snapshots retired by the
    source and therefore at the target too.
    """

    snapshots: tuple[int, ...]
    objects: int
    bytes: int
    there: int
    retired: tuple[int, ...]


def export(
    source: Writer,
    target: Writer,
    runtime: Runtime,
    *,
    newest_only: bool = False,
    progress: Progress = lambda total: nullcontext(lambda count: None),
) -> CopyResult:
    """Copy the kept snapshots of `source`, or only the newest one, to `target`.

    `progress` receives the number of bytes to copy. Other objects at the target in the places of a
    store are removed. Raises NothingPublished, ForeignTarget, Conflict if either store changed on
    every attempt, and StoreError. Raises DamagedStore if the source lacks an object or its content
    does not match its name.
    """
    if source.address == target.address:
        raise ForeignTarget(f"{target.address} is the store itself: choose another place")
    for _ in range(_TRIES):
        pointer, now = settle(source, runtime)
        try:
            return _Copy(source, target, runtime, (pointer, now), newest_only)(progress)
        except MissingObject as error:
            if Catalogue(source).pointer() == pointer:
                raise DamagedStore(f"{error}; {DAMAGED}") from error
            runtime.say("an expiry removed snapshots of the source; starting over")
        except Conflict as error:
            runtime.say(f"the target was changed during the copy ({error}); starting over")
    raise Conflict(f"the stores were changed {_TRIES} times during the copy; run the command again")


def settle(store: Writer, runtime: Runtime) -> tuple[Pointer, datetime]:
    """Return the pointer once its newest snapshot took effect in time, and its commit time.

    Raises NothingPublished, and StoreError if a publish crashed before it confirmed this.
    """
    while True:
        now = runtime.clock()
        pointer, _ = recovery.current(store)
        newest = pointer.require_newest()
        when = instant.to_text(newest.effective)
        if newest.effective > now:
            runtime.say(f"waiting for snapshot {newest.snapshot}, in effect from {when}")
            runtime.sleep((newest.effective - now).total_seconds())
        elif pointer.settled:
            return pointer, now
        elif now > newest.effective + _SETTLING:
            raise StoreError(
                f"snapshot {newest.snapshot} may have been published after its instant, {when}: "
                "run `sheaf publish`, then copy again"
            )
        else:
            runtime.sleep(_POLL)


class _Copy:
    """One attempt to copy everything that one value of the source's pointer names."""

    def __init__(
        self,
        source: Writer,
        target: Writer,
        runtime: Runtime,
        read: tuple[Pointer, datetime],
        newest_only: bool,
    ) -> None:
        self._source = source
        self._target = target
        self._runtime = runtime
        pointer, now = read
        copied = now if pointer.copied is None else pointer.copied
        stands = pointer if pointer.expiry is None else pointer.complete_expiry()
        self._pointer = replace(stands.trim(now), copied=copied)
        newest = self._pointer.entries[-1]
        if newest_only:
            self._pointer = replace(self._pointer, entries=(newest,))
        self._catalogue = Catalogue(source)
        self._newest = self._catalogue.manifest(newest.snapshot)
        numbers = consistency.kept_snapshots(self._pointer, self._newest.skipped)
        self._numbers = numbers if not newest_only else [newest.snapshot]
        self._expected = set(numbers)

    def __call__(self, progress: Progress) -> CopyResult:
        """Copy. Raises MissingObject if the source was expired, Conflict if the target changed."""
        earlier, tag = complete(self._target, self._runtime)
        if tag is not None:
            recovery.check(self._target, earlier, tag)
        manifests = [self._catalogue.manifest(number) for number in self._numbers]
        staying = self._earlier(earlier, manifests)
        for output in OUTPUTS:
            output.check_copy(self._source, self._target)
        there = TargetListing(self._target, PLACES)
        runs = self._list_runs(there)
        files = list_files(self._source, manifests)
        total = sum(o.size for stage in files for o in stage if not there.has(o.key, o.size))
        if runs is not None:
            places = chain.from_iterable(kind.copied for kind in KINDS)
            stored = chain.from_iterable(map(self._source.entries, places))
            total += runs.bytes + sum(e.bytes for e in stored if not there.has(e.key, e.bytes))
        with progress(total) as advance:
            copier = ObjectCopier(self._source, self._target, there, advance)
            if runs is not None:
                copier.there += runs.there
                copier.copy(runs.stages())
                for kind in KINDS:
                    copier.copy(kind.list_copied(self._source))
            copier.copy(files)
            copier.copy(list_manifests(self._source, manifests))
        # Snapshots that the target does not hold count as retired.
        holds = staying.union(self._numbers, self._newest.skipped)
        absent = [n for n in range(1, self._newest.snapshot) if n not in holds]
        final = replace(self._pointer, settled=True, expiry=None, retired=spans(absent))
        if final.store:
            recovery.prepare_identity(self._target, final.store, earlier)
        identity = read_identity(self._source)
        if identity:  # before the pointer names a manifest that says that there is one
            revise_identity(self._target, final.store, signers=identity.signers)
        if final != earlier:
            self._target.replace(layout.POINTER, final.to_json(), tag)
        recovery.write_witness(self._target, final)
        # Objects beside a snapshot refer to a pointer, which must therefore exist before.
        marks = [k for k in map(layout.settled_key, self._numbers) if self._source.tag(k)]
        marks += self._source.keys(PUBLISHES) if self._newest.run else ()
        copier.copy([[read_document(self._source, key)] for key in marks])
        # An interrupted export may have left unnamed objects that the source has purged.
        retired = retire(self._target, self._runtime, staying - self._expected).retired
        numbers = sorted(staying.union(self._numbers) - set(retired))
        failures = []
        for output in OUTPUTS:
            try:
                output.copy(self._source, copier, self._runtime, numbers)
            except StoreError as error:  # the others do not depend on it
                failures.append(error)
        if failures:
            raise failures[0]
        if identity:
            objects = identity.parts - {layout.SNAPSHOTS}
            parts = [key for key in objects if self._target.size(key) is not None]
            parts.append(layout.SNAPSHOTS)
            revise_identity(self._target, final.store, parts=parts, signers=identity.signers)
        return CopyResult(tuple(numbers), copier.objects, copier.bytes, copier.there, retired)

    def _list_runs(self, there: TargetListing) -> RunList | None:
        """Return the runs to copy; None if the source is at a web address and has none.

        Raises UnlistedError if there are objects beside the snapshots at a web address.
        """
        if not isinstance(self._source, WebStore):
            return RunList(self._source, self._target, there)
        if self._newest.run:
            self._source.refuse_list(obi.ROOT)
        for kind in KINDS:
            if kind.copied and any(map(self._newest.kinds().get, kind.names)):
                self._source.refuse_list(kind.copied[0])
        return None

    def _earlier(self, pointer: Pointer, manifests: Sequence[Manifest]) -> set[int]:
        """Return the snapshots that the target keeps. Raises ForeignTarget if not the source's."""
        newest, address = pointer.newest(), self._target.address
        if newest is None:
            for key in self._target.keys(""):
                if not key.startswith((*PLACES, layout.POINTER, layout.IDENTITY)):
                    raise ForeignTarget(f"{address} has {key}: choose an empty place")
            witness = recovery.find_witness(self._target)
            has_published = witness is not None and witness.newest is not None
            if has_published or recovery.list_snapshots(self._target)[1]:
                raise ForeignTarget(
                    f"{address} has a store without its pointer: choose an empty place, or "
                    "restore the pointer (see docs/operations/operate.md)"
                )
            there = set(snapshots(self._target))
            for number in (m.snapshot for m in manifests if m.snapshot in there):
                key = layout.manifest_key(number)
                if self._target.read(key) != self._source.read(key):
                    raise ForeignTarget(f"{address} has another {key}: choose an empty place")
            return set()
        manifest = Catalogue(self._target).manifest(newest.snapshot)
        if newest.snapshot > self._newest.snapshot:
            raise ForeignTarget(
                f"{address} has snapshot {newest.snapshot}, but the store only "
                f"{self._newest.snapshot}: the newer snapshots would be lost"
            )
        if newest.snapshot == self._newest.snapshot:
            is_earlier = manifest == self._newest
        else:
            is_skipped = newest.snapshot in self._newest.skipped
            is_earlier = not is_skipped and not [*consistency.succession(manifest, self._newest)]
        if not is_earlier:
            raise ForeignTarget(f"{address} has another store: choose an empty place")
        there = set(snapshots(self._target)) - set(manifest.skipped)
        return {n for n in there if n <= newest.snapshot and not pointer.is_retired(n)}
