"""Searches captures by SURT and date in the table of URLs and the records.

Each run of the table is sorted as a whole (schema.ORDER). A search reads each run from the start of
the range and merges them; runs with other bounds are skipped. A search reads a limited amount. It
may stop before the end of the range and then returns where to continue.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, islice
from typing import Any, cast

from functions.content.capture_row import FIELDS, CaptureRow
from functions.content.protocols import NEWEST, Bound, BytePlace, CapturePlace
from functions.reading.singles import SingleVersions
from functions.snapshot import schema
from functions.snapshot.manifest import DataFile, LeafReference, Manifest, RowGroup
from functions.store.catalog import Catalogue
from functions.store.files import FILE, Files

GROUPS = 256
"""Row groups of the table that one search reads, besides the first of each run."""
TABLE = "urls"

_LONGEST = schema.SURT_LONGEST
_BATCH = 4096  # candidates whose records are read together
_HIGHEST = 2**63 - 1
_FIRST = BytePlace("", -1, -1)
_DECLARED = "content_digest_declared"
_NAMES = ("position", "identifier", "sets", *FIELDS)
_SAME = 64  # captures of a payload that are read
_OF_KEY = f"SELECT position FROM {FILE} WHERE key = $key ORDER BY moment, position LIMIT {_SAME}"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A row of the table.

    With `mark`, it is a place instead, and all rows before it were returned.
    """

    place: BytePlace
    mark: bool = False


