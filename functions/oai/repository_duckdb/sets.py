"""The table of sets of a snapshot: which sets exist, their records and positions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.database.files import FILE, Files
from functions.oai.repository import SetRow
from functions.oai.repository_duckdb.record_rows import Range
from functions.snapshot.manifest import Manifest
from functions.store.catalog import Cache, Catalogue

_SETS = f"""
SELECT set_spec, records, live, list_min(list_transform(counts, lambda c: c.sequence)),
    list_max(list_transform(counts, lambda c: c.sequence)), name
FROM {FILE} WHERE set_spec > $after AND {{condition}} ORDER BY set_spec LIMIT $limit
"""
_LIVELY = "(live > 0) = $live"
_LIVELY_BEFORE = (
    "turns[1] <= $sequence AND (len(list_filter(turns, lambda t: t <= $sequence)) % 2 = 1) = $live"
)
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
        found: list[SetRow] = []
        stamps = self.stamps(manifest)
        values: dict[str, Any] = {"after": after}
        condition = "true"
        if sequence is not None:
            past = any(s.number > sequence for s in manifest.sequences[-1:])
            condition = _LIVELY_BEFORE if past else _LIVELY
            values |= {"live": live} | ({"sequence": sequence} if past else {})
        sql = _SETS.format(condition=condition)
        for file, _ in self._catalogue.groups(manifest, "sets", after, None):
            rows = self._files.rows(sql, file, limit=limit - len(found), **values)
            found += [
                SetRow(spec, records, count, stamps[first], stamps[last], name)
                for spec, records, count, first, last, name in rows
            ]
            if len(found) >= limit:
                break
        return tuple(found)

    def births(self, manifest: Manifest, specs: Sequence[str]) -> Mapping[str, int]:
        """Return those of the specifications that exist, with the sequence they began in."""

        def read() -> Mapping[str, int]:
            groups = self._catalogue.groups
            files = {f.key: f for s in specs for f, _ in groups(manifest, "sets", s, s)}
            rows = (self._files.rows(_BIRTHS, f, specs=list(specs)) for f in files.values())
            return dict(row for some in rows for row in some)

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

    def density(self, manifest: Manifest, spec: str) -> float:
        """Return the share of a set's own records in its ranges; the set must have records."""
        listing = self.listing(manifest, spec)
        within = sum(part.last - part.first + 1 for part in listing.ranges)
        return max(1, sum(records for _, _, records in listing.counts)) / max(1, within)

    def stamps(self, manifest: Manifest) -> dict[int, datetime]:
        """Return the datestamps of a snapshot's sequences, by number."""
        return self._cache.get(
            (manifest.snapshot, None), lambda: {s.number: s.effective for s in manifest.sequences}
        )
