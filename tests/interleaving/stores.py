"""Stores for the machine: each maker gives a new, empty one and clears it away afterwards."""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from builder.store.folder import FolderStore
from functions.snapshot.store import ListedObject, Writer
from tests.interleaving.hours import Hours

Maker = Callable[[], AbstractContextManager[Writer]]

MEMORY = Path("/dev/shm")  # a thousand small files that are synced one by one are slow on a disk


@contextmanager
def folder() -> Iterator[Writer]:
    """Give a folder, in memory where there is such a place."""
    place = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="sheaf-machine-", dir=place) as name:
        yield FolderStore(Path(name) / "store")


def buckets(make: Callable[[], Writer]) -> Maker:
    """Return a maker of buckets; whoever gives `make` clears them away."""
    return lambda: nullcontext(make())


def copied(place: Path) -> Maker:
    """Return a maker of a folder that begins as a copy of a store."""

    @contextmanager
    def make() -> Iterator[Writer]:
        with folder() as store:
            assert isinstance(store, FolderStore)
            shutil.copytree(place, store.root, dirs_exist_ok=True)
            yield store

    return make


class Dated:
    """A store whose objects are as old as the machine's own hours make them."""

    def __init__(self, store: Writer, hours: Hours) -> None:
        self._store = store
        self._hours = hours
        self._written: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def resume(self, other: "Dated") -> None:
        """Take over how old the objects of another store are, of which this one is a copy."""
        self._written = dict(other._written)

    def put(self, key: str, source: Any) -> None:
        self._store.put(key, source)
        self._written.setdefault(key, self._hours.now)

    def create(self, key: str, data: bytes) -> None:
        self._store.create(key, data)
        self._written[key] = self._hours.now

    def create_all(self, objects: Iterable[tuple[str, bytes]]) -> Iterator[bool]:
        every = list(objects)
        for (key, _), is_new in zip(every, self._store.create_all(every), strict=True):
            self._written.setdefault(key, self._hours.now)
            yield is_new

    def replace_all(self, objects: Iterable[tuple[str, bytes]]) -> None:
        every = list(objects)
        self._store.replace_all(every)
        for key, _ in every:
            self._written.setdefault(key, self._hours.now)

    def remove(self, *keys: str) -> None:
        self._store.remove(*keys)
        for key in keys:
            self._written.pop(key, None)

    def entries(self, prefix: str) -> Iterator[ListedObject]:
        for entry in self._store.entries(prefix):
            yield ListedObject(entry.key, entry.bytes, self._written[entry.key])