@dataclass(slots=True)
class _Window:
    """The searched part of the table, the start, and the remaining row groups that may be read."""

    first: str
    last: str
    since: int
    until: int
    reverse: bool
    start: BytePlace
    left: int
    end: Bound | None = None

    @property
    def bounds(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """The lowest and the highest bound of its rows."""
        low, cut = (self.first[:_LONGEST], self.since), self.last[:_LONGEST]
        high = (cut, _HIGHEST if len(self.last) > _LONGEST else -1)
        if self.last[:-1] == self.first and self.last[-1:] <= " ":  # a single SURT
            high = (self.first[:_LONGEST], self.until)
        if self.reverse:
            return low, min(high, self.start[:2])
        if self.end is not None:
            high = min(high, (self.end[0], self.end[1] - 1))
        return max(low, self.start[:2]), high

    def rows(
        self, files: Files, file: DataFile, group: RowGroup, start: BytePlace
    ) -> Iterator[_Candidate]:
        """Yield its rows in a row group behind `start`, in order."""
        ((surts, stamps, positions),) = files.plain(TABLE, file, (group,))
        low, high = self.bounds

        def find_key(row: int) -> tuple[str, int]:
            return surts[row], stamps[row]

        begin = bisect_left(range(len(surts)), low, key=find_key)
        end = bisect_right(range(len(surts)), high, key=find_key)
        for row in range(begin, end)[:: -1 if self.reverse else 1]:
            if self.since <= stamps[row] <= self.until:
                place = BytePlace(surts[row], stamps[row], positions[row])
                if place < start if self.reverse else place > start:
                    yield _Candidate(place)

    def holds(self, capture: CaptureRow) -> bool:
        """Return whether a capture is in the range; for a long SURT, its row cannot decide this."""
        return len(capture.surt) < _LONGEST or self.first <= capture.surt < self.last


class CaptureSearch:
    """Finds the live captures of a snapshot by SURT and date. Thread-safe.

    A range includes the SURT `first` but not `last`. `since` and `until` are dates in 14 digits,
    both included (a capture without a date has 0). The order is by the first schema.SURT_LONGEST
    characters of the SURT, then date, then position. The methods raise StoreError. `catalogue` and
    `files` are those of the repository that serves the same store.
    """

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue = catalogue
        self._files = files
        self._singles = SingleVersions(catalogue, files)

    def captures(
        self,
        manifest: Manifest,
        first: str,
        last: str,
        after: BytePlace | None,
        limit: int,
        since: int = 0,
        until: int = NEWEST,
        *,
        reverse: bool = False,
    ) -> Sequence[CaptureRow]:
        """Return the first `limit` captures of the range behind `after`; fewer only at its end.

        `reverse` is as in `page`.
        """
        captures: list[CaptureRow] = []
        while len(captures) < limit:
            left = limit - len(captures)
            page = self.page(manifest, first, last, after, left, since, until, reverse=reverse)
            captures += page.captures
            after = page.after
            if after is None:
                break
        return captures

    def page(
        self,
        manifest: Manifest,
        first: str,
        last: str,
        after: BytePlace | None,
        limit: int,
        since: int = 0,
        until: int = NEWEST,
        *,
        reverse: bool = False,
        end: Bound | None = None,
    ) -> CapturePlace:
        """Return up to `limit` captures of the range behind `after`, and where to continue.

        The range ends at `end` at the latest, which `reverse` does not support. In `reverse` order,
        captures come from the end, and they lie before `after`. A call reads a limited amount, so
        it may return fewer than `limit` captures, even 0, before the end of the range.
        """
        first_place = BytePlace(last[:_LONGEST], _HIGHEST, _HIGHEST) if reverse else _FIRST
        start = after or first_place
        window = _Window(first, last, since, until, reverse, start, GROUPS, end)
        candidates = self._merge(manifest, window)
        captures: list[CaptureRow] = []
        place: BytePlace | None = None
        while len(captures) < limit:
            chunk = list(islice(candidates, min(limit - len(captures), _BATCH)))
            rows = [candidate.place for candidate in chunk if not candidate.mark]
            captures += self._resolve(manifest, window, rows)
            if chunk:
                place = chunk[-1].place
            if not chunk or chunk[-1].mark:
                break
        following = next(candidates, None)
        is_over = following is None and not (chunk and chunk[-1].mark)
        return CapturePlace(tuple(captures), None if is_over else place)

    def starts(
        self, manifest: Manifest, first: str, last: str, since: int = 0, until: int = NEWEST
    ) -> Sequence[Bound]:
        """Return where the blocks of the range begin, ascending; empty if it has no rows.

        Between two of them there is at most one row group of each run of the table. This reads only
        the manifest's leaves.
        """
        window = _Window(first, last, since, until, False, _FIRST, 0)
        groups = self._groups(manifest.tables.get(TABLE, ()), window)
        return sorted({max(window.bounds[0], cast(Bound, group.first)) for _, group in groups})

    def with_digest(self, manifest: Manifest, digest: str) -> Sequence[CaptureRow]:
        """Return captures, but no revisits, with a payload digest as records have it, by date.

        It is read from few rows of the table by which a publish finds the originals of revisits
        (builder.snapshot.match_keys).
        """
        hashed = int(hashlib.sha1(digest.encode()).hexdigest()[:16], 16)
        former = (1 << 40) + (hashed >> 24)  # as earlier versions of Sheaf wrote it
        positions: set[int] = set()
        for key in (former, (1 << 41) + (former >> 8)):
            blocks = self._catalogue.groups(manifest, "originals", key, key)
            positions.update(row[0] for row in self._files.look_up(_OF_KEY, blocks, key=key))
        captures = self._living(manifest, positions, (*_NAMES, _DECLARED)).values()
        same = (c for c in captures if digest in (c["content_digest"], c[_DECLARED]))
        return sorted(map(_row, same), key=lambda row: (row.date or "", row.position))

    def matching(self, pattern: str, texts: Sequence[str], whole: bool) -> Sequence[bool]:
        """Return for each text whether an RE2 expression matches it, wholly or anywhere.

        Raises QueryError for an invalid expression.
        """
        return self._files.matching(pattern, texts, whole=whole)

    def _merge(self, manifest: Manifest, window: _Window) -> Iterator[_Candidate]:
        """Yield the rows of all runs, in order, up to the first mark."""
        references = manifest.tables.get(TABLE, ())
        spans = [tuple(leaves) for _, leaves in groupby(references, key=lambda leaf: leaf.span)]
        runs = [self._run(leaves, window) for leaves in spans]
        for candidate in merge(
            *runs, key=lambda candidate: candidate.place, reverse=window.reverse
        ):
            yield candidate
            if candidate.mark:
                return

    def _run(self, leaves: Sequence[LeafReference], window: _Window) -> Iterator[_Candidate]:
        """Yield the rows of one run, in order; a mark when its limit of reads is reached."""
        last, is_begun = window.start, False
        for file, group in self._groups(leaves, window):
            if is_begun and window.left <= 0:
                mark = _mark(group, last, reverse=window.reverse)
                if mark != window.start:  # otherwise the next search would repeat this one
                    yield _Candidate(mark, mark=True)
                    return
            window.left -= is_begun
            is_begun = True
            for candidate in window.rows(self._files, file, group, last):
                last = candidate.place
                yield candidate

    def _groups(
        self, leaves: Sequence[LeafReference], window: _Window
    ) -> Iterator[tuple[DataFile, RowGroup]]:
        low, high = window.bounds
        step = -1 if window.reverse else 1
        for reference in leaves[::step]:
            if reference.meets(low, high):
                for file in self._catalogue.leaf(reference).files[::step]:
                    for group in file.groups[::step]:
                        if not (group.last < low or group.first > high):  # type: ignore[operator]
                            yield file, group

    def _resolve(
        self, manifest: Manifest, window: _Window, places: Sequence[BytePlace]
    ) -> Iterator[CaptureRow]:
        """Yield the captures of rows, without superseded versions."""
        versions = self._living(manifest, {position for _, _, position in places}, _NAMES)
        for _, _, position in places:
            if (fields := versions.get(position)) is not None:
                capture = _row(fields)
                if window.holds(capture):
                    yield capture

    def _living(
        self, manifest: Manifest, positions: Set[int], names: tuple[str, ...]
    ) -> Mapping[int, Mapping[str, Any]]:
        """Return these columns of the versions at positions, without superseded ones."""
        dead = self._singles.find_superseded(manifest, sorted(positions))
        return self._singles.find(manifest, sorted(positions - dead), names)


def _row(fields: Mapping[str, Any]) -> CaptureRow:
    sets = tuple(fields["sets"] or ())
    return CaptureRow.of(fields["identifier"], fields["position"], sets, fields)


def _mark(group: RowGroup, last: BytePlace, *, reverse: bool) -> BytePlace:
    """Return the place from which a run was not read: the beginning of a row group.

    It is not before the `last` returned row, because many captures can have the same second.
    """
    bound = group.last if reverse else group.first
    assert isinstance(bound, tuple)
    if reverse:
        return min(BytePlace(bound[0], bound[1], _HIGHEST), last)
    return max(BytePlace(bound[0], bound[1], 0), last)
