"""DuckDB repository: answers from the Parquet files of a store's snapshots."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from functions.kinds import IN_FORMATS, find_kind
from functions.reading import record_rows
from functions.reading.figures import FigureTable
from functions.reading.record_rows import DOCUMENT, DocumentPage, Page, Range
from functions.reading.repository import ObjectLife, PublishedRecord, RecordSelection
from functions.reading.sets import SetTable
from functions.reading.singles import SingleVersions
from functions.snapshot import oai_name, schema
from functions.snapshot.manifest import DataFile, Manifest, RowGroup, Span, overlapping
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Reader
from functions.store import engine
from functions.store.catalog import Catalogue
from functions.store.columns import Columns
from functions.store.files import FILE, Files

_IN_SET = (
    "len(list_filter(list_concat(sets, left_sets), "
    "lambda s: s = $set OR starts_with(s, $set || ':'))) > 0"
)
"""The condition of records in a set, or that left it."""
_IN_FORMATS = engine.texts(sorted(IN_FORMATS))
_LEFT_SET = "len(list_filter(left_sets, lambda s: s = $set OR starts_with(s, $set || ':'))) > 0"
_OF_SOURCE = f"SELECT * FROM {FILE} WHERE source = $source ORDER BY ALL LIMIT $limit"
_FILES_OF = f"SELECT url, id FROM {FILE} WHERE handle = $handle ORDER BY position"
_LIFE = (
    f"SELECT id, kind, found, noted, lost, versions, digest FROM {FILE} "
    "WHERE list_contains($ids, id) AND kind IN ('tobi', 'fobi')"
)
_NEVER = (None, None, None, 0, None)
"""The life and the digest of a file that was never gathered."""
_BYTES = f"SELECT sha256, bytes FROM {FILE} WHERE list_contains($ids, id) AND kind = 'fobi'"
_CACHED = 64 << 20
_MEMORY = 512
_DEAD = f"SELECT position FROM {engine.table('$dead')} WHERE position BETWEEN $first AND $last"
_LIVE = f"position NOT IN ({_DEAD})"
_SLACK = 1.25
"""Factor on the rows that a set's mean density suggests to read."""
_MOST = 8
"""Maximum number of row groups read at once."""


