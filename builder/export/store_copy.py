"""Copies a store to another place, in the state of one value of its pointer.

The pointer is written last, by a conditional write. So the target holds a complete store or none at
any time. Numbers, positions and instants stay the same: harvests can continue at the copy.
"""

import hashlib
import io
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from builder.export.carriages import open_carriages
from builder.filesets.strategies import replicate as filesets
from builder.iceberg.index import INDEX
from builder.iceberg.update import refresh_tables
from builder.obi import key as obi
from builder.obi.publishes import PUBLISHES
from builder.runtime import Advance, Progress, Runtime
from builder.snapshot import consistency, recovery, views
from builder.snapshot.expiry import complete, retire, snapshots
from builder.store.durable import read_chunks
from builder.store.identity import read_identity, revise_identity
from functions.snapshot import instant, layout
from functions.snapshot.errors import (
    Conflict,
    DamagedStore,
    MissingObject,
    NothingPublished,
    StoreError,
)
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import Pointer, spans
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_TRIES = 8
_PREFIXES = (layout.RECORDS, layout.SNAPSHOTS)
_SPOOLED = 32 << 20  # bytes of an object that are kept in memory
_SETTLING = timedelta(seconds=10)
"""Time until a publish that has not confirmed its commit counts as crashed."""
_POLL = 0.5  # seconds


