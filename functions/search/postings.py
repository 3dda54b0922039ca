"""Postings: the positions of words in one run of the table, found by few reads."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from functions.search import words
from functions.search.ranges import Ranges, clip, measure, meet, unite
from functions.snapshot.manifest import DataFile, LeafReference, RowGroup, Span
from functions.store.catalog import Catalogue
from functions.store.files import FILE, Files

PREFIX_GROUPS = 4
"""Row groups that the words of one beginning may take; those of more are looked up in records."""
_GAP = 1 << 19
"""Bytes between two row groups of a file that are read by one request."""

PROBE_GROUPS = 4
"""Row groups that one request reads to compare few positions."""
_FEW = 2048
"""Positions up to which rows are looked up by position, in place of reading all of a word."""
_MOST = 8192
"""Rows of a word that are read at once; more than a prefix has words at one position."""

# A local file is read as a whole, while a bucket's is cut into row groups: more rows do no harm.
_RANK = f"if(right(word, 1) <= chr({words.SITE}), ascii(right(word, 1)), 0)"
_OF_WORD = f"(FROM {FILE} WHERE word BETWEEN $first AND $last AND {_RANK} = $rank)"
_OF_ALL_RANKS = (
    f"SELECT {_RANK}, position, position + following FROM {FILE} "
    f"WHERE word BETWEEN $first AND $last LIMIT {_MOST + 1}"
)
_ROWS = (
    "SELECT position, least(position + following, $until) AS last "
    f"FROM {_OF_WORD} WHERE position <= $until AND position + following >= $since "
    f"ORDER BY last DESC, position DESC LIMIT {_MOST}"
)
_WANTED = "(SELECT unnest($places::BIGINT[]) AS place)"
_PROBE = (  # no two ranges of a word overlap
    f"SELECT place FROM {_WANTED} ASOF JOIN {_OF_WORD} r ON place >= r.position "
    "WHERE place <= r.position + following"
)
_PROBE_RANGE = (
    f"SELECT DISTINCT place FROM {_WANTED} JOIN {_OF_WORD} r "
    "ON place >= r.position AND place <= r.position + following"
)


@dataclass(slots=True)
class ReadAllowance:
    """The requests that one search may still make; what it has read is at hand."""

    left: int
    _read: set[tuple[str, int]] = field(default_factory=set)

    def take(self, file: DataFile, groups: Sequence[RowGroup]) -> bool:
        """Count the request for row groups of a file; return False if none is needed."""
        places = {(file.key, group.offset) for group in groups}
        is_new = not places <= self._read
        self._read |= places
        self.left -= is_new
        return is_new


@dataclass(frozen=True, slots=True)
class _Part:
    """A row group, and the positions of the word that it can hold."""

    file: DataFile
    group: RowGroup
    low: int
    high: int


class Postings:
    """The positions with a word between `first` and `last`, of a rank, in a run of the table."""

    def __init__(
        self,
        catalogue: Catalogue,
        files: Files,
        leaves: Sequence[LeafReference],
        span: Span,
        first: str,
        last: str,
        rank: int,
    ) -> None:
        self._files = files
        self._first, self._last, self._span, self._rank = first, last, span, rank
        self._cached: tuple[int, int, Ranges] | None = None
        groups = [
            (file, group)
            for leaf in leaves
            if leaf.first[0] <= last and leaf.last[0] >= first  # type: ignore[index]
            for file in catalogue.leaf(leaf).files
            for group in file.groups
            if group.first[0] <= last and group.last[0] >= first  # type: ignore[index]
        ]
        self.parts = [
            self._part(file, group, groups[number + 1][1] if number + 1 < len(groups) else None)
            for number, (file, group) in enumerate(groups)
        ]

    @property
    def is_range(self) -> bool:
        """True for a beginning of words: its positions are in no order."""
        return self._first != self._last

    @property
    def rows(self) -> int:
        """About how many rows the word has, as the manifest knows it."""
        whole = 0
        for group in (part.group for part in self.parts):
            is_alone = group.first[0] == group.last[0] == self._first  # type: ignore[index]
            whole += group.rows if is_alone else group.rows // 100
        return whole * (2 if self.is_range else 1)

    def fill(self, ranges: Ranges) -> None:
        """Keep the positions, which were read with those of other ranks."""
        self._cached = self._span.first, self._span.last, ranges

    def _part(self, file: DataFile, group: RowGroup, following: RowGroup | None) -> _Part:
        low, high = self._span.first, self._span.last
        if not self.is_range:
            assert isinstance(group.first, tuple)
            if group.first[0] == self._first:
                low = group.first[1]
            # No two rows of a word overlap.
            if following is not None and isinstance(following.first, tuple):
                high = following.first[1] - 1
        return _Part(file, group, low, high)

    def read(self, window: Ranges, budget: ReadAllowance) -> tuple[list[tuple[int, int]], int]:
        """Return the positions in the window, and from where on they are complete.

        The highest ones are read first, by one request; of a beginning of words, all its row
        groups. If the window has few positions, more row groups are read.
        """
        low, until = window[0][0], window[-1][1]
        if self._cached is not None and self._cached[0] <= low and until <= self._cached[1]:
            return clip(self._cached[2], low, until), low
        wanted = [part for part in self.parts if meet(window, part.low, part.high)]
        few = measure(window) <= _FEW
        most = PROBE_GROUPS if few or self.is_range else 1
        ranges: list[tuple[int, int]] = []
        word: dict[str, Any] = {"first": self._first, "last": self._last, "rank": self._rank}
        places = (
            [place for first, last in window for place in range(first, last + 1)] if few else ()
        )
        probe = _PROBE_RANGE if self.is_range else _PROBE
        while wanted:
            batch = [wanted.pop()]
            while wanted and len(batch) < most and wanted[-1].file.key == batch[0].file.key:
                if batch[0].group.offset - sum(wanted[-1].group.byte_range) > _GAP:
                    break
                batch.insert(0, wanted.pop())
            file, groups = batch[0].file, [part.group for part in batch]
            budget.take(file, groups)
            if few:
                rows = self._files.rows(probe, file, groups, **word, places=places)
                ranges += [(place, place) for (place,) in rows]
            else:
                rows = self._files.rows(_ROWS, file, groups, **word, since=low, until=until)
                ranges += [(first, last) for first, last in rows]
                if len(rows) == _MOST:
                    low = rows[-1][1] + 1
            if wanted and not self.is_range:
                low = max(low, batch[0].low)
                break
        positions = clip(unite(ranges), low, until)
        if not few:
            self._cached = low, until, positions
        return positions, low


class RankedPostings:
    """The positions with a word between `first` and `last` in a run of the table, by rank."""

    def __init__(
        self,
        catalogue: Catalogue,
        files: Files,
        leaves: Sequence[LeafReference],
        span: Span,
        first: str,
        last: str,
    ) -> None:
        self.is_range = first != last
        self._files, self._first = files, first
        self._last = last if self.is_range else words.with_rank(last, words.SITE)
        ranks = range(words.SITE + 1 if leaves[0].ranked else 1)
        bounds = [
            (first, last) if self.is_range else (words.with_rank(first, rank),) * 2
            for rank in ranks
        ]
        self._ranks = [
            Postings(catalogue, files, leaves, span, *bound, rank)
            for rank, bound in zip(ranks, bounds, strict=True)
        ]
        homes = {(p.file.key, p.group.offset): p for word in self._ranks for p in word.parts}
        self.parts = list(homes.values())
        self._is_read = False

    def rows(self, rank: int) -> int:
        """About how many rows the word has from that rank on."""
        return sum(word.rows for word in self._ranks[rank:])

    def has(self, rank: int) -> bool:
        """Return whether the word can have rows from that rank on, as far as the manifest tells."""
        return any(word.parts for word in self._ranks[rank:])

    def read(
        self, rank: int, window: Ranges, budget: ReadAllowance
    ) -> tuple[list[tuple[int, int]], int]:
        """Return the positions in the window from that rank on, and from where on all are there.

        Most words have all rows in one row group, which is read once.
        """
        if not self._is_read and len(self.parts) == 1:
            self._read_all(budget)
        self._is_read = True
        ranges: list[tuple[int, int]] = []
        low = window[0][0]
        for word in self._ranks[rank:]:
            if word.parts:
                more, start = word.read(window, budget)
                ranges += more
                low = max(low, start)
        return clip(unite(ranges), low, window[-1][1]), low

    def _read_all(self, budget: ReadAllowance) -> None:
        file, groups = self.parts[0].file, [self.parts[0].group]
        budget.take(file, groups)
        values = {"first": self._first, "last": self._last}
        rows = self._files.rows(_OF_ALL_RANKS, file, groups, **values)
        if len(rows) <= _MOST:
            for number, word in enumerate(self._ranks):
                word.fill(unite((low, high) for rank, low, high in rows if rank == number))
