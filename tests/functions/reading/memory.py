"""A repository in memory: snapshots made of simple items, with the rules of the real one."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from functions.reading import repository as reading
from functions.reading.figures import compose, group_publishes
from functions.reading.repository import PublishedRecord, RecordSelection, SetRow
from functions.snapshot import figure_rows, oai_name, schema
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import Making, Manifest, Sequence
from functions.snapshot.pointer import Pointer, PointerEntry, Witness

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
    return Item(
        oai_name.most_specific_sets(sets), "capture", {**EMPTY_CAPTURE, "url": url, **fields}
    )


@dataclass(frozen=True)
class Snapshot:
    manifest: Manifest
    records: tuple[PublishedRecord, ...]
    members: Mapping[str, tuple[PublishedRecord, ...]]
    """For each set its records, deleted where they are not live in it."""


class MemoryRepository:
    """Implements functions.reading.repository.Repository."""

    def __init__(self, namespace: str = "example.org", store: str = ""):
        self.namespace = namespace
        self.store = store
        self.snapshots: dict[int, Snapshot] = {}
        self.retired: set[int] = set()
        self.current = Pointer(store=store)
        self.attested: PointerEntry | None = None
        self.reads = 0
        self.formats: dict[str, Making] = {}
        self._items: dict[str, Item | None] = {}
        self._records: dict[str, PublishedRecord] = {}
        self._been: dict[str, frozenset[str]] = {}
        self._sequences: list[tuple[int, datetime, int, int]] = []
        self._changes: list[tuple[Any, ...]] = []

    def publish(
        self, changes: Mapping[str, Item | None], effective: datetime, now: datetime | None = None
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
        changes = Counter(self._change(name, item) for name, item in real.items())
        order = sorted(real, key=lambda name: (self._kind(name, real[name]), name))
        for position, name in enumerate(order, first):
            record = self._record(position, name, real[name], effective)
            self._records[name] = record
            self._been[name] = self._been.get(name, frozenset()) | _listings(record.sets)
        self._items.update(real)
        for kind, counts in sorted(self._kinds(self._records.values()).items()):
            some = (changes[kind, change] for change in figure_rows.CHANGES[:4])
            self._changes.append((number, kind, *some, *counts))
        self._sequences.append((number, effective, first, first + len(order) - 1))
        return self._published(effective, now)

    def remake(self, prefix: str, effective: datetime, now: datetime | None = None) -> int:
        """Publish that a format is made otherwise from then on; return the snapshot's number."""
        number = max(self.snapshots) + 1
        self.formats[prefix] = Making("made otherwise", effective, number)
        return self._published(effective, now)

    def retire(self, *numbers: int) -> None:
        """Remove snapshots that are in effect no more."""
        self.retired.update(numbers)

    def pointer(self) -> Pointer:
        self.reads += 1
        return self.current

    def witness(self) -> Witness | None:
        return Witness(self.store, self.attested) if self.store else None

    def manifest(self, snapshot: int) -> Manifest:
        return self._at(snapshot).manifest

    def size(self, manifest: Manifest, selection: RecordSelection) -> int:
        return len(self._selected(manifest, selection))

    def page(
        self,
        manifest: Manifest,
        selection: RecordSelection,
        limit: int,
        *,
        headers: bool,
        fields: Collection[str] | None = None,
    ) -> tuple[PublishedRecord, ...]:
        records = self._selected(manifest, selection)[:limit]
        if headers:
            return tuple(replace(r, fields={}) for r in records)
        if fields is None:
            return tuple(records)
        return tuple(
            replace(r, fields={n: v for n, v in r.fields.items() if n in fields})
            if r.kind == "capture"
            else r
            for r in records
        )

    def record(
        self, manifest: Manifest, identifier: str, *, fields: Collection[str] | None = None
    ) -> PublishedRecord | None:
        records = self._at(manifest.snapshot).records
        return next((r for r in records if r.identifier == identifier), None)

    def sets(
        self,
        manifest: Manifest,
        after: str,
        limit: int,
        sequence: int | None = None,
        *,
        live: bool = True,
    ) -> tuple[SetRow, ...]:
        found = []
        for spec, records in sorted(self._at(manifest.snapshot).members.items()):
            if spec > after and (sequence is None or self._lived(spec, sequence) is live):
                stamps = [record.datestamp for record in records]
                count = sum(not record.deleted for record in records)
                found.append(SetRow(spec, len(records), count, min(stamps), max(stamps)))
        return tuple(found[:limit])

    def _lived(self, spec: str, sequence: int) -> bool | None:
        """Tell whether a set had live records as of a publish; None where it was not there yet."""
        if sequence not in self.snapshots:
            sequence = min(max(self.snapshots), sequence)
        members = self.snapshots[sequence].members.get(spec) if sequence else None
        return any(not record.deleted for record in members) if members else None

    def births(self, manifest: Manifest, specs: Iterable[str]) -> Mapping[str, int]:
        there = self._at(manifest.snapshot).members.keys()
        return {
            spec: min(n for n, snapshot in self.snapshots.items() if spec in snapshot.members)
            for spec in specs
            if spec in there
        }

    def children(
        self, manifest: Manifest, under: str, after: str, limit: int
    ) -> tuple[SetRow, ...]:
        within = f"{under}:" if under else ""
        rows = self.sets(manifest, after, 10_000)
        found = [r for r in rows if r.spec.startswith(within) and ":" not in r.spec[len(within) :]]
        return tuple(found[:limit])

    def find_set(self, manifest: Manifest, spec: str) -> SetRow | None:
        return next((r for r in self.sets(manifest, "", 10_000) if r.spec == spec), None)

    def versions(self, manifest: Manifest, identifier: str) -> tuple[int, ...]:
        record = self.record(manifest, identifier)
        return () if record is None else (record.position,)

    def template_files(
        self, manifest: Manifest, handle: str, gathered: Mapping[str, str]
    ) -> tuple[reading.ObjectLife, ...]:
        return (reading.ObjectLife("", 1352481230, 1352481230, None, 1),)

    def source_rows(
        self, manifest: Manifest, table: str, source: str, limit: int
    ) -> tuple[Mapping[str, Any], ...]:
        records = self._at(manifest.snapshot).records
        if not any(record.fields.get("warc_filename") == source for record in records):
            return ()
        row = dict.fromkeys(schema.names(table))
        return ({**row, "source": source, "path": "/secret", "code": "c", "detail": source},)

    def origin_sets(self, manifest: Manifest, after: str, limit: int) -> list[tuple[str, str]]:
        return []

    def has_set(self, manifest: Manifest, spec: str) -> bool:
        return spec in self._at(manifest.snapshot).members

    def figures(self, manifest: Manifest) -> reading.Figures:
        rows = figure_rows.FigureRows(
            publishes=figure_rows.thin(self._publishes(manifest), self._newest(manifest))
        )
        records = self._at(manifest.snapshot).records
        rows.kinds = self._kinds(records)
        for record in records:
            if record.kind == "capture" and not record.deleted:
                self._count(rows, record.fields)
        return compose(rows, manifest)

    def collections(self, manifest: Manifest, limit: int) -> reading.CollectionFigures:
        records = self._at(manifest.snapshot).records
        live = [r.fields for r in records if r.kind == "collection" and not r.deleted]
        largest = sorted(live, key=lambda fields: -(fields["captures"] or 0))
        first, last = (
            [fields[name] for fields in live if fields.get(name)]
            for name in ("first_date", "last_date")
        )
        return reading.CollectionFigures(
            tuple(largest[:limit]), min(first, default=""), max(last, default="")
        )

    def publishes(
        self, manifest: Manifest, before: int | None, limit: int
    ) -> tuple[reading.PublishFigures, ...]:
        newest = self._newest(manifest) + 1
        end = newest if before is None else min(newest, before)
        rows = [r for r in self._publishes(manifest) if end - limit <= r[0] < end]
        return group_publishes(rows, manifest)[::-1]

    def _publishes(self, manifest: Manifest) -> list[tuple[Any, ...]]:
        return [row for row in self._changes if row[0] <= self._newest(manifest)]

    def _newest(self, manifest: Manifest) -> int:
        return len(manifest.sequences)

    def _change(self, name: str, item: Item | None) -> tuple[str, str]:
        """Return the kind of an item, and what a publish does with it."""
        kind = self._kind(name, item)
        if name not in self._records:
            return kind, "added"
        if self._records[name].deleted is (item is None):
            return kind, "changed"
        return kind, "deleted" if item is None else "restored"

    def _kinds(self, records: Iterable[PublishedRecord]) -> dict[str, tuple[int, int]]:
        counts = Counter((record.kind, record.deleted) for record in records)
        return {kind: (counts[kind, False], counts[kind, True]) for kind, _ in counts}

    def _count(self, rows: figure_rows.FigureRows, fields: Mapping[str, Any]) -> None:
        size = fields["content_length"] or 0
        media_type = fields["content_mime_type"] or fields["content_mime_detected"] or ""
        status = fields["fetch_status"]
        figure_rows.add(rows.months, (fields["fetch_date"] or "")[:7], 1, size)
        for name, value, detail in (
            ("host", fields["url_host_name"], None),
            ("domain", fields["url_host_registered_domain"], None),
            ("media_type", media_type, "" if status is None else str(status)),
        ):
            if value is not None:
                facet = rows.facets[name]
                facet.different += value not in facet.values
                facet.captures, facet.bytes = facet.captures + 1, facet.bytes + size
                figure_rows.add(facet.values.setdefault(value, {}), detail, 1, size)

    def state(self, snapshot: int | None = None) -> dict[str, bool]:
        """Return the identifiers of a snapshot's listing, each with whether it is deleted."""
        records = self._at(snapshot or max(self.snapshots)).records
        return {record.identifier: record.deleted for record in records}

    def _published(self, effective: datetime, now: datetime | None) -> int:
        number = max(self.snapshots, default=0) + 1
        self.snapshots[number] = self._snapshot(number, effective)
        entry = PointerEntry(number, effective)
        self.current = self.current.move_to(entry, now or effective - timedelta(seconds=2))
        self.attested = entry
        return number

    def _at(self, number: int) -> Snapshot:
        if number in self.retired or number not in self.snapshots:
            raise MissingObject(f"snapshot {number} is not there")
        return self.snapshots[number]

    def _selected(self, manifest: Manifest, selection: RecordSelection) -> list[PublishedRecord]:
        snapshot = self._at(manifest.snapshot)
        spec = selection.set
        return [
            record
            for record in (snapshot.records if spec is None else snapshot.members.get(spec, ()))
            if selection.span.first <= record.position <= selection.span.last
            and record.kind in selection.kinds
            and _meets(record, selection.filter or reading.RecordFilter())
        ]

    def reach(self, manifest: Manifest, selection: RecordSelection, groups: int) -> int:
        return selection.span.last

    def _record(
        self, position: int, name: str, item: Item | None, effective: datetime
    ) -> PublishedRecord:
        if item is None:
            return replace(
                self._records[name], position=position, datestamp=effective, deleted=True, fields={}
            )
        return PublishedRecord(position, name, item.kind, effective, False, item.sets, item.fields)

    def _snapshot(self, number: int, effective: datetime) -> Snapshot:
        records = tuple(sorted(self._records.values(), key=lambda r: r.position))
        sequences = tuple(
            Sequence(
                n,
                when,
                first,
                last,
                Counter(r.kind for r in records if first <= r.position <= last),
            )
            for n, when, first, last in self._sequences
        )
        members: dict[str, tuple[PublishedRecord, ...]] = {}
        for record in records:
            gone = self._been[record.identifier] - _listings(record.sets)
            for spec in _listings(record.sets) | gone:
                shown = _departed(record, gone, spec) if spec in gone else record
                members[spec] = (*members.get(spec, ()), shown)
        manifest = Manifest(
            number,
            effective,
            self.namespace,
            sequences,
            {},
            len(members),
            tombstones=sum(record.deleted for record in records),
            emptied=sum(all(r.deleted for r in some) for some in members.values()),
            formats=dict(self.formats),
            store=self.store,
        )
        return Snapshot(manifest, records, members)

    def _kind(self, name: str, item: Item | None) -> str:
        return item.kind if item else self._records[name].kind

    def _last(self) -> int:
        return self._sequences[-1][3] if self._sequences else 0


def _listings(sets: Iterable[str]) -> frozenset[str]:
    """Return sets and all above them."""
    levels = [spec.split(":") for spec in sets]
    return frozenset(":".join(some[:n]) for some in levels for n in range(1, len(some) + 1))


def _departed(record: PublishedRecord, left: frozenset[str], spec: str) -> PublishedRecord:
    """Return a record as a list of the set `spec`, which it left, has it."""
    within = [s for s in left if (s + ":").startswith(spec + ":")]
    deepest = sorted(s for s in within if not any(o.startswith(s + ":") for o in within))
    return replace(record, deleted=True, sets=tuple(deepest), fields={})


def _meets(record: PublishedRecord, chosen: reading.RecordFilter) -> bool:
    """Tell whether a record meets the conditions of a filter."""
    fields, is_capture = record.fields, record.kind == "capture"
    media_type = fields.get("content_mime_type") or fields.get("content_mime_detected") or ""
    return (
        str(fields.get("fetch_status") or "").startswith(chosen.status)
        and media_type.startswith(chosen.media_type)
        and str(fields.get("fetch_date") or fields.get("date") or "").startswith(chosen.year)
        and (chosen.pages is None or chosen.pages is (not is_capture or "html" in media_type))
    )