class ForeignTarget(StoreError):
    """The target holds something other than an earlier state of the source."""


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
                raise DamagedStore(f"{error}; run `sheaf verify` to see all damage") from error
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
        newest = pointer.newest()
        if newest is None:
            raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")
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
        kept = consistency.kept_snapshots(self._pointer, self._newest.skipped)
        self._numbers = [newest.snapshot] if newest_only else kept
        self._expected = set(kept)
        self._objects = self._bytes = 0

    def __call__(self, progress: Progress) -> CopyResult:
        """Copy. Raises MissingObject if the source was expired, Conflict if the target changed."""
        earlier, tag = complete(self._target, self._runtime)
        if tag is not None:
            recovery.check(self._target, earlier, tag)
        kept = self._earlier(earlier)
        carriages = open_carriages(self._source, self._target, self._newest)
        manifests = [self._catalogue.manifest(number) for number in self._numbers]
        leaves = {r.key for m in manifests for some in m.tables.values() for r in some}
        files = {
            file.key: file.bytes
            for manifest in manifests
            for table in manifest.tables
            for file in self._catalogue.files(manifest, table)
        }
        there = {e.key: e.bytes for p in _PREFIXES for e in self._target.entries(p)}
        wanted = {key: size for key, size in files.items() if there.get(key) != size}
        with progress(sum(wanted.values()) + sum(c.bytes for c in carriages)) as advance:
            for carriage in carriages:
                carriage(advance)
                self._objects += carriage.objects
                self._bytes += carriage.bytes
            for key in sorted(wanted):
                self._put(key, key in there, advance)
        for key in sorted(leaves):
            self._put_leaf(key, there.get(key))
        for manifest in manifests:
            self._put_views(manifest)
            self._put_manifest(manifest)
        final = self._move_pointer(kept)
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
        for key in marks:
            self._create(key)
        if self._source.tag(INDEX):
            refresh_tables(self._target, self._runtime)  # their paths name the target
        if identity:
            objects = identity.parts - {layout.SNAPSHOTS}
            parts = [key for key in objects if self._target.size(key) is not None]
            parts.append(layout.SNAPSHOTS)
            revise_identity(self._target, final.store, parts=parts, signers=identity.signers)
        # An interrupted export may have left unnamed objects that the source has purged.
        retired = retire(self._target, self._runtime, kept - self._expected).retired
        count = len(files) + len(leaves) + 2 * len(self._numbers) + len(marks)
        count += sum(c.objects + c.there for c in carriages)
        return CopyResult(
            tuple(sorted(kept.union(self._numbers) - set(retired))),
            self._objects,
            self._bytes,
            count - self._objects,
            retired,
        )

    def _earlier(self, pointer: Pointer) -> set[int]:
        """Return the snapshots that the target keeps. Raises ForeignTarget if not the source's."""
        newest, address = pointer.newest(), self._target.address
        if newest is None:
            for key in self._target.keys(""):
                if not key.startswith(
                    (*_PREFIXES, *filesets.PREFIXES, obi.ROOT, layout.POINTER, layout.IDENTITY)
                ):
                    raise ForeignTarget(f"{address} has {key}: choose an empty place")
            if recovery.has_published(self._target):
                raise ForeignTarget(
                    f"{address} has a store without its pointer: choose an empty place, or "
                    "restore the pointer (see docs/operations/operate.md)"
                )
            return set()
        manifest = Catalogue(self._target).manifest(newest.snapshot)
        if newest.snapshot > self._newest.snapshot:
            raise ForeignTarget(
                f"{address} has snapshot {newest.snapshot}, but the store only "
                f"{self._newest.snapshot}: the newer snapshots would be lost"
            )
        if not self._follows(manifest):
            raise ForeignTarget(f"{address} has another store: choose an empty place")
        there = set(snapshots(self._target)) - set(manifest.skipped)
        return {n for n in there if n <= newest.snapshot and not pointer.is_retired(n)}

    def _follows(self, earlier: Manifest) -> bool:
        """Return whether the source is the same store, in the same state or a later one."""
        if earlier.snapshot == self._newest.snapshot:
            return earlier == self._newest
        skipped = earlier.snapshot in self._newest.skipped
        return not skipped and not list(consistency.succession(earlier, self._newest))

    def _move_pointer(self, kept: set[int]) -> Pointer:
        """Return the target's pointer; snapshots that it does not hold count as retired."""
        holds = kept.union(self._numbers, self._newest.skipped)
        absent = [n for n in range(1, self._newest.snapshot) if n not in holds]
        return replace(self._pointer, settled=True, expiry=None, retired=spans(absent))

    def _put(self, key: str, replaced: bool, advance: Advance) -> None:
        digest, size = hashlib.sha256(), 0
        with tempfile.SpooledTemporaryFile(_SPOOLED) as spool:
            with self._source.open(key) as source:
                for chunk in read_chunks(source, key):
                    digest.update(chunk)
                    spool.write(chunk)
                    size += len(chunk)
                    advance(len(chunk))
            if digest.hexdigest()[:32] != layout.digest_of(key):
                raise DamagedStore(f"{key} of {self._source.address} does not match its name")
            if replaced:
                self._target.remove(key)  # its size differs, so it is damaged at the target
            spool.seek(0)
            self._target.put(key, spool)  # type: ignore[arg-type]
        self._objects += 1
        self._bytes += size

    def _put_leaf(self, key: str, size: int | None) -> None:
        data = self._source.read(key)
        if not consistency.is_named_by(data, key):
            raise DamagedStore(f"{key} of {self._source.address} does not match its name")
        if size != len(data):
            if size is not None:
                self._target.remove(key)
            self._target.put(key, io.BytesIO(data))
            self._objects += 1
            self._bytes += len(data)

    def _put_manifest(self, manifest: Manifest) -> None:
        for key in sorted({manifest.key, layout.manifest_key(manifest.snapshot)}):
            self._create(key)  # the first one comes last: it shows that the snapshot exists

    def _put_views(self, manifest: Manifest) -> None:
        key = manifest.views_key
        expected = partial(views.store_views, self._catalogue, manifest)
        data = self._source.read(key)
        if problem := views.fault(manifest, data, expected):
            raise DamagedStore(f"{key}: {problem}; `sheaf verify --repair` rewrites it")
        tag = self._target.tag(key)
        if tag is None:
            self._create(key)
        elif views.fault(manifest, self._target.read(key), expected):
            self._put_manifest(manifest)  # fails in another store's place
            self._target.replace(key, data, tag)
            self._objects += 1
            self._bytes += len(data)

    def _create(self, key: str) -> None:
        data = self._source.read(key)
        try:
            self._target.create(key, data)
        except Conflict:
            if self._target.read(key) != data:
                raise ForeignTarget(
                    f"{self._target.address} has another {key}: choose an empty place"
                ) from None
        else:
            self._objects += 1
            self._bytes += len(data)
