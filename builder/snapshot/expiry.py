"""Expiry: retires unneeded snapshots and removes the objects that no kept snapshot names.

During the removal, the pointer holds an entry with the instant until which it may last. A publish
that finds this entry waits, then checks that all objects it wrote still exist. So a publish in
progress never loses objects unnoticed. An interrupted expiry is completed by the next process. Data
files are removed first, then leaves, then manifests: so the remaining objects can always be found.

Never removed: the newest snapshot, and any snapshot for REMEMBERED (a minute) after its successor's
instant, because the pointer names it. If the pointer came later than that, a reader may lose the
snapshot while it answers, and reads the pointer again. Objects of interrupted publishes and ingests
go after ORPHAN_AGE (a day), planned ingests after PLAN_AGE (14 days).
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import pairwise

from builder.runtime import Runtime
from builder.snapshot import recovery
from builder.snapshot.orphans import ORPHAN_AGE, NamedObjects, orphans, read_all, references_of
from functions.snapshot import instant, layout
from functions.snapshot.errors import Conflict, MissingObject
from functions.snapshot.manifest import LeafReference
from functions.snapshot.pointer import Expiry, Pointer
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_LEASE = timedelta(minutes=2)
_BATCH = 500  # objects removed between two checks of the clock
_TRIES = 8
_POLL = 1.0  # seconds
_MANIFESTS = 4  # kept in memory: each holds one instant for each publish

_Choice = Callable[[Catalogue, Pointer, Sequence[int]], list[int]]


@dataclass(frozen=True, slots=True)
class Expired:
    """Report of an expiry: snapshots retired, snapshots kept, and number of objects removed."""

    retired: tuple[int, ...]
    kept: tuple[int, ...]
    objects: int


def snapshots(store: Writer) -> list[int]:
    """Return the numbers of the snapshots that have a manifest, ascending."""
    there, _ = recovery.list_snapshots(store)
    return sorted(there)


def expire(
    store: Writer, runtime: Runtime, keep: int = 1, older: timedelta = timedelta(0)
) -> Expired:
    """Retire old snapshots and remove the objects that no kept snapshot names.

    Kept are the newest `keep` snapshots, those superseded less than `older` ago, and those that the
    pointer names. Raises Conflict if other changes of the store interfered every time. Also
    raises StoreError.
    """

    def choose(catalogue: Catalogue, pointer: Pointer, numbers: Sequence[int]) -> list[int]:
        now = runtime.clock()
        named = {entry.snapshot for entry in pointer.entries}
        retired = []
        for number, successor in pairwise(numbers):
            if number in named or number in numbers[-keep:]:
                continue
            if now - catalogue.manifest(successor).effective >= older:
                retired.append(number)
        return retired

    return _expire(store, runtime, choose)


def retire(store: Writer, runtime: Runtime, numbers: Collection[int]) -> Expired:
    """Retire the snapshots with these numbers, except those that the pointer names.

    Also removes all objects that no snapshot names, even new ones: a publish in progress starts
    over.
    """

    def choose(catalogue: Catalogue, pointer: Pointer, present: Sequence[int]) -> list[int]:
        named = {entry.snapshot for entry in pointer.entries}
        return [number for number in present if number in numbers and number not in named]

    return _expire(store, runtime, choose, age=timedelta(0))


def complete(store: Writer, runtime: Runtime) -> tuple[Pointer, str | None]:
    """Return the pointer and its tag when no expiry is in progress; complete an interrupted one."""
    is_announced = False
    while True:
        tag = store.tag(layout.POINTER)
        pointer = Catalogue(store).pointer()
        if pointer.expiry is None:
            return pointer, tag
        if pointer.expiry.until <= runtime.clock():
            with suppress(Conflict):  # another process was faster
                # An outdated pointer would cause the removal of everything published later.
                recovery.check(store, pointer, tag)
                _Expiry(store, runtime, pointer, tag, pointer.expiry.snapshots, ORPHAN_AGE).run()
        elif not is_announced:
            until = instant.to_text(pointer.expiry.until)
            runtime.say(f"another expiry is running; waiting for it until {until} at most")
            is_announced = True
        else:
            runtime.sleep(_POLL)


def _expire(
    store: Writer, runtime: Runtime, choose: _Choice, age: timedelta = ORPHAN_AGE
) -> Expired:
    for _ in range(_TRIES):
        pointer, tag = complete(store, runtime)
        pointer = pointer.trim(runtime.clock())
        try:
            recovery.check(store, pointer, tag)
        except Conflict:
            continue
        if pointer.newest() is None:
            return Expired((), (), 0)
        catalogue = Catalogue(store, _MANIFESTS)
        try:
            present = _in_effect(catalogue, pointer, snapshots(store))
            retired = choose(catalogue, pointer, present)
            staying = tuple(number for number in present if number not in retired)
            # Damage of the store must be reported before anything is removed or announced.
            named = NamedObjects.of(catalogue, staying)
        except MissingObject:
            if store.tag(layout.POINTER) == tag:
                raise
            continue  # another expiry was faster
        if not retired and not orphans(store, named, runtime.clock(), age):
            return Expired((), staying, 0)
        try:
            count = _Expiry(store, runtime, pointer, tag, retired, age).run()
        except Conflict:
            continue
        return Expired(tuple(retired), staying, count)
    raise Conflict(f"other processes changed the store {_TRIES} times; run the command again")


def _in_effect(catalogue: Catalogue, pointer: Pointer, numbers: Iterable[int]) -> list[int]:
    """Return the numbers whose snapshots took effect or will take effect.

    A manifest with a retired number comes from a publish that began before the number was retired.
    That publish started over.
    """
    newest = pointer.newest()
    assert newest is not None
    skipped = set(catalogue.manifest(newest.snapshot).skipped)
    return [
        number
        for number in numbers
        if number <= newest.snapshot and number not in skipped and not pointer.is_retired(number)
    ]


class _Expiry:
    """Removes objects while the pointer's expiry entry allows it."""

    def __init__(
        self,
        store: Writer,
        runtime: Runtime,
        pointer: Pointer,
        tag: str | None,
        numbers: Sequence[int],
        age: timedelta,
    ) -> None:
        self._store = store
        self._runtime = runtime
        self._pointer = pointer
        self._tag = tag
        self._numbers = tuple(numbers)
        self._age = age
        self._holder = secrets.token_hex(8)
        self._catalogue = Catalogue(store, _MANIFESTS)
        self._leased = False

    def run(self) -> int:
        """Remove the objects; return how many. Raises Conflict if another process took over."""
        self._write_lease()
        staying = _in_effect(self._catalogue, self._pointer, snapshots(self._store))
        named = NamedObjects.of(self._catalogue, staying, self._renew)
        references: dict[str, LeafReference] = {}
        manifest_count = 0
        for number in self._numbers:
            self._renew()
            with suppress(MissingObject):  # an interrupted expiry removed it
                leaves = references_of(self._catalogue.manifest(number))
                references.update((r.key, r) for r in leaves if r.key not in named.leaves)
                manifest_count += 1
        data: set[str] = set()
        list_data = partial(_list_data, self._catalogue)
        for keys_of_leaf in read_all(list_data, [*references.values()], self._renew):
            data.update(key for key in keys_of_leaf if key not in named.data)
        manifests = [k for n in self._numbers for k in layout.snapshot_keys(n)]
        unnamed = orphans(self._store, named, self._runtime.clock(), self._age, self._renew)
        retired_keys = data | references.keys() | set(manifests)
        unnamed = [key for key in unnamed if key not in retired_keys]
        for keys in (sorted(data), sorted(references), manifests, unnamed):
            for start in range(0, len(keys), _BATCH):
                self._renew()
                self._store.remove(*keys[start : start + _BATCH])
        lease = self._pointer.expiry
        self._pointer = self._pointer.complete_expiry()
        self._write(lease)
        return len(data) + len(references) + manifest_count + len(unnamed)

    def _renew(self) -> None:
        """Renew the lease in time: a large store is read for longer than it lasts.

        Half of it must be left for a slow removal. Writing the lease may have been slow as well.
        """
        while (
            self._pointer.expiry is None
            or self._runtime.clock() > self._pointer.expiry.until - _LEASE / 2
        ):
            self._write_lease()

    def _write_lease(self) -> None:
        until = (self._runtime.clock() + _LEASE).replace(microsecond=0)
        earlier = self._pointer.expiry if self._leased else None
        self._pointer = replace(self._pointer, expiry=Expiry(self._numbers, until, self._holder))
        self._write(earlier)
        self._leased = True

    def _write(self, earlier: Expiry | None) -> None:
        """Write the pointer; `earlier` is the expiry entry that it should have until now.

        A publish may settle the pointer meanwhile. That is no reason to stop.
        """
        while True:
            try:
                self._tag = self._store.replace(layout.POINTER, self._pointer.to_json(), self._tag)
                return
            except Conflict:
                tag = self._store.tag(layout.POINTER)
                pointer = Catalogue(self._store).pointer()
                if earlier is None or pointer.expiry != earlier:
                    raise
                self._pointer, self._tag = replace(self._pointer, settled=pointer.settled), tag


def _list_data(catalogue: Catalogue, reference: LeafReference) -> list[str]:
    try:
        return [file.key for file in catalogue.leaf(reference).files]
    except MissingObject:
        return []  # removed by an interrupted expiry, after its data files
