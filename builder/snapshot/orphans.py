"""Orphans: objects that no kept snapshot names, and unfinished intake runs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from builder.threads import map_requests
from functions.snapshot import layout
from functions.snapshot.manifest import LeafReference, Manifest
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

ORPHAN_AGE = timedelta(days=1)
"""Younger objects that no snapshot names may belong to a publish in progress."""
PLAN_AGE = timedelta(days=14)
"""A planned run may wait that long for machines that read its parts."""
_AT_ONCE = 256  # reads

S = TypeVar("S")
T = TypeVar("T")


def _ignore() -> None:
    pass


@dataclass(frozen=True, slots=True)
class NamedObjects:
    """The keys of the leaves and data files that some snapshots name, and of their own objects."""

    leaves: frozenset[str]
    data: frozenset[str]
    own: frozenset[str]

    @staticmethod
    def of(
        catalogue: Catalogue, numbers: Iterable[int], go_on: Callable[[], None] = _ignore
    ) -> "NamedObjects":
        """Return the objects named by the snapshots with those numbers.

        `go_on` is called again and again, and may raise. Raises MissingObject.
        """
        references: dict[str, LeafReference] = {}
        own: set[str] = set()
        for number in numbers:
            go_on()
            manifest = catalogue.manifest(number)
            references.update((r.key, r) for r in references_of(manifest))
            own.update(layout.snapshot_keys(manifest.snapshot))
        leaves = read_all(catalogue.leaf, [*references.values()], go_on)
        data = {file.key for leaf in leaves for file in leaf.files}
        return NamedObjects(frozenset(references), frozenset(data), frozenset(own))


def read_all(read: Callable[[S], T], items: Sequence[S], go_on: Callable[[], None]) -> Iterator[T]:
    """Yield the result of each read, in order; some run in parallel. `go_on` is called between."""
    for start in range(0, len(items), _AT_ONCE):
        go_on()
        yield from map_requests(read, items[start : start + _AT_ONCE])


def orphans(
    store: Writer,
    named: NamedObjects,
    now: datetime,
    age: timedelta,
    go_on: Callable[[], None] = _ignore,
) -> list[str]:
    """Return the keys of objects that no kept snapshot names, and of unfinished intake.

    `age` is the minimum age of the unnamed objects. If it is zero, their age is not checked at all,
    because clocks may differ. `go_on` is called again and again, and may raise.
    """
    old = []
    for prefix in (layout.RECORDS, layout.SNAPSHOTS):
        for entry in store.entries(prefix):
            go_on()
            if (
                (not age or entry.modified <= now - age)
                and entry.key != layout.WITNESS
                and not any(entry.key in keys for keys in (named.leaves, named.data, named.own))
            ):
                old.append(entry.key)
    return old + _unfinished_runs(store, now)


def _unfinished_runs(store: Writer, now: datetime) -> list[str]:
    """Return the keys of old intake runs without a summary: their ingest was interrupted."""
    runs: dict[str, list[str]] = {}
    newest: dict[str, datetime] = {}
    for entry in store.entries(layout.INTAKE):
        run = layout.run_prefix(entry.key.split("/")[1])
        runs.setdefault(run, []).append(entry.key)
        newest[run] = max(entry.modified, newest.get(run, entry.modified))
    unfinished = []
    for run, keys in runs.items():
        age = PLAN_AGE if run + layout.PLAN in keys else ORPHAN_AGE
        if newest[run] <= now - age and run + layout.RUN_SUMMARY not in keys:
            unfinished += keys
    return unfinished


def references_of(manifest: Manifest) -> list[LeafReference]:
    """Return the leaf references of all tables."""
    return [reference for leaves in manifest.tables.values() for reference in leaves]