class DuckRepository:
    """Implements Repository (functions.reading.repository) over a store. Thread-safe.

    Up to about `capacity` bytes of rows are cached for the next page. With `ahead` a thread reads
    some of them in advance (see Files). The database takes `memory` megabytes. The search for
    captures shares `catalogue` and `files`.
    """

    def __init__(
        self, reader: Reader, capacity: int = _CACHED, *, ahead: bool = False, memory: int = _MEMORY
    ) -> None:
        self.catalogue = self._catalogue = Catalogue(reader)
        self.files = self._files = Files(reader, capacity, ahead=ahead, memory=memory)
        self.singles = SingleVersions(self._catalogue, self._files)
        self._sets = SetTable(self._catalogue, self._files)
        self.close, self.witness = self._files.close, self._catalogue.witness
        self.children, self.find_set = self._sets.children, self._sets.find
        self.sets, self.births = self._sets.rows, self._sets.births
        self.origin_sets = self._sets.of_origin
        self.has_set = self._sets.exists
        figures = FigureTable(self._catalogue, self._files)
        self.figures, self.publishes = figures.read, figures.publishes
        self.collections = figures.collections

    def pointer(self) -> Pointer:
        """Read the pointer again at each call; it is empty before the first publish."""
        return self._catalogue.pointer()

    def manifest(self, snapshot: int) -> Manifest:
        """Return a snapshot's manifest. Raises MissingObject if the snapshot was retired."""
        return self._catalogue.manifest(snapshot)

    def size(self, manifest: Manifest, selection: RecordSelection) -> int:
        """Return the number of records of the list (see Repository.size)."""
        shares = record_rows.span_shares(manifest, selection.span)
        if selection.set is None:
            counts: Sequence[tuple[int, str, int]] = [
                (s.number, kind, n) for s in manifest.sequences for kind, n in s.records.items()
            ]
        else:
            counts = self._sets.listing(manifest, selection.set).counts
        return sum(
            round(n * shares.get(number, 0))
            for number, kind, n in counts
            if kind in selection.kinds
        )

    def page(
        self,
        manifest: Manifest,
        selection: RecordSelection,
        limit: int,
        *,
        headers: bool,
        fields: Collection[str] | None = None,
    ) -> Sequence[PublishedRecord]:
        """Return the first `limit` records of the selection, by position."""
        names = record_rows.columns(
            headers=headers, of_set=selection.set is not None, fields=fields
        )
        pages: list[Page] = []
        missing = limit
        for part in self._ranges(manifest, selection):
            for file, groups in self._runs(manifest, part, selection.set, limit):
                if missing <= 0:
                    return self._fill(manifest, pages, fields, headers=headers)
                for read in self._read(manifest, selection, part, file, groups, missing, names):
                    if read["position"]:
                        page = record_rows.page(read, manifest.sequences, selection.set)
                        pages.append(page)
                        missing -= len(page)
        return self._fill(manifest, pages, fields, headers=headers)

    def reach(self, manifest: Manifest, selection: RecordSelection, groups: int) -> int:
        """Return the last position of what so many row groups hold (see Repository.reach)."""
        for part in self._ranges(manifest, selection):
            for _, run in self._runs(manifest, part, selection.set, 1):
                for group in run:
                    groups -= 1
                    if not groups:
                        end = record_rows.position_in_key(group.last, selection.set, part.last)
                        return min(end, selection.span.last)
        return selection.span.last

    def record(
        self, manifest: Manifest, identifier_: str, *, fields: Collection[str] | None = None
    ) -> PublishedRecord | None:
        """Return the item's listed version, or None if it is not in the snapshot.

        It is the one with the highest position, because only a later version supersedes one.
        """
        names = record_rows.columns(headers=False, of_set=False, fields=fields)
        for place in reversed(self.versions(manifest, identifier_)):
            publish = record_rows.publish_of(manifest, place)
            if publish is None or not any(publish.records.values()):
                continue
            for version in self.singles.find(manifest, (place,), names).values():
                if version["identifier"] == identifier_:
                    rows = {name: [value] for name, value in version.items()}
                    page = record_rows.page(rows, manifest.sequences, None)
                    (record,) = self._fill(manifest, [page], None, headers=False)
                    return record
        return None

    def versions(self, manifest: Manifest, identifier: str) -> tuple[int, ...]:
        """Return the positions of an item's versions that the snapshot knows, ascending.

        Compaction removes superseded versions.
        """
        key = oai_name.lookup_key(identifier)
        positions: set[int] = set()
        for file, groups in self._catalogue.groups(manifest, "lookup", key, key):
            for keys, places in self._files.plain("lookup", file, groups):
                positions.update(places[bisect_left(keys, key) : bisect_right(keys, key)])
        return tuple(sorted(positions))

    def template_files(
        self, manifest: Manifest, handle: str, gathered: Mapping[str, str]
    ) -> Sequence[ObjectLife]:
        """Return the life of a template, if it is known, and then of each file that it names.

        `gathered` has the ids of stored files by URL.
        """
        blocks = self._catalogue.groups(manifest, "refipo", handle, handle)
        rows = self._files.look_up(_FILES_OF, blocks, handle=handle)
        named = [(url, gathered.get(url, id_)) for url, id_ in rows]
        ids = sorted({handle, *(id_ for _, id_ in named if id_)})
        spans: dict[tuple[str, str], tuple[Any, ...]] = {}
        homes = {
            file.key: (file, groups)
            for id_ in ids
            for file, groups in self._catalogue.groups(manifest, "obi", id_, id_)
        }
        for file, _ in homes.values():
            for id_, kind, *life in self._files.rows(_LIFE, file, ids=ids):
                spans[id_, kind] = tuple(life)
        stored = [id_ for id_, kind in spans if kind == "fobi"]
        versions = (self._catalogue.groups(manifest, "version", id_, id_) for id_ in stored)
        sizes = dict(self._files.look_up(_BYTES, chain.from_iterable(versions), ids=stored))
        own = spans.get((handle, "tobi"))
        lives = [ObjectLife("", own[0], own[1], own[2], own[3])] if own else []
        for url, id_ in named:
            found_at, noted, lost, versions, digest = spans.get((id_ or "", "fobi"), _NEVER)
            lives.append(
                ObjectLife(url, found_at, noted, lost, versions, sizes.get(digest), digest)
            )
        return lives

    def source_rows(
        self, manifest: Manifest, table: str, source: str, limit: int
    ) -> Sequence[Mapping[str, Any]]:
        """Return up to `limit` rows of `sources` or `faults` about an archive file."""
        details: list[Mapping[str, Any]] = []
        for file, groups in self._catalogue.groups(manifest, table, source, source):
            rows = self._files.rows(
                _OF_SOURCE, file, groups, source=source, limit=limit - len(details)
            )
            details += [dict(zip(schema.names(table), row, strict=True)) for row in rows]
        return details

    def _fill(
        self,
        manifest: Manifest,
        pages: Sequence[Page],
        fields: Collection[str] | None,
        *,
        headers: bool,
    ) -> Sequence[PublishedRecord]:
        """Join the pages and add the fields of records from their documents."""
        if not pages:
            return ()
        page = pages[0] if len(pages) == 1 else Page.join(pages)
        names = None if headers else record_rows.lacking(page)
        if names is None:
            return page
        kinds = {*page.column("kind")}
        kind = find_kind(kinds.pop())
        if not kinds and kind.is_read_in_parts:
            return DocumentPage.of(page, kind, fields)
        texts: dict[str, str] = {}
        sql = f"SELECT * FROM {FILE} WHERE list_contains($names, identifier)"
        if names:
            homes = self._catalogue.groups(manifest, "documents", names[0], names[-1])
            texts = dict(self._files.look_up(sql, homes, names=names))
        return tuple(record_rows.fill_documents(page, texts))

    def _ranges(self, manifest: Manifest, selection: RecordSelection) -> Iterator[Range]:
        """Yield the ranges of the selection, without publishes that have no records left."""
        span = selection.span
        if selection.set is None:
            parts: tuple[Range, ...] = (Range(span.first, span.last, copied=False),)
            living = record_rows.living_sequences(manifest, selection.kinds)
        else:
            listing = self._sets.listing(manifest, selection.set)
            parts = listing.ranges
            living = {number for number, kind, _ in listing.counts if kind in selection.kinds}
        stretches = record_rows.find_spans(manifest, living, selection.kinds)
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
        needed = float(limit)
        if spec is not None and not part.copied:
            needed *= _SLACK / self._sets.density(manifest, spec)
        for file, groups in bounds:
            start = 0
            while start < len(groups):
                rows, end = 0, start
                while end < len(groups) and (rows < needed or end == start):
                    rows += record_rows.estimate_rows(groups[end], part)
                    end += 1
                    if end - start == _MOST:
                        break
                yield file, groups[start:end]
                start = end

    def _read(
        self,
        manifest: Manifest,
        selection: RecordSelection,
        part: Range,
        file: DataFile,
        groups: Sequence[RowGroup],
        limit: int,
        names: tuple[str, ...],
    ) -> Iterator[Columns]:
        low = record_rows.position_in_key(groups[0].first, selection.set, part.first)
        high = record_rows.position_in_key(groups[-1].last, selection.set, part.last)
        first, last = max(part.first, low), min(part.last, high)
        whole: Sequence[Columns] = ()
        is_chosen = selection.prefix is not None or selection.filter is not None
        if limit > 1 and not is_chosen and _is_whole(groups, selection.set, part):
            with suppress(engine.OutOfMemory):  # very long values: only the page's rows fit
                whole = self._files.by_group(names, file, groups, first)
        for read in whole:
            chosen = self._choose(manifest, read, selection, Span(first, last), limit)
            yield chosen
            limit -= len(chosen["position"])
            self._expect(names, file, groups[-1], read, chosen)
        if whole:
            return
        values: dict[str, Any] = {"first": first, "last": last, "kinds": list(selection.kinds)}
        conditions = ["position BETWEEN $first AND $last", "list_contains($kinds, kind)"]
        if selection.set is not None:
            conditions.append("listing = $set" if part.copied else _IN_SET)
            values["set"] = selection.set
        conditions += _came_in_format(selection, names, values)
        if selection.filter is not None:
            from functions.reading.record_filter import write_conditions  # no harvest has a filter

            for condition, parameter in write_conditions(selection.filter):
                conditions.append(condition)
                values |= parameter
        dead = [self._files.path(file) for file, _ in self._dead(manifest, first, last)]
        if dead:
            conditions.append(_LIVE)
            values["dead"] = dead
        where = " AND ".join(conditions)
        yield self._files.columns(names, file, groups, where, limit, **values)

    def _choose(
        self, manifest: Manifest, read: Columns, selection: RecordSelection, span: Span, limit: int
    ) -> Columns:
        """Return the first `limit` rows of a row group that belong to the selection."""
        positions, kinds = read["position"], read["kind"]
        start = bisect_left(positions, span.first)
        end = bisect_right(positions, span.last)
        dead: set[int] = set()
        if limit and start < end:
            for file, groups in self._dead(manifest, positions[start], positions[end - 1]):
                for columns in self._files.by_group(("position",), file, groups, 0, entire=True):
                    dead.update(columns["position"])
        if not dead and {*kinds[start:end]} <= {*selection.kinds}:
            end = min(end, start + limit)
            return {name: column[start:end] for name, column in read.items()}
        chosen = [
            row
            for row in range(start, end)
            if positions[row] not in dead and kinds[row] in selection.kinds
        ][:limit]
        return {name: [column[row] for row in chosen] for name, column in read.items()}

    def _expect(
        self,
        names: tuple[str, ...],
        file: DataFile,
        group: RowGroup,
        read: Columns,
        chosen: Columns,
    ) -> None:
        """Read ahead the next row group of the file if the next page probably needs it."""
        count = len(chosen["position"])
        left = group.rows - bisect_right(read["position"], chosen["position"][-1]) if count else 0
        if 0 < left < 2 * count and group is not file.groups[-1]:
            self._files.read_ahead(names, file, file.groups[file.groups.index(group) + 1])

    def _dead(
        self, manifest: Manifest, first: int, last: int
    ) -> Iterator[tuple[DataFile, Sequence[RowGroup]]]:
        return self._catalogue.groups(manifest, "dead", first, last)


def _came_in_format(
    selection: RecordSelection, names: Sequence[str], values: dict[str, Any]
) -> Iterator[str]:
    """Yield the condition that rows may be available in the selection's format, if it has one.

    Adds the parameter to `values`. In the JSON of a document, only the prefix of a record, and of a
    format that ended, stands between such quotes.
    """
    if selection.prefix is not None and DOCUMENT in names:
        prefix = re.escape(selection.prefix)
        values["came"] = rf'"prefix"\s*:\s*"{prefix}"|"ended"\s*:\s*\[[^\]]*"{prefix}"'
        left = "FALSE" if selection.set is None else _LEFT_SET
        came = f"kind NOT IN {_IN_FORMATS} OR regexp_matches({DOCUMENT}, $came)"
        yield f"(deleted OR {left} OR {came})"


def _is_whole(groups: Sequence[RowGroup], spec: str | None, part: Range) -> bool:
    """Return whether all rows of the row groups are of the list and thus worth caching."""
    if not part.copied:
        return spec is None
    bounds = [bound for group in groups for bound in (group.first, group.last)]
    return all(isinstance(bound, tuple) and bound[0] == spec for bound in bounds)
