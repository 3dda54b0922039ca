"""Caches: of a store's pointer, manifests and leaves, and of values limited in bytes."""

import gc
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.manifest import (
    DataFile,
    Key,
    Leaf,
    LeafReference,
    Manifest,
    RowGroup,
    Span,
    overlapping,
)
from functions.snapshot.pointer import Pointer, Witness
from functions.snapshot.store import Reader

T = TypeVar("T")

_REMEDY = "restore a copy of it, or let current.json name a complete snapshot"


class Cache:
    """Keeps the most recently used values, which must be immutable. Thread-safe.

    `limit` bounds the sum of their sizes: a number of bytes, or of values if each has the size 1.
    """

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._size = 0
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Any:
        """Return the value of `key`, None if it is not cached."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of `key`; on a miss, `make` computes it, and its size is 1."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                cached: T = self._values[key][0]
                return cached
        value = make()
        self.add(key, value)
        return value

    def add(self, key: Hashable, value: Any, size: int = 1) -> None:
        """Cache a value; the least recently used ones make room."""
        with self._lock:
            self._size += size - self._values.pop(key, (None, 0))[1]
            self._values[key] = value, size
            while self._size > self._limit:
                self._size -= self._values.popitem(last=False)[1][1]

    def forget(self, key: Hashable) -> None:
        """Drop the value of `key`."""
        with self._lock:
            self._size -= self._values.pop(key, (None, 0))[1]


class Catalogue:
    """Contents of a store's snapshots. Thread-safe.

    It keeps the `capacity` most recently used manifests and leaves in memory.
    """

    def __init__(self, reader: Reader, capacity: int = 256) -> None:
        self.reader = reader
        self._cache = Cache(capacity)
        self._witness: Witness | None = None

    def pointer(self) -> Pointer:
        """Read the pointer, again at each call; an empty pointer if it is missing."""
        try:
            return Pointer.from_json(self.reader.read(layout.POINTER))
        except MissingObject:
            return Pointer()

    def witness(self) -> Witness | None:
        """Read the witness, again at each call; None if it is missing.

        The manifest in it need not be read. If that copy is damaged, the object itself counts.
        """
        try:
            self._witness = Witness.from_json(self.reader.read(layout.WITNESS))
        except MissingObject:
            self._witness = None
        return self._witness

    def manifest(self, snapshot: int) -> Manifest:
        """Return a snapshot's manifest. Raises MissingObject if the snapshot was retired."""
        key, parse = layout.manifest_key(snapshot), partial(self._parse_manifest, snapshot)

        def read() -> Manifest:
            # Not before it is asked for: a witness may be of another store, and be put right.
            if (witness := self._witness) and witness.manifest and witness.number == snapshot:
                with suppress(DamagedStore):
                    return parse(witness.manifest.encode())
            return self._parse(key, parse)

        return self._cache.get(key, read)

    def _parse_manifest(self, snapshot: int, data: bytes) -> Manifest:
        manifest = Manifest.from_json(data)
        if manifest.snapshot != snapshot:
            raise DamagedStore(f"it belongs to snapshot {manifest.snapshot}")
        for name, leaf in manifest.leaves.items():
            self._cache.add(name, leaf)
        return manifest

    def files(self, manifest: Manifest, table: str) -> Iterator[DataFile]:
        """Yield every data file of `table`."""
        for reference in manifest.tables.get(table, ()):
            yield from self.leaf(reference).files

    def groups(
        self, manifest: Manifest, table: str, first: Key, last: Key, span: Span | None = None
    ) -> Iterator[tuple[DataFile, Sequence[RowGroup]]]:
        """Yield the files of `table` that can hold first..last, each with its matching row groups.

        If `last` is None, the range has no end. Leaves of several publishes may overlap. `span`
        limits the result to leaves with positions in it.
        """
        for reference in manifest.tables.get(table, ()):
            if reference.meets(first, last) and reference.within(span):
                for file in self.leaf(reference).files:
                    end = file.groups[-1].last if last is None else last
                    groups = overlapping(file.groups, first, end)
                    if groups:
                        yield file, groups

    def leaf(self, reference: LeafReference) -> Leaf:
        """Return the leaf that the reference names."""

        def parse(data: bytes) -> Leaf:
            if layout.leaf_key(hashlib.sha256(data).hexdigest()[:32]) != reference.key:
                raise DamagedStore("it is damaged: its content does not match its name")
            return Leaf.from_json(data)

        return self._cache.get(reference.key, lambda: self._parse(reference.key, parse))

    def remember(self, key: str, leaf: Leaf) -> None:
        """Keep a leaf that was just written, so that it need not be read."""
        self._cache.add(key, leaf)

    def _parse(self, key: str, parse: Callable[[bytes], T]) -> T:
        try:
            return parse(self.reader.read(key))
        except MissingObject as error:
            raise MissingObject(f"{error}, which is part of a snapshot; {_REMEDY}") from error
        except DamagedStore as error:
            raise DamagedStore(f"{key}: {error}; {_REMEDY}") from error


def collect_less_often() -> None:
    """Make the garbage collector of this process run less often.

    Cached rows are many objects without reference cycles, so searching them only costs time.
    """
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()
