"""The table of sets of a snapshot: which sets exist, their records and positions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from functions.reading.record_rows import Range
from functions.reading.repository import SetRow
from functions.snapshot.manifest import DataFile, Key, Manifest
from functions.store.catalog import Cache, Catalogue
from functions.store.files import FILE, Files

_SETS = f"""
SELECT set_spec, records, live, list_min(list_transform(counts, lambda c: c.sequence)),
    list_max(list_transform(counts, lambda c: c.sequence)), name
FROM {FILE} WHERE set_spec > $after AND {{condition}} ORDER BY set_spec LIMIT $limit
"""
_LIVELY = "(live > 0) = $live"
_LIVELY_BEFORE = (
    "turns[1] <= $sequence AND (len(list_filter(turns, lambda t: t <= $sequence)) % 2 = 1) = $live"
)
_CHILDREN = "starts_with(set_spec, $within) AND len(string_split(set_spec, ':')) = $depth"
_NAMES = f"SELECT set_spec, name FROM {FILE} WHERE set_spec > $after ORDER BY ALL LIMIT $limit"
_BIRTHS = f"SELECT set_spec, turns[1] FROM {FILE} WHERE list_contains($specs, set_spec)"


@dataclass(frozen=True, slots=True)
class Listing:
    """A set's listing: records by sequence and kind, and the ranges of their positions."""

    counts: tuple[tuple[int, str, int], ...]
    ranges: tuple[Range, ...]


class SetTable:
    """Reads the table of sets and caches recent results. Thread-safe."""

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue = catalogue
        self._files = files
        self._cache = Cache()

    def rows(
        self,
        manifest: Manifest,
        after: str,
        limit: int,
        sequence: int | None = None,
        *,
        live: bool = True,
    ) -> tuple[SetRow, ...]:
        """Return up to `limit` sets whose specification sorts behind `after`."""
        sets: list[SetRow] = []
        values: dict[str, Any] = {"after": after}
        condition = "true"
        if sequence is not None:
            past = any(s.number > sequence for s in manifest.sequences[-1:])
            condition = _LIVELY_BEFORE if past else _LIVELY
            values |= {"live": live} | ({"sequence": sequence} if past else {})
        for file, _ in self._catalogue.groups(manifest, "sets", after, None):
            sets += self._select(manifest, file, condition, limit - len(sets), values)
            if len(sets) >= limit:
                break
        return tuple(sets)

    def of_origin(self, manifest: Manifest, after: str, limit: int) -> Sequence[tuple[str, str]]:
        """Return up to `limit` sets of a mirror's origin behind `after`, each with its name."""
        sets: list[tuple[str, str]] = []
        for file, groups in self._catalogue.groups(manifest, "origin_sets", after, None):
            sets += self._files.rows(_NAMES, file, groups, after=after, limit=limit - len(sets))
            if len(sets) >= limit:
                break
        return sets

    def children(
        self, manifest: Manifest, under: str, after: str, limit: int
    ) -> tuple[SetRow, ...]:
        """Return up to `limit` sets one level below `under` whose specification is behind `after`.

        Files that lie wholly below one of them are not read.
        """
        sets: list[SetRow] = []
        within = f"{under}:" if under else ""
        depth = within.count(":") + 1
        # `;` follows `:`, and no specification has it.
        start, end = max(within, after), f"{under};" if under else None

        def ancestor(spec: Key) -> str:
            return ":".join(str(spec).split(":")[:depth])

        for file, _ in self._catalogue.groups(manifest, "sets", start, end):
            first, last = file.groups[0].first, file.groups[-1].last
            if ancestor(first) == ancestor(last) != first:
                continue
            wanted = {"after": after, "within": within, "depth": depth}
            sets += self._select(manifest, file, _CHILDREN, limit - len(sets), wanted)
            if len(sets) >= limit:
                break
        return tuple(sets)

    def find(self, manifest: Manifest, spec: str) -> SetRow | None:
        """Return a set; None if it does not exist."""
        for file, _ in self._catalogue.groups(manifest, "sets", spec, spec):
            wanted = {"after": "", "spec": spec}
            for row in self._select(manifest, file, "set_spec = $spec", 1, wanted):
                return row
        return None

    def _select(
        self,
        manifest: Manifest,
        file: DataFile,
        condition: str,
        limit: int,
        values: Mapping[str, Any],
    ) -> list[SetRow]:
        publishes = manifest.sequences
        rows = self._files.rows(_SETS.format(condition=condition), file, limit=limit, **values)
        return [
            SetRow(
                spec,
                records,
                count,
                publishes[first - 1].effective,
                publishes[last - 1].effective,
                name,
            )
            for spec, records, count, first, last, name in rows
        ]

    def births(self, manifest: Manifest, specs: Sequence[str]) -> Mapping[str, int]:
        """Return those of the specifications that exist, with the sequence they began in."""

        def read() -> Mapping[str, int]:
            groups = self._catalogue.groups
            files = {f.key: f for s in specs for f, _ in groups(manifest, "sets", s, s)}
            rows = (self._files.rows(_BIRTHS, f, specs=list(specs)) for f in files.values())
            return dict(chain.from_iterable(rows))

        return self._cache.get((manifest.snapshot, tuple(specs)), read)

    def listing(self, manifest: Manifest, spec: str) -> Listing:
        """Return a set's listing; it is empty if the set does not exist."""

        def read() -> Listing:
            for file, groups in self._catalogue.groups(manifest, "sets", spec, spec):
                sql = f"SELECT counts, ranges FROM {FILE} WHERE set_spec = $set"
                for counts, ranges in self._files.rows(sql, file, groups, set=spec):
                    return Listing(
                        tuple((c["sequence"], c["kind"], c["records"]) for c in counts),
                        tuple(Range(r["first"], r["last"], r["copied"]) for r in ranges),
                    )
            return Listing((), ())

        return self._cache.get((manifest.snapshot, spec), read)

    def exists(self, manifest: Manifest, spec: str) -> bool:
        """Return whether the snapshot has the set."""
        return self.listing(manifest, spec).counts != ()

    def density(self, manifest: Manifest, spec: str) -> float:
        """Return the share of a set's own records in its ranges; the set must have records."""
        listing = self.listing(manifest, spec)
        within = sum(part.last - part.first + 1 for part in listing.ranges)
        return max(1, sum(records for _, _, records in listing.counts)) / max(1, within)
