"""Expire: snapshots that nobody needs are retired, and what no kept snapshot names is removed.

While it removes, the pointer says so, and up to which instant. A publish that finds that waits,
and then looks whether all that it wrote is still there, so nothing that a publish in progress
needs is ever missed. An expiry that died is completed by whoever comes next: data files go first,
then leaves, then manifests, so what is left to do can always be found.
"""

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise

from builder.runtime import Runtime
from builder.snapshot import recovery
from builder.snapshot.orphans import ORPHAN_AGE, NamedObjects, orphans, references_of
from functions.snapshot import instant, layout
from functions.snapshot.errors import Conflict, MissingObject
from functions.snapshot.manifest import LeafReference, Manifest
from functions.snapshot.pointer import Expiry, Pointer
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_LEASE = timedelta(minutes=2)
_BATCH = 500  # objects removed between two looks at the clock
_TRIES = 8
_POLL = 1.0  # seconds
_MANIFESTS = 4  # kept in memory: each holds as many instants as there were publishes

_Choice = Callable[[Catalogue, Pointer, Sequence[int]], list[int]]


@dataclass(frozen=True, slots=True)
class Expired:
    """What an expiry did: the snapshots it retired, those that are kept, and objects removed."""

    snapshots: tuple[int, ...]
    kept: tuple[int, ...]
    objects: int


def snapshots(store: Writer) -> list[int]:
    """Return the numbers of the snapshots that have a manifest, ascending."""
    there, _ = recovery.list_snapshots(store)
    return sorted(there)


def expire(
    store: Writer, outside: Runtime, keep: int = 1, older: timedelta = timedelta(0)
) -> Expired:
    """Retire the snapshots but the newest `keep`, those that were in effect within `older`, and
    those that the pointer names; remove what no kept snapshot names.

    Raises Conflict if other changes of the store came in between every time, and StoreError.
    """

    def choose(catalogue: Catalogue, pointer: Pointer, numbers: Sequence[int]) -> list[int]:
        now = outside.clock()
        named = {entry.snapshot for entry in pointer.entries}
        found = []
        for number, successor in pairwise(numbers):
            if number in named or number in numbers[-keep:]:
                continue
            if now - catalogue.manifest(successor).effective >= older:
                found.append(number)
        return found

    return _expire(store, outside, choose)


def retire(store: Writer, outside: Runtime, numbers: Collection[int]) -> Expired:
    """Retire the snapshots of these numbers, but none that the pointer names.

    What no snapshot names goes with them, however young: a publish in progress starts over.
    """

    def choose(catalogue: Catalogue, pointer: Pointer, there: Sequence[int]) -> list[int]:
        named = {entry.snapshot for entry in pointer.entries}
        return [number for number in there if number in numbers and number not in named]

    return _expire(store, outside, choose, age=timedelta(0))


def complete(store: Writer, outside: Runtime) -> tuple[Pointer, str | None]:
    """Return the pointer and its tag once no expiry is going on; one that died is completed."""
    told = False
    while True:
        tag = store.tag(layout.POINTER)
        pointer = Catalogue(store).pointer()
        if pointer.expiry is None:
            return pointer, tag
        if pointer.expiry.until <= outside.clock():
            _take_over(store, outside, pointer, tag)
        elif not told:
            until = instant.to_text(pointer.expiry.until)
            outside.say(f"an expiry is going on; waiting for it, up to {until}")
            told = True
        else:
            outside.sleep(_POLL)


def _take_over(store: Writer, outside: Runtime, pointer: Pointer, tag: str | None) -> None:
    assert pointer.expiry is not None
    try:
        # By an old pointer with an expiry in it, whatever came later would be removed.
        recovery.check(store, pointer, tag)
        _Expiry(store, outside, pointer, tag, pointer.expiry.snapshots, ORPHAN_AGE)()
    except Conflict:
        return  # somebody else was faster


