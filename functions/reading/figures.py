"""Figures of the whole archive as pages show them.

All counts of captures are of live ones; bytes are those of their archived payloads.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from functions.snapshot.figure_rows import Counts, FacetCounts, FigureRows
from functions.snapshot.figure_tables import COUNTED, SHOWN
from functions.snapshot.manifest import Manifest


@dataclass(frozen=True, slots=True)
class ValueFigures:
    """Captures and bytes of a month (2007-11 or 2007; empty: no date), a host or a domain."""

    value: str
    captures: int
    bytes: int


@dataclass(frozen=True, slots=True)
class MediaTypeFigures:
    """Captures and bytes of a media type by HTTP status, which is None for captures without one.

    The type is declared, else detected. It is empty if unknown, and None for all other types.
    """

    media_type: str | None
    statuses: Mapping[int | None, Counts]

    @property
    def captures(self) -> int:
        """Captures with any status."""
        return sum(captures for captures, _ in self.statuses.values())

    @property
    def bytes(self) -> int:
        """Bytes with any status."""
        return sum(size for _, size in self.statuses.values())


@dataclass(frozen=True, slots=True)
class KindFigures:
    """What a publish changed of a kind of items, and how many there were after it.

    `added` items are new. `changed` ones got another version, and stayed live or stayed deleted.
    `deleted` ones became tombstones, or came as such. `restored` ones were deleted before. `live`
    and `gone` are the live and the deleted items of the whole store after it. None: unknown.
    """

    kind: str
    added: int | None
    changed: int | None
    deleted: int | None
    restored: int | None
    live: int | None
    gone: int | None


@dataclass(frozen=True, slots=True)
class PublishFigures:
    """A publish: its sequence number, its datestamp, and all kinds of items that there were."""

    sequence: int
    effective: datetime
    kinds: tuple[KindFigures, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a snapshot.

    `captures` and `bytes` are those of all live captures. `months` are sorted. `media_types`,
    `hosts` and `domains` (registered ones) are the SHOWN with most captures, most first; then the
    other media types follow as one, if there are any. `different` has the numbers of all `hosts`,
    `domains` and `media_types`. `kinds` has the numbers of live and of deleted items of each kind.
    `publishes` are the newest SHOWN, and at most as many earlier ones at equal distances, the
    oldest first.
    """

    captures: int
    bytes: int
    months: tuple[ValueFigures, ...]
    media_types: tuple[MediaTypeFigures, ...]
    hosts: tuple[ValueFigures, ...]
    domains: tuple[ValueFigures, ...]
    different: Mapping[str, int]
    kinds: Mapping[str, tuple[int, int]]
    publishes: tuple[PublishFigures, ...]


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


def _statuses(details: Mapping[str | None, Counts]) -> Mapping[int | None, Counts]:
    statuses = {int(detail) if detail else None: counts for detail, counts in details.items()}
    return dict(sorted(statuses.items(), key=lambda pair: (pair[0] is None, pair[0] or 0)))
