"""Figures of a snapshot: of the whole archive, of its publishes, and of its collections."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from functions.reading.repository import (
    CollectionFigures,
    Figures,
    KindFigures,
    MediaTypeFigures,
    PublishFigures,
    ValueFigures,
)
from functions.snapshot import schema
from functions.snapshot.errors import DamagedStore
from functions.snapshot.figure_rows import CHANGES, COLUMNS, TABLE, FacetCounts, FigureRows
from functions.snapshot.figure_tables import COUNTED, SHOWN
from functions.snapshot.manifest import Manifest
from functions.store.catalog import Cache, Catalogue
from functions.store.files import FILE, Files

_FIGURES = f"SELECT {', '.join(COLUMNS)} FROM {FILE}"
_PUBLISHES = (
    f"SELECT {', '.join(schema.names('publishes'))} FROM {FILE} "
    "WHERE sequence BETWEEN $first AND $last ORDER BY sequence, kind"
)
_LARGEST = (
    "SELECT document, min(document ->> '$.first_date') OVER (), "
    f"max(document ->> '$.last_date') OVER () FROM {FILE} "
    "ORDER BY (document ->> '$.captures')::BIGINT DESC NULLS LAST, identifier LIMIT $limit"
)
_FILES = 8
"""Files of documents that are read for the largest collections, of 4,096 documents each."""
_KEPT = 16  # results that are cached


class FigureTable:
    """Reads the tables of figures and of publishes, and caches recent results. Thread-safe."""

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue = catalogue
        self._files = files
        self._cache = Cache(_KEPT)

    def read(self, manifest: Manifest) -> Figures | None:
        """Return the figures of a snapshot; None if an earlier version of Sheaf published it."""

        def read() -> Figures | None:
            files = [*self._catalogue.files(manifest, TABLE)]
            rows = [row for file in files for row in self._files.rows(_FIGURES, file)]
            return compose(FigureRows.of(rows), manifest) if files else None

        return self._cache.get(manifest.snapshot, read)

    def publishes(
        self, manifest: Manifest, before: int | None, limit: int
    ) -> tuple[PublishFigures, ...]:
        """Return up to `limit` publishes with lower numbers than `before`, the newest first."""
        newest = len(manifest.sequences)
        last = newest if before is None else min(newest, before - 1)
        first = max(1, last - limit + 1)

        def read() -> tuple[PublishFigures, ...]:
            homes = self._catalogue.groups(manifest, "publishes", first, last)
            rows = self._files.look_up(_PUBLISHES, homes, first=first, last=last)
            if not rows:  # an earlier version of Sheaf published the snapshot
                rows = [
                    (s.number, kind, *(None,) * len(CHANGES))
                    for s in manifest.sequences[first - 1 : last]
                    for kind in sorted(s.records)
                ]
            return group_publishes(rows, manifest)[::-1]

        return self._cache.get((manifest.snapshot, first, last), read)

    def collections(self, manifest: Manifest, limit: int) -> CollectionFigures:
        """Return the collections with most captures (see Repository.collections).

        Only collections that are listed have a document of their own.
        """

        def read() -> CollectionFigures:
            files = islice(self._catalogue.files(manifest, "documents"), _FILES)
            rows = [row for file in files for row in self._files.rows(_LARGEST, file, limit=limit)]
            try:
                documents = [json.loads(text) for text, _, _ in rows]
            except ValueError as error:
                raise DamagedStore("the document of a collection is damaged") from error
            documents.sort(key=lambda fields: -(fields["captures"] or 0))
            return CollectionFigures(
                tuple(documents[:limit]),
                min((first for _, first, _ in rows if first), default=""),
                max((last for _, _, last in rows if last), default=""),
            )

        return self._cache.get((manifest.snapshot, "collections", limit), read)


def compose(rows: FigureRows, manifest: Manifest) -> Figures:
    """Return the figures of a snapshot from the rows of its table."""
    media = rows.facets["media_type"]
    return Figures(
        captures=media.captures,
        bytes=media.bytes,
        months=tuple(ValueFigures(month, *rows.months[month]) for month in sorted(rows.months)),
        media_types=tuple(_media_types(media)),
        hosts=_values(rows.facets["host"]),
        domains=_values(rows.facets["domain"]),
        different={COUNTED[name][0]: facet.different for name, facet in rows.facets.items()},
        kinds=dict(rows.kinds),
        publishes=group_publishes(rows.publishes, manifest),
    )


def group_publishes(
    rows: Iterable[Sequence[Any]], manifest: Manifest
) -> tuple[PublishFigures, ...]:
    """Return publishes from rows of their table, which are sorted."""
    return tuple(
        PublishFigures(
            number,
            manifest.sequences[number - 1].effective,
            tuple(KindFigures(*row[1:]) for row in of_publish),
        )
        for number, of_publish in groupby(rows, key=itemgetter(0))
    )


def _highest(facet: FacetCounts) -> list[str]:
    return sorted(facet.values, key=facet.rank)[:SHOWN]


def _values(facet: FacetCounts) -> tuple[ValueFigures, ...]:
    return tuple(ValueFigures(value, *facet.values[value][None]) for value in _highest(facet))


def _media_types(facet: FacetCounts) -> Iterable[MediaTypeFigures]:
    shown = {value: facet.values[value] for value in _highest(facet)}
    for value, details in shown.items():
        yield MediaTypeFigures(value, _statuses(details))
    every = facet.details(1, dict(facet.others))
    others = FacetCounts(values=shown).details(-1, every)
    if others:
        yield MediaTypeFigures(None, _statuses(others))


def _statuses(
    details: Mapping[str | None, tuple[int, int]],
) -> Mapping[int | None, tuple[int, int]]:
    statuses = {int(detail) if detail else None: counts for detail, counts in details.items()}
    return dict(sorted(statuses.items(), key=lambda pair: (pair[0] is None, pair[0] or 0)))
