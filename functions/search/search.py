"""Finds items by words in a snapshot's table of words and its records.

Hits come by position, the highest first: the newest publish first, and of a publish the last URLs
first. A search reads the rarest words first, as far as the manifest tells. It reads further words
only while the remaining positions lie in more row groups of records than it may read. Other words,
phrases, excluded words and filters are compared in the records themselves. It reads a limited
amount, and returns where to continue.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from functions.kinds import WHOLE
from functions.reading.record_rows import DOCUMENT
from functions.reading.sets import SetTable
from functions.reading.singles import SingleVersions
from functions.search.hits import FoundRecord, HitCollector, SearchPage, examine
from functions.search.postings import PREFIX_GROUPS, Postings, ReadAllowance
from functions.search.query import WordQuery
from functions.search.ranges import Ranges, clip, highest, intersect, measure, meet, unite
from functions.snapshot import layout
from functions.snapshot.errors import SheafError
from functions.snapshot.manifest import DataFile, LeafReference, Manifest, RowGroup, Span
from functions.store.catalog import Catalogue
from functions.store.files import FILE, Files

TABLE = layout.WORDS
READS = 4
"""Requests that a search of one run makes at most, besides those for the manifest."""
RUN_READS, MOST_RUNS = 2, 4
"""Further requests for each further run, and how many runs give such."""
GROUPS = 3
"""Row groups of records that a search reads at most."""

_DENSE = 1024
"""Candidates in these row groups from which on it is faster to compare the records."""
_FIRST, _GROWTH, _MOST = 64, 4, 1024
"""Records that are read at once at first, the factor for the next time, and the most."""
_NAMES = (
    *("position", "identifier", "kind", "deleted", "sets", "url", "url_surtkey", "url_host_name"),
    *("fetch_date", "title", DOCUMENT),
)


class NoWordsError(SheafError):
    """The snapshot has no table of words."""


class WordSearch:
    """Finds items by words. Thread-safe.

    `catalogue` and `files` are those of the repository that serves the same store.
    """

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue = catalogue
        self._files = files
        self._sets = SetTable(catalogue, files)
        self._singles = SingleVersions(catalogue, files)

    def find(
        self, manifest: Manifest, query: WordQuery, after: int | None, limit: int
    ) -> SearchPage:
        """Return up to `limit` hits behind `after` (None: from the start), and where to continue.

        There may be fewer hits, even none, before the end. `after` stays valid in later snapshots.
        Raises NoWordsError and StoreError.
        """
        if TABLE not in manifest.tables:
            raise NoWordsError("this store has no words yet: set search.words and publish")
        spans: dict[tuple[int, int], list[LeafReference]] = {}
        for leaf in manifest.tables[TABLE]:
            assert leaf.span is not None
            spans.setdefault(leaf.span, []).append(leaf)
        runs = [(Span(*span), leaves) for span, leaves in sorted(spans.items())]
        budget = ReadAllowance(READS + RUN_READS * min(len(runs) - 1, MOST_RUNS))
        page = HitCollector(limit, GROUPS)
        until = manifest.last_position if after is None else after - 1
        allowed = self._filter_positions(manifest, query, budget)
        place = None
        for span, leaves in reversed(runs):
            window = clip(allowed, span.first, min(span.last, until))
            place = self._search_run(manifest, query, span, leaves, window, budget, page)
            if place is not None:
                break
        hits = tuple(page.hits())
        return SearchPage(hits, place, len(hits) if after is None and place is None else None)

    def _filter_positions(
        self, manifest: Manifest, query: WordQuery, budget: ReadAllowance
    ) -> list[tuple[int, int]]:
        """Return the positions that the filters leave, as far as they are known before records."""
        allowed = [(1, manifest.last_position)]
        if query.kind:
            kinds = [s for sequence in manifest.sequences for s in sequence.spans({query.kind})]
            allowed = intersect(allowed, unite((s.first, s.last) for s in kinds))
        if query.set and allowed:
            listing = self._sets.listing(manifest, query.set)
            allowed = intersect(allowed, unite((r.first, r.last) for r in listing.ranges))
            budget.left -= 1
        return allowed

    def _search_run(
        self,
        manifest: Manifest,
        query: WordQuery,
        span: Span,
        leaves: Sequence[LeafReference],
        window: Ranges,
        budget: ReadAllowance,
        page: HitCollector,
    ) -> int | None:
        """Add the hits of a run, the highest positions first; return where it was left, if it was.

        Each turn covers the window down to some position, from which on all is known.
        """
        if not window:
            return None
        keys = dict.fromkeys(key for term in query.wanted for key in term.find_keys())
        postings = [Postings(self._catalogue, self._files, leaves, span, *key) for key in keys]
        if not all(word.parts for word in postings):
            return None
        postings = [p for p in postings if not p.is_range or len(p.parts) <= PREFIX_GROUPS]
        postings.sort(key=lambda word: word.rows)
        while window:
            if budget.left <= 0 or page.groups_left <= 0:
                return window[-1][1] + 1
            candidates, low = self._candidates(manifest, postings, window, budget, page)
            place = self._read_records(manifest, query, candidates, budget, page)
            if place is not None:
                return place
            window = clip(window, window[0][0], low - 1)
        return None

    def _candidates(
        self,
        manifest: Manifest,
        postings: Sequence[Postings],
        window: Ranges,
        budget: ReadAllowance,
        page: HitCollector,
    ) -> tuple[Ranges, int]:
        """Return positions that may match, and from where on these are all."""
        left, low = window, window[0][0]
        for number, word in enumerate(postings):
            if number and (budget.left <= 1 or self._is_enough(manifest, left, page.groups_left)):
                break
            read, start = word.read(left, budget)
            low = max(low, start)
            left = clip(intersect(left, read), low, window[-1][1])
            if not left:
                break
        return left, low

    def _is_enough(self, manifest: Manifest, left: Ranges, groups: int) -> bool:
        """Return whether so many row groups of records have all positions, or very many of them."""
        homes = [g for _, g in islice(self._homes(manifest, "records", left), groups + 1)]
        if len(homes) <= groups:
            return True
        within = clip(left, homes[groups - 1].first, left[-1][1])  # type: ignore[arg-type]
        return measure(within) >= _DENSE

    def _read_records(
        self,
        manifest: Manifest,
        query: WordQuery,
        candidates: Ranges,
        budget: ReadAllowance,
        page: HitCollector,
    ) -> int | None:
        """Add the hits among the candidates; return where reading stopped, if it did."""
        for _, group in self._homes(manifest, "records", candidates):
            assert isinstance(group.first, int)
            assert isinstance(group.last, int)
            left = clip(candidates, group.first, group.last)
            is_first = page.groups_left == GROUPS
            is_over = page.is_full or page.groups_left <= 0 or budget.left <= 0
            if is_over and not is_first:
                return left[-1][1] + 1
            page.groups_left -= 1
            budget.left -= 1
            count = _FIRST
            while left:
                places = highest(left, count)
                count = min(count * _GROWTH, _MOST)
                for record in self._matching(manifest, query, places):
                    if not page.add(record):
                        return record.hit.position + 1
                left = clip(left, left[0][0], places[-1] - 1)
        return None

    def _matching(
        self, manifest: Manifest, query: WordQuery, places: Sequence[int]
    ) -> Iterator[FoundRecord]:
        """Yield the matching records at descending places."""
        positions = places[::-1]
        dead = self._singles.find_superseded(manifest, positions)
        living = [place for place in positions if place not in dead]
        records = self._singles.find(manifest, living, _NAMES)
        documents = self._documents(manifest, records.values())
        # Lazily, from the last row on: a full page needs no others.
        matches = (
            examine(query, records[place], documents) for place in living[::-1] if place in records
        )
        yield from filter(None, matches)

    def _documents(
        self, manifest: Manifest, records: Iterable[Mapping[str, Any]]
    ) -> Mapping[str, str]:
        """Return the documents, by identifier, of those items that do not hold them themselves."""
        wanted = sorted(
            {r["identifier"] for r in records if r["kind"] not in WHOLE and not r["deleted"]}
        )
        documents: dict[str, str] = {}
        sql = f"SELECT identifier, document FROM {FILE} WHERE list_contains($wanted, identifier)"
        groups = {
            file.key: file
            for name in wanted
            for file, _ in self._catalogue.groups(manifest, "documents", name, name)
        }
        for file in groups.values():
            documents |= self._files.rows(sql, file, wanted=wanted)
        return documents

    def _homes(
        self, manifest: Manifest, table: str, ranges: Ranges
    ) -> Iterator[tuple[DataFile, RowGroup]]:
        """Yield the row groups that can hold the positions, the highest first."""
        for leaf in reversed(manifest.tables.get(table, ())):
            if meet(ranges, leaf.first, leaf.last):  # type: ignore[arg-type]
                for file in reversed(self._catalogue.leaf(leaf).files):
                    for group in reversed(file.groups):
                        if meet(ranges, group.first, group.last):  # type: ignore[arg-type]
                            yield file, group