def _expire(
    store: Writer, outside: Runtime, choose: _Choice, age: timedelta = ORPHAN_AGE
) -> Expired:
    for _ in range(_TRIES):
        pointer, tag = complete(store, outside)
        pointer = pointer.trim(outside.clock())
        try:
            recovery.check(store, pointer, tag)
        except Conflict:
            continue
        if pointer.newest() is None:
            return Expired((), (), 0)
        catalogue = Catalogue(store, _MANIFESTS)
        try:
            there = _in_effect(catalogue, pointer, snapshots(store))
            retired = choose(catalogue, pointer, there)
            kept = tuple(number for number in there if number not in retired)
            # A store that is damaged is told of before anything is removed or announced.
            named = NamedObjects.of(catalogue, kept)
        except MissingObject:
            if store.tag(layout.POINTER) == tag:
                raise
            continue  # another expiry was faster
        if not retired and not orphans(store, kept, named, outside.clock(), age):
            return Expired((), kept, 0)
        try:
            count = _Expiry(store, outside, pointer, tag, retired, age)()
        except Conflict:
            continue
        return Expired(tuple(retired), kept, count)
    raise Conflict(f"the store was changed by others {_TRIES} times meanwhile; run again")


def _in_effect(catalogue: Catalogue, pointer: Pointer, numbers: Iterable[int]) -> list[int]:
    """Return those of the numbers that are of snapshots which took effect, or will.

    A manifest under the number of a retired one was written by a publish that began before it was
    retired, and that started over.
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
    """Removes, for as long as the pointer says that it may."""

    def __init__(
        self,
        store: Writer,
        outside: Runtime,
        pointer: Pointer,
        tag: str | None,
        numbers: Sequence[int],
        age: timedelta,
    ) -> None:
        self._store = store
        self._outside = outside
        self._pointer = pointer
        self._tag = tag
        self._numbers = tuple(numbers)
        self._age = age
        self._holder = secrets.token_hex(8)
        self._catalogue = Catalogue(store, _MANIFESTS)
        self._leased = False

    def __call__(self) -> int:
        """Return how many objects were removed. Raises Conflict if somebody else took over."""
        self._lease()
        kept = _in_effect(self._catalogue, self._pointer, snapshots(self._store))
        named = NamedObjects.of(self._catalogue, kept)
        references: dict[str, LeafReference] = {}
        doomed = 0
        for manifest in (_manifest(self._catalogue, n) for n in self._numbers):
            if manifest is not None:
                doomed += 1
                references.update(
                    (r.key, r) for r in references_of(manifest) if r.key not in named.leaves
                )
        data: set[str] = set()
        for reference in references.values():
            data.update(key for key in _data(self._catalogue, reference) if key not in named.data)
        manifests = [k for n in self._numbers for k in layout.snapshot_keys(n)]
        unnamed = orphans(self._store, kept, named, self._outside.clock(), self._age)
        before = data | references.keys() | set(manifests)
        unnamed = [key for key in unnamed if key not in before]
        for keys in (sorted(data), sorted(references), manifests, unnamed):
            self._remove(keys)
        held = self._pointer.expiry
        self._pointer = self._pointer.complete_expiry()
        self._write(held)
        return len(data) + len(references) + doomed + len(unnamed)

    def _remove(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), _BATCH):
            while not self._sure():
                self._lease()
            self._store.remove(*keys[start : start + _BATCH])

    def _sure(self) -> bool:
        """Tell whether there is time for a removal that takes long.

        To write the lease may have taken long as well.
        """
        expiry = self._pointer.expiry
        return expiry is not None and self._outside.clock() <= expiry.until - _LEASE / 2

    def _lease(self) -> None:
        until = (self._outside.clock() + _LEASE).replace(microsecond=0)
        held = self._pointer.expiry if self._leased else None
        self._pointer = replace(self._pointer, expiry=Expiry(self._numbers, until, self._holder))
        self._write(held)
        self._leased = True

    def _write(self, held: Expiry | None) -> None:
        """Write the pointer; `held` is the expiry of this one that it should have until now.

        A publish may settle the pointer meanwhile, which is no reason to give up.
        """
        while True:
            try:
                self._tag = self._store.replace(layout.POINTER, self._pointer.to_json(), self._tag)
                return
            except Conflict:
                tag = self._store.tag(layout.POINTER)
                found = Catalogue(self._store).pointer()
                if held is None or found.expiry != held:
                    raise
                self._pointer, self._tag = replace(self._pointer, settled=found.settled), tag


def _manifest(catalogue: Catalogue, number: int) -> Manifest | None:
    try:
        return catalogue.manifest(number)
    except MissingObject:
        return None  # an expiry that died was as far as that


def _data(catalogue: Catalogue, reference: LeafReference) -> list[str]:
    try:
        return [file.key for file in catalogue.leaf(reference).files]
    except MissingObject:
        return []  # the same, and its data files went before it
