"""Inventory of a store: the objects that its kept snapshots name, and those that exist.

Each manifest holds all sequences up to its own, so at most two manifests are in memory at a time.
Of a snapshot, only the keys of its leaves are kept. A leaf or a data file is kept once, even if
several snapshots share it.
"""

import hashlib
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from builder.intake import intake
from builder.snapshot import consistency, recovery, views
from builder.snapshot.audit import SnapshotContents
from builder.snapshot.commit import instant_line
from builder.snapshot.expiry import snapshots
from builder.snapshot.orphans import ORPHAN_AGE
from builder.store import workdir
from builder.store.findings import DAMAGE, Finding
from builder.store.web_store import WebStore
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.manifest import DataFile, Leaf, LeafReference, Manifest
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Writer


@dataclass(frozen=True, slots=True)
class _Named:
    """A snapshot's manifest digest and the keys of its leaves; see SnapshotContents."""

    digest: bytes
    leaves: tuple[str, ...]
    whole: bool


@dataclass
class Inventory:
    """The contents of a store as read, beginning with its pointer; checks add to `findings`."""

    store: Writer
    pointer: Pointer
    numbers: tuple[int, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    identified: bool = False
    """Whether the newest snapshot that can be read was published with an identity."""
    files: dict[str, DataFile] = field(default_factory=dict)
    """Each data file once, by key."""
    _named: dict[int, _Named] = field(default_factory=dict)
    _leaves: dict[str, tuple[str, LeafReference, Leaf | None]] = field(default_factory=dict)

    @staticmethod
    def take(store: Writer, now: datetime, *, newest_only: bool = False) -> "Inventory":
        """Read pointer, manifests, views and leaves, and check them against each other.

        Raises NewerSchema, and StoreError if the store cannot be read.
        """
        inventory = Inventory(store, Pointer())
        inventory.pointer = inventory._read_pointer(now)
        inventory.numbers = inventory._snapshot_numbers(newest_only)
        before: Manifest | None = None
        for number in inventory.numbers:
            manifest = inventory._add(number)
            if before is not None and manifest is not None:
                inventory.findings += consistency.succession(before, manifest)
            before = manifest or before
        inventory.identified = before is not None and before.identified
        return inventory

    def sound(self) -> list[int]:
        """Return the numbers of the snapshots whose manifest is sound in itself, ascending."""
        return list(self._named)

    def read_snapshot(self, number: int) -> SnapshotContents:
        """Read one of the sound snapshots again.

        Raises MissingObject if it was removed meanwhile, DamagedStore if it was changed.
        """
        data, manifest = self._parse(number)
        if hashlib.sha256(data).digest() != self._named[number].digest:
            raise DamagedStore("it was changed during the check")
        return self._describe(manifest)

    def _parse(self, number: int) -> tuple[bytes, Manifest]:
        data = self.store.read(layout.manifest_key(number))
        return data, Manifest.from_json(data)

    @property
    def complete(self) -> bool:
        """True if all objects named by kept snapshots are known, and no expiry is in progress."""
        whole = [named for named in self._named.values() if named.whole]
        return self.pointer.expiry is None and len(whole) == len(self.numbers)

    def names(self, numbers: Collection[int] | None = None) -> set[str]:
        """Return the keys that those snapshots name, or all kept snapshots if `numbers` is None."""
        chosen = self.numbers if numbers is None else numbers
        keys = {key for number in chosen for key in layout.snapshot_keys(number)}
        leaves = {key for n in chosen if n in self._named for key in self._named[n].leaves}
        for _, _, leaf in map(self._leaves.__getitem__, leaves):
            keys.update(file.key for file in (leaf.files if leaf else ()))
        return keys | leaves

    def _read_pointer(self, now: datetime) -> Pointer:
        written = True
        try:
            pointer = Pointer.from_json(self.store.read(layout.POINTER))
        except MissingObject:
            pointer, written = Pointer(), False
        except DamagedStore as error:
            advice = recovery.advise(self.store, Pointer())
            self._find("pointer-damaged", layout.POINTER, f"{error}{advice}")
            return Pointer()
        finding = recovery.diagnose(self.store, pointer, now, written=written)
        if finding is not None:
            self.findings.append(finding)
        self.findings += consistency.of_pointer(pointer, now)
        return pointer

    def _snapshot_numbers(self, newest_only: bool) -> tuple[int, ...]:
        there, newest = snapshots(self.store), self.pointer.newest()
        if newest is None:
            # Leftovers of an interrupted first publish are no snapshot. If the pointer is damaged
            # or missing, all manifests are read.
            there = there if any(f.kind == DAMAGE for f in self.findings) else []
            return tuple(there[-1:] if newest_only else there)
        if newest_only:
            return (newest.snapshot,)
        try:
            manifest = self._parse(newest.snapshot)[1]
        except (MissingObject, DamagedStore):  # reported when the snapshot itself is read
            named = {entry.snapshot for entry in self.pointer.entries}
            numbers = named.union(number for number in there if number <= newest.snapshot)
            return tuple(n for n in sorted(numbers) if not self.pointer.is_retired(n))
        if self.pointer.copied is not None and there[-1] > newest.snapshot:
            problem = f"it names {newest.snapshot} as the newest, but {there[-1]} exists"
            self._find("export-unfinished", layout.POINTER, problem)
        return tuple(consistency.kept_snapshots(self.pointer, manifest.skipped))

    def _add(self, number: int) -> Manifest | None:
        """Read and check a snapshot; return its manifest if that is sound in itself."""
        key = layout.manifest_key(number)
        try:
            data, manifest = self._parse(number)
        except MissingObject:
            self._find("manifest-missing", key, f"snapshot {number} is in use, but has no manifest")
            return None
        except DamagedStore as error:
            self._find("manifest-damaged", key, str(error))
            return None
        wrong = list(consistency.of_manifest(number, manifest, self.pointer.entries))
        self.findings += wrong
        if wrong:
            return None  # the keys that it names cannot be trusted
        contents = self._describe(manifest)
        for table, leaves in contents.leaves.items():
            self.findings += consistency.of_table(number, table, leaves)
        keys = (
            reference.key for references in manifest.tables.values() for reference in references
        )
        digest = hashlib.sha256(data).digest()
        self._named[number] = _Named(digest, tuple(map(sys.intern, keys)), contents.whole)
        self._check_views(contents)
        self._check_settled(manifest)
        return manifest

    def _describe(self, manifest: Manifest) -> SnapshotContents:
        """Return the snapshot with its leaves; leaves that are already known are not read again."""
        leaves: dict[str, tuple[tuple[LeafReference, Leaf], ...]] = {}
        whole = True
        for table, references in manifest.tables.items():
            read = [(reference, self._leaf(table, reference)) for reference in references]
            leaves[table] = tuple((r, leaf) for r, leaf in read if leaf is not None)
            whole = whole and len(leaves[table]) == len(read)
        return SnapshotContents(manifest, leaves, whole)

    def _leaf(self, table: str, reference: LeafReference) -> Leaf | None:
        """Return a leaf; it is checked once for all snapshots with the same reference."""
        earlier = self._leaves.get(reference.key)
        if earlier is not None and earlier[:2] == (table, reference):
            return earlier[2]
        leaf = self._read_leaf(reference.key)
        if leaf is not None:
            self.findings += consistency.of_leaf(table, reference, leaf)
            if all(consistency.is_of(table, file) for file in leaf.files):
                # Equal descriptions of data files are shared in memory.
                for file in leaf.files:
                    if self.files.get(file.key) != file:
                        self.files[file.key] = file
                leaf = Leaf(tuple(self.files[file.key] for file in leaf.files))
            else:
                leaf = None
        self._leaves[reference.key] = (table, reference, leaf)
        return leaf

    def _read_leaf(self, key: str) -> Leaf | None:
        try:
            data = self.store.read(key)
            if consistency.is_named_by(data, key):
                return Leaf.from_json(data)
            self._find("leaf-damaged", key, "its content does not match its name")
        except MissingObject:
            self._find("leaf-missing", key, "a kept snapshot names it, but it does not exist")
        except DamagedStore as error:
            self._find("leaf-damaged", key, str(error))
        return None

    def _check_views(self, contents: SnapshotContents) -> None:
        key = contents.manifest.views_key
        try:
            data = self.store.read(key)
        except MissingObject:
            self._find("views-missing", key, "the snapshot's views are missing")
            return
        # If a leaf is missing, the views that this version of Sheaf writes cannot be computed.
        if not (contents.whole or contents.manifest.views):
            return
        if problem := views.fault(contents.manifest, data, contents.views):
            self._find("views-damaged", key, problem)

    def _check_settled(self, manifest: Manifest) -> None:
        """Check the note that the snapshot was in time; if it is lost, nobody is harmed."""
        key, expected = layout.settled_key(manifest.snapshot), instant_line(manifest.effective)
        newest = self.pointer.newest()
        try:
            if self.store.read(key) != expected:
                self._find("settled-wrong", key, f"it must be {expected.decode().strip()}")
        except MissingObject:
            # Only of the newest snapshot is it known for certain that it was in time.
            is_newest = newest is not None and newest.snapshot == manifest.snapshot
            if is_newest and self.pointer.settled and manifest.identified:
                self._find("settled-missing", key, f"it must be {expected.decode().strip()}")
        except DamagedStore as error:
            self._find("settled-wrong", key, str(error))

    def _find(self, code: str, key: str, problem: str) -> None:
        self.findings.append(Finding(code, key, problem))


def leftovers(inventory: Inventory, now: datetime, *, newest_only: bool) -> Iterator[Finding]:
    """Yield objects in the store that are not part of it, and old ones that no snapshot names.

    Old objects are not checked with `newest_only`, or if it is unknown what snapshots name.
    """
    store = inventory.store
    if isinstance(store, WebStore):
        yield Finding("unlisted", store.address, "a web address has no listing")
        return
    named = inventory.names() if inventory.complete and not newest_only else None
    for prefix in (layout.RECORDS, layout.SNAPSHOTS) if named is not None else ():
        for entry in store.entries(prefix):
            unnamed = entry.key != layout.WITNESS and entry.key not in (named or ())
            if unnamed and entry.modified <= now - ORPHAN_AGE:
                yield Finding("orphan", entry.key, "no kept snapshot names it")
    yield from _intake(store)
    begun = layout.TEMPORARY + workdir.WORK_PREFIX
    works: dict[str, int] = {}
    for entry in store.entries(layout.TEMPORARY):
        if entry.key.startswith(begun) and entry.key.count("/") > 1:
            folder = "/".join(entry.key.split("/")[:2]) + "/"
            works[folder] = works.get(folder, 0) + entry.bytes
            continue
        if entry.key.startswith(layout.TEMPORARY + workdir.KNOWN_PREFIX):
            continue  # of ReDIF files, for the next ingest
        yield Finding("temporary", entry.key, f"an unfinished upload of {entry.bytes:,} bytes")
    for folder, size in works.items():
        yield Finding("ingest-unfinished", folder, f"{size:,} bytes of an unfinished ingest")


def _intake(store: Writer) -> Iterator[Finding]:
    begun: dict[str, str] = {}
    finished = set()
    keys = set(store.keys(layout.INTAKE))
    for key in sorted(keys):
        run = layout.run_prefix(key.split("/")[1])
        begun.setdefault(run, key)
        if key in (run + layout.RUN_SUMMARY, run + layout.RUN_PUBLISHED):
            finished.add(run)
    for run in begun.keys() - finished:
        yield Finding("intake-unfinished", run, "it has no summary, so it is not published")
    try:
        named = [key for run in intake.runs(store) for key in run.keys if key not in keys]
        whole = {key for run in intake.runs(store) for key in run.keys} if named else ()
        for key in named:  # unless the run is published meanwhile
            if key in whole and store.size(key) is None:
                problem = "its run's summary names it, but it does not exist"
                yield Finding("intake-damaged", key, problem)
    except DamagedStore as error:
        yield Finding("intake-damaged", str(error).partition(" ")[0], str(error))
