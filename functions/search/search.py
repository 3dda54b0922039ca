"""Finds items by words in a snapshot's table of words and its records.

Hits come by rank (functions.search.words), then by points (functions.search.hits). The rank of an
item is that of its worst word. The table has the rows of a word by rank, so a search reads the best
ones first. Of each rank, it reads positions from the highest down, as many as one request allows,
and sorts these: a window. If all candidates are few, they are one window of all ranks, and the
total is exact. Runs of earlier versions of Sheaf have no ranks, and come with the lowest one.

A search reads the rarest words first, as far as the manifest tells. It reads further words only
while the remaining positions lie in more row groups of records than it may read. Other words,
phrases, excluded words and filters are compared in the records themselves. It reads a limited
amount, and returns where to continue.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from functions.kinds import WHOLE
from functions.reading.record_rows import DOCUMENT
from functions.reading.sets import SetTable
from functions.reading.singles import SingleVersions
from functions.search.hits import FoundRecord, SearchHit, examine, join_captures
from functions.search.place import EVERY, SearchPlace
from functions.search.postings import PREFIX_GROUPS, RankedPostings, ReadAllowance
from functions.search.query import WordQuery
from functions.search.ranges import Ranges, clip, highest, intersect, measure, meet, unite
from functions.search.words import SITE
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
_WINDOW = 512
"""Records after which a window ends, if there are more."""
_AT_ONCE = 512
"""Records that are read at once."""
_NAMES = (
    *("position", "identifier", "kind", "deleted", "sets", "url", "url_surtkey", "url_host_name"),
    *("url_host_registered_domain", "fetch_date", "fetch_status", "content_mime_type"),
    *("content_mime_detected", "title", DOCUMENT),
)


class NoWordsError(SheafError):
    """The snapshot has no table of words."""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Hits of a search. `after` is where the next search continues, None if there is no more.

    `total` is the number of the hits that were seen, which are all if `is_whole`; it is None if
    there were others before. `facets` counts these hits by kind, media type and year.
    """

    hits: tuple[SearchHit, ...]
    after: SearchPlace | None
    total: int | None
    is_whole: bool
    facets: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of the table, and the words of the query in it."""

    span: Span
    is_ranked: bool
    postings: Sequence[RankedPostings]


@dataclass(slots=True)
class _Search:
    """A search: its query, the runs with its words, the newest first, and what it may still read.

    `allowed` are the positions that the filters leave. `homes` are the row groups of records that
    were read, `groups` is how many others may be.
    """

    manifest: Manifest
    query: WordQuery
    runs: Sequence[_Run]
    budget: ReadAllowance
    allowed: Ranges
    homes: set[tuple[str, int]] = field(default_factory=set)
    groups: int = GROUPS

    @property
    def is_over(self) -> bool:
        """True if nothing more may be read."""
        return self.budget.left <= 0 or self.groups <= 0

    def take(self, file: DataFile, group: RowGroup) -> bool:
        """Count the reading of records; return False if they may not be read."""
        home = file.key, group.offset
        if home not in self.homes:
            if self.is_over and self.homes:  # a first row group always, to get on
                return False
            self.homes.add(home)
            self.groups -= 1
            self.budget.left -= 1
        return True


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
        self, manifest: Manifest, query: WordQuery, after: SearchPlace | None, limit: int
    ) -> SearchPage:
        """Return up to `limit` hits behind `after` (None: from the start), and where to continue.

        There may be fewer hits, even none, before the end. `after` stays valid in later snapshots.
        Raises NoWordsError and StoreError.
        """
        search = self._begin(manifest, query)
        last = manifest.last_position
        place = after or SearchPlace(EVERY if self._is_one_window(search) else SITE, last)
        hits: list[tuple[SearchHit, SearchPlace]] = []
        seen: list[SearchHit] = []
        following: SearchPlace | None = place
        while following is not None and len(hits) < limit:
            place = following
            records, low = self._scan(search, place)
            for record in join_captures(records):
                seen.append(record.hit)
                if not place.points or record.order < place.order:
                    at = SearchPlace(place.rank, place.high, low, *record.order)
                    hits.append((record.hit, at))
            if low > 1:
                following = SearchPlace(place.rank, low - 1)
            else:
                is_last = place.rank in (EVERY, 0)
                following = None if is_last else SearchPlace(place.rank - 1, last)
            if search.is_over:
                break
        is_whole = following is None and (after is None or place.rank == EVERY)
        end = hits[limit - 1][1] if len(hits) > limit else following
        return SearchPage(
            tuple(hit for hit, _ in hits[:limit]),
            end,
            len(seen) if is_whole or after is None else None,
            is_whole,
            _count_facets(seen),
        )

    def _begin(self, manifest: Manifest, query: WordQuery) -> _Search:
        """Return the search of a query. Raises NoWordsError."""
        if TABLE not in manifest.tables:
            raise NoWordsError("this store has no words yet: set search.words and publish")
        spans: dict[tuple[int, int], list[LeafReference]] = {}
        for leaf in manifest.tables[TABLE]:
            assert leaf.span is not None
            spans.setdefault(leaf.span, []).append(leaf)
        keys = dict.fromkeys(key for term in query.wanted for key in term.find_keys())
        runs = []
        for bounds, leaves in sorted(spans.items(), reverse=True):
            span = Span(*bounds)
            words = [
                RankedPostings(self._catalogue, self._files, leaves, span, *key) for key in keys
            ]
            if all(word.parts for word in words):
                usable = [w for w in words if not w.is_range or len(w.parts) <= PREFIX_GROUPS]
                runs.append(_Run(span, leaves[0].ranked, usable))
        budget = ReadAllowance(READS + RUN_READS * min(len(spans) - 1, MOST_RUNS))
        allowed = self._filter_positions(manifest, query, budget)
        return _Search(manifest, query, runs, budget, allowed)

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

    def _is_one_window(self, search: _Search) -> bool:
        """Return whether all ranks are searched at once: if no word is read, or few items match."""
        if not all(run.postings for run in search.runs):
            return True
        rarest = [min(run.postings, key=lambda word: word.rows(0)) for run in search.runs]
        if any(len(word.parts) > 1 for word in rarest) or 2 * len(rarest) > search.budget.left:
            return False
        positions: list[tuple[int, int]] = []
        for run in search.runs:
            window = clip(search.allowed, run.span.first, run.span.last)
            candidates, low = self._candidates(search, run, 0, window) if window else ((), 0)
            if window and low > window[0][0]:
                return False
            positions = [*candidates, *positions]
        most = min(GROUPS, search.budget.left)
        homes = islice(self._homes(search.manifest, "records", positions), most + 1)
        return measure(positions) <= _WINDOW and len([*homes]) <= most

    def _scan(self, search: _Search, place: SearchPlace) -> tuple[list[FoundRecord], int]:
        """Return the hits of a window, in no order, and its lowest position.

        Each turn covers positions down to the one from which on all is known.
        """
        records: list[FoundRecord] = []
        is_every, count = place.rank == EVERY, 0
        rank = 0 if is_every else place.rank
        for run in search.runs:
            first, last = max(run.span.first, place.low), min(run.span.last, place.high)
            window: Ranges = clip(search.allowed, first, last)
            if (rank and not run.is_ranked) or not all(word.has(rank) for word in run.postings):
                continue
            while window:
                if search.is_over:
                    return records, window[-1][1] + 1
                candidates, low = self._candidates(search, run, rank, window)
                for chunk in self._chunks(search, candidates):
                    if chunk is None or count > _WINDOW:
                        return records, window[-1][1] + 1
                    count += len(chunk)
                    records += (
                        record
                        for record in self._matching(search.manifest, search.query, chunk)
                        if is_every or record.rank == rank or not run.is_ranked
                    )
                    window = clip(window, window[0][0], chunk[-1] - 1)
                window = clip(window, window[0][0], low - 1) if window else ()
        return records, place.low

    def _candidates(
        self, search: _Search, run: _Run, rank: int, window: Ranges
    ) -> tuple[Ranges, int]:
        """Return positions that may match, and from where on these are all."""
        left, low = window, window[0][0]
        words = sorted(run.postings, key=lambda word: word.rows(rank))
        for number, word in enumerate(words):
            if number and (search.budget.left <= 1 or self._is_enough(search, left)):
                break
            read, start = word.read(rank, left, search.budget)
            low = max(low, start)
            left = clip(intersect(left, read), low, window[-1][1])
            if not left:
                break
        return left, low

    def _is_enough(self, search: _Search, left: Ranges) -> bool:
        """Return whether so many row groups of records have all positions, or very many of them."""
        groups = max(1, search.groups)
        homes = [g for _, g in islice(self._homes(search.manifest, "records", left), groups + 1)]
        if len(homes) <= groups:
            return True
        within = clip(left, homes[groups - 1].first, left[-1][1])  # type: ignore[arg-type]
        return measure(within) >= _DENSE

    def _chunks(self, search: _Search, candidates: Ranges) -> Iterator[Sequence[int] | None]:
        """Yield positions that are read together, descending; None where reading has to stop."""
        places: list[int] = []
        for file, group in self._homes(search.manifest, "records", candidates):
            if not search.take(file, group):
                yield from (places, None) if places else (None,)
                return
            near = clip(candidates, group.first, group.last)  # type: ignore[arg-type]
            places += highest(near, measure(near))
            while len(places) >= _AT_ONCE:  # neighbouring row groups are one request
                yield places[:_AT_ONCE]
                del places[:_AT_ONCE]
        if places:
            yield places

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


def _count_facets(hits: Sequence[SearchHit]) -> dict[str, dict[str, int]]:
    """Count hits by kind, media type and year, the most frequent first."""
    values = {
        "kind": (hit.kind for hit in hits),
        "media": (hit.media for hit in hits),
        "year": ((hit.date or "")[:4] for hit in hits),
    }
    return {
        name: {text: n for text, n in Counter(texts).most_common() if text}
        for name, texts in values.items()
    }
