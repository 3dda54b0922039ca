"""The repository over DuckDB: answers from the Parquet files of a store's snapshots."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.oai import engine, version
from functions.oai.repository import Record, Selection, SetRow
from functions.snapshot import identifier, position
from functions.snapshot.manifest import DataFile, Manifest, RowGroup, Span, overlapping
from functions.snapshot.pointer import Pointer
from functions.snapshot.position import Range
from functions.snapshot.store import Reader
from functions.store.catalog import Cache, Catalogue

_FILE = engine.table("$file")
_IN_SET = (
    "len(list_filter(list_concat(sets, left_sets), "
    "lambda s: s = $set OR starts_with(s, $set || ':'))) > 0"
)
_SETS = f"""
SELECT set_spec, records, live, list_min(list_transform(counts, lambda c: c.sequence)),
    list_max(list_transform(counts, lambda c: c.sequence))
FROM {_FILE} WHERE set_spec > $after AND {{condition}} ORDER BY set_spec LIMIT $limit
"""
_LIVELY = "(live > 0) = $live"
_LIVELY_BEFORE = (
    "turns[1] <= $sequence AND (len(list_filter(turns, lambda t: t <= $sequence)) % 2 = 1) = $live"
)
_BIRTHS = f"SELECT set_spec, turns[1] FROM {_FILE} WHERE list_contains($specs, set_spec)"
_LIVE = (
    f"position NOT IN (SELECT position FROM {engine.table('$dead')} "
    "WHERE position BETWEEN $first AND $last)"
)


@dataclass(frozen=True, slots=True)
class _Listing:
    """A set's listing: records by sequence and kind, and where they lie."""

    counts: tuple[tuple[int, str, int], ...]
    ranges: tuple[Range, ...]


