"""A repository in memory: snapshots made of simple items, with the rules of the real one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from functions.oai.repository import Record, Selection, SetRow
from functions.snapshot import schema, setspec
from functions.snapshot.errors import MissingObject
from functions.snapshot.making import Making
from functions.snapshot.manifest import Manifest, Sequence
from functions.snapshot.pointer import Entry, Pointer

EMPTY_CAPTURE: Mapping[str, Any] = {column.name: None for column in schema.CAPTURE}


@dataclass(frozen=True)
class Item:
    """What is published of an item; None in its place deletes it."""

    sets: tuple[str, ...] = ()
    kind: str = "capture"
    fields: Mapping[str, Any] = field(default_factory=dict)


def capture(url: str, *sets: str, **fields: Any) -> Item:
    """Return a capture with those columns and with NULL in the others."""
    unknown = fields.keys() - EMPTY_CAPTURE.keys()
    assert not unknown, unknown
    return Item(setspec.most_specific(sets), "capture", {**EMPTY_CAPTURE, "url": url, **fields})


@dataclass(frozen=True)
class Snapshot:
    manifest: Manifest
    records: tuple[Record, ...]
    sets: tuple[SetRow, ...]


class MemoryRepository:
    """Implements functions.oai.repository.Repository.

    `estimate` distorts the size of a list that begins within a sequence, as a real one may.
    """

    def __init__(
        self, namespace: str = "example.org", estimate: Callable[[int], int] = lambda n: n
    ):
        self.namespace = namespace
        self.estimate = estimate
        self.snapshots: dict[int, Snapshot] = {}
        self.retired: set[int] = set()
        self.current = Pointer()
        self.reads = 0
        self.formats: dict[str, Making] = {}
        self._items: dict[str, Item | None] = {}
        self._records: dict[str, Record] = {}
        self._sequences: list[tuple[int, datetime, int, int]] = []

    def publish(
        self,
        changes: Mapping[str, Item | None],
        effective: datetime,
        now: datetime | None = None,
    ) -> int:
        """Publish what of `changes` is one; return the number of the snapshot in effect then."""
        real = {
            name: item
            for name, item in changes.items()
            if item != self._items.get(name) and (item is not None or name in self._items)
        }
        if not real and self.snapshots:
            return max(self.snapshots)
        number, first = len(self._sequences) + 1, self._last() + 1
        order = sorted(real, key=lambda name: (self._kind(name, real[name]), name))
        for position, name in enumerate(order, first):
            self._records[name] = self._record(position, name, real[name], effective)
        self._items.update(real)
        self._sequences.append((number, effective, first, first + len(order) - 1))
        return self._published(effective, now)

    def remake(self, prefix: str, effective: datetime, now: datetime | None = None) -> int:
        """Publish that a format is made otherwise from then on; return the snapshot's number."""
        number = max(self.snapshots) + 1
        self.formats[prefix] = Making(str(number), effective, number)
        return self._published(effective, now)

    def retire(self, *numbers: int) -> None:
        """Remove snapshots that are in effect no more."""
        self.retired.update(numbers)

    def pointer(self) -> Pointer:
        self.reads += 1
        return self.current

    def manifest(self, snapshot: int) -> Manifest:
        return self._at(snapshot).manifest

    def size(self, manifest: Manifest, selection: Selection) -> int:
        found = len(self._selected(manifest, selection))
        firsts = {sequence.first for sequence in manifest.sequences}
        return found if selection.span.first in firsts else max(0, self.estimate(found))

    def page(
        self, manifest: Manifest, selection: Selection, limit: int, *, headers: bool
    ) -> tuple[Record, ...]:
        records = self._selected(manifest, selection)[:limit]
        return tuple(replace(r, fields={}) for r in records) if headers else tuple(records)

    def record(self, manifest: Manifest, identifier: str) -> Record | None:
        records = self._at(manifest.snapshot).records
        return next((r for r in records if r.identifier == identifier), None)

    def sets(self, manifest: Manifest, after: str, limit: int) -> tuple[SetRow, ...]:
        return tuple(s for s in self._at(manifest.snapshot).sets if s.spec > after)[:limit]

    def has_set(self, manifest: Manifest, spec: str) -> bool:
        return any(row.spec == spec for row in self._at(manifest.snapshot).sets)

    def state(self, snapshot: int | None = None) -> dict[str, bool]:
        """Return the identifiers of a snapshot's listing, each with whether it is deleted."""
        records = self._at(snapshot or max(self.snapshots)).records
        return {record.identifier: record.deleted for record in records}

    def _published(self, effective: datetime, now: datetime | None) -> int:
        number = max(self.snapshots, default=0) + 1
        self.snapshots[number] = self._snapshot(number, effective)
        entry = Entry(number, effective)
        self.current = self.current.moved(entry, now or effective - timedelta(seconds=2))
        return number

    def _at(self, number: int) -> Snapshot:
        if number in self.retired or number not in self.snapshots:
            raise MissingObject(f"snapshot {number} is not there")
        return self.snapshots[number]

    def _selected(self, manifest: Manifest, selection: Selection) -> list[Record]:
        return [
            record
            for record in self._at(manifest.snapshot).records
            if selection.span.first <= record.position <= selection.span.last
            and record.kind in selection.kinds
            and (selection.set is None or _within(record, selection.set))
        ]

    def _record(self, position: int, name: str, item: Item | None, effective: datetime) -> Record:
        if item is None:
            return replace(
                self._records[name],
                position=position,
                datestamp=effective,
                deleted=True,
                fields={},
            )
        return Record(position, name, item.kind, effective, False, item.sets, item.fields)

    def _snapshot(self, number: int, effective: datetime) -> Snapshot:
        records = tuple(sorted(self._records.values(), key=lambda r: r.position))
        sequences = tuple(
            Sequence(n, when, first, last, _by_kind(records, first, last))
            for n, when, first, last in self._sequences
        )
        counts: dict[str, int] = {}
        for record in records:
            for spec in {a for own in record.sets for a in setspec.lineage(own)}:
                counts[spec] = counts.get(spec, 0) + 1
        manifest = Manifest(number, effective, self.namespace, sequences, {}, len(counts))
        manifest = replace(manifest, formats=dict(self.formats))
        return Snapshot(manifest, records, tuple(SetRow(s, counts[s]) for s in sorted(counts)))

    def _kind(self, name: str, item: Item | None) -> str:
        return item.kind if item else self._records[name].kind

    def _last(self) -> int:
        return self._sequences[-1][3] if self._sequences else 0


def _within(record: Record, spec: str) -> bool:
    return any(s == spec or s.startswith(spec + ":") for s in record.sets)


def _by_kind(records: tuple[Record, ...], first: int, last: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for record in records:
        if first <= record.position <= last:
            counts[record.kind] = counts.get(record.kind, 0) + 1
    return counts