class DuckRepository:
    """Implements functions.oai.repository.Repository over a store. Safe to use from threads."""

    def __init__(self, reader: Reader) -> None:
        self._catalogue = Catalogue(reader)
        self._connection = engine.connect()
        self._idle: list[engine.Connection] = []
        self._lock = threading.Lock()
        self._cache = Cache()

    def close(self) -> None:
        """Let go of DuckDB; the repository answers no more."""
        with self._lock:
            for cursor in self._idle:
                cursor.close()
            self._idle.clear()
            self._connection.close()

    def pointer(self) -> Pointer:
        """Read the pointer, anew at each call; an empty one where there is none."""
        return self._catalogue.pointer()

    def manifest(self, snapshot: int) -> Manifest:
        """Return a snapshot's manifest. Raises MissingObject where the snapshot was retired."""
        return self._catalogue.manifest(snapshot)

    def size(self, manifest: Manifest, selection: Selection) -> int:
        """Return how many records the list has (see Repository.size)."""
        shares = position.shares(manifest, selection.span)
        if selection.set is None:
            counts: Sequence[tuple[int, str, int]] = [
                (s.number, kind, n) for s in manifest.sequences for kind, n in s.records.items()
            ]
        else:
            counts = self._listing(manifest, selection.set).counts
        return sum(
            round(n * shares.get(number, 0))
            for number, kind, n in counts
            if kind in selection.kinds
        )

    def page(
        self, manifest: Manifest, selection: Selection, limit: int, *, headers: bool
    ) -> tuple[Record, ...]:
        """Return the first `limit` records of the selection, by position."""
        found: list[Record] = []
        for part in self._ranges(manifest, selection):
            for file, groups in self._runs(manifest, part, selection.set, limit):
                if len(found) >= limit:
                    return self._filled(manifest, found)
                found += self._read(
                    manifest, selection, part, file, groups, limit - len(found), headers=headers
                )
        return self._filled(manifest, found)

    def record(self, manifest: Manifest, identifier_: str) -> Record | None:
        """Return the item's listed version, or None where the snapshot has no such item."""
        key = identifier.lookup_key(identifier_)
        positions: list[int] = []
        for file, groups in self._catalogue.groups(manifest, "lookup", key, key):
            sql = f"SELECT position FROM {_FILE} WHERE key = $key"
            rows = self._rows(sql, file, _span(groups), key=key)
            positions += [place for (place,) in rows]
        for place in sorted(positions, reverse=True):
            selection = Selection(tuple(manifest.kinds()), Span(place, place))
            for record in self.page(manifest, selection, 1, headers=False):
                if record.identifier == identifier_:
                    return record
        return None

    def sets(
        self,
        manifest: Manifest,
        after: str,
        limit: int,
        sequence: int | None = None,
        *,
        live: bool = True,
    ) -> tuple[SetRow, ...]:
        """Return up to `limit` sets whose specification sorts behind `after`."""
        found: list[SetRow] = []
        stamps = self._stamps(manifest)
        values: dict[str, Any] = {"after": after}
        condition = "true"
        if sequence is not None:
            past = any(s.number > sequence for s in manifest.sequences[-1:])
            condition = _LIVELY_BEFORE if past else _LIVELY
            values |= {"live": live} | ({"sequence": sequence} if past else {})
        sql = _SETS.format(condition=condition)
        for file, _ in self._catalogue.groups(manifest, "sets", after, None):
            rows = self._rows(sql, file, limit=limit - len(found), **values)
            found += [
                SetRow(spec, records, count, stamps[first], stamps[last])
                for spec, records, count, first, last in rows
            ]
            if len(found) >= limit:
                break
        return tuple(found)

    def births(self, manifest: Manifest, specs: Sequence[str]) -> Mapping[str, int]:
        """Return, of these specifications, the snapshot's sets with the sequence they began in."""

        def read() -> Mapping[str, int]:
            groups = self._catalogue.groups
            files = {f.key: f for s in specs for f, _ in groups(manifest, "sets", s, s)}
            rows = (self._rows(_BIRTHS, file, specs=list(specs)) for file in files.values())
            return dict(row for some in rows for row in some)

        return self._cache.get((manifest.snapshot, tuple(specs)), read)

    def has_set(self, manifest: Manifest, spec: str) -> bool:
        """Tell whether the snapshot has the set."""
        return self._listing(manifest, spec).counts != ()

    def _filled(self, manifest: Manifest, records: list[Record]) -> tuple[Record, ...]:
        """Return the records, with what documents have of those that are no captures."""
        names = version.lacking(records)
        if not names:
            return tuple(records)
        found: dict[str, str] = {}
        sql = f"SELECT * FROM {_FILE} WHERE list_contains($names, identifier)"
        for file, groups in self._catalogue.groups(manifest, "documents", names[0], names[-1]):
            found.update(self._rows(sql, file, _span(groups), names=names))
        return tuple(version.filled(records, found))

    def _ranges(self, manifest: Manifest, selection: Selection) -> Iterator[Range]:
        """Yield where the selection's records lie, without publishes of which none is left."""
        span = selection.span
        if selection.set is None:
            parts: tuple[Range, ...] = (Range(span.first, span.last, copied=False),)
            living = position.living(manifest, selection.kinds)
        else:
            listing = self._listing(manifest, selection.set)
            parts = listing.ranges
            living = {number for number, kind, _ in listing.counts if kind in selection.kinds}
        stretches = position.stretches(manifest, living, selection.kinds)
        for part in parts:
            first, last = max(part.first, span.first), min(part.last, span.last)
            for stretch in overlapping(stretches, first, last):
                yield Range(max(first, stretch.first), min(last, stretch.last), part.copied)

    def _runs(
        self, manifest: Manifest, part: Range, spec: str | None, limit: int
    ) -> Iterator[tuple[DataFile, Sequence[RowGroup]]]:
        """Yield runs of row groups of one file, as few as are likely to fill the page."""
        if part.copied:
            assert spec is not None
            span = Span(part.first, part.last)
            bounds = self._catalogue.groups(
                manifest, "copies", (spec, part.first), (spec, part.last), span
            )
        else:
            bounds = self._catalogue.groups(manifest, "records", part.first, part.last)
        dense = spec is None or part.copied
        wanted = 1
        for file, groups in bounds:
            start = 0
            while start < len(groups):
                end = start + wanted
                if dense:
                    rows, end = 0, start
                    while end < len(groups) and (rows < limit or end == start):
                        rows += position.rows_in(groups[end], part)
                        end += 1
                yield file, groups[start:end]
                start, wanted = end, min(wanted * 2, 8)

    def _read(
        self,
        manifest: Manifest,
        selection: Selection,
        part: Range,
        file: DataFile,
        groups: Sequence[RowGroup],
        limit: int,
        *,
        headers: bool,
    ) -> list[Record]:
        columns = version.columns(headers=headers, of_set=selection.set is not None)
        low = position.in_key(groups[0].first, selection.set, part.first)
        high = position.in_key(groups[-1].last, selection.set, part.last)
        values: dict[str, Any] = {
            "first": max(part.first, low),
            "last": min(part.last, high),
            "kinds": list(selection.kinds),
            "limit": limit,
        }
        conditions = ["position BETWEEN $first AND $last", "list_contains($kinds, kind)"]
        if selection.set is not None:
            conditions.append("listing = $set" if part.copied else _IN_SET)
            values["set"] = selection.set
        dead = self._dead(manifest, values["first"], values["last"])
        if dead:
            conditions.append(_LIVE)
            values["dead"] = dead
        sql = (
            f"SELECT {', '.join(columns)} FROM {_FILE} "
            f"WHERE {' AND '.join(conditions)} ORDER BY position LIMIT $limit"
        )
        stamps = self._stamps(manifest)
        rows = self._rows(sql, file, _span(groups), **values)
        return [version.read(row, stamps, selection.set) for row in rows]

    def _dead(self, manifest: Manifest, first: int, last: int) -> list[str]:
        return [
            str(self._catalogue.reader.local(file.key))
            for file, _ in self._catalogue.groups(manifest, "dead", first, last)
        ]

    def _listing(self, manifest: Manifest, spec: str) -> _Listing:
        def read() -> _Listing:
            for file, groups in self._catalogue.groups(manifest, "sets", spec, spec):
                sql = f"SELECT counts, ranges FROM {_FILE} WHERE set_spec = $set"
                for counts, ranges in self._rows(sql, file, _span(groups), set=spec):
                    return _Listing(
                        tuple((c["sequence"], c["kind"], c["records"]) for c in counts),
                        tuple(Range(r["first"], r["last"], r["copied"]) for r in ranges),
                    )
            return _Listing((), ())

        return self._cache.get((manifest.snapshot, spec), read)

    def _stamps(self, manifest: Manifest) -> dict[int, datetime]:
        return self._cache.get(
            (manifest.snapshot, None), lambda: {s.number: s.effective for s in manifest.sequences}
        )

    def _rows(
        self, sql: str, file: DataFile, span: tuple[int, int] | None = None, **values: Any
    ) -> list[tuple[Any, ...]]:
        footer = (file.bytes - file.footer, file.footer)
        spans = None if span is None else (span, footer)
        values["file"] = str(self._catalogue.reader.local(file.key, spans))
        with self._cursor() as cursor, engine.reading(file.key):
            rows: list[tuple[Any, ...]] = cursor.execute(sql, values).fetchall()
            return rows

    @contextmanager
    def _cursor(self) -> Iterator[engine.Connection]:
        """Lend a cursor: one may serve one thread at a time."""
        with self._lock:
            cursor = self._idle.pop() if self._idle else self._connection.cursor()
        try:
            yield cursor
        finally:
            with self._lock:
                self._idle.append(cursor)


def _span(groups: Sequence[RowGroup]) -> tuple[int, int]:
    """Return offset and length of the bytes that hold neighbouring row groups."""
    return groups[0].offset, groups[-1].offset + groups[-1].length - groups[0].offset
