"""Reads single versions of items by their positions: the way of every look-up.

The table of single versions gives them. What it does not have is read from the records: texts that
are too long for it, and runs that an earlier version of Sheaf wrote.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from functions.snapshot import layout, schema
from functions.snapshot.manifest import DataFile, Manifest, RowGroup, overlapping
from functions.store.catalog import Catalogue
from functions.store.columns import split_row
from functions.store.files import Files

_THERE = "position IN (SELECT unnest($places))"
_MOST = 8
"""Row groups of records that are read at once."""

Home = tuple[DataFile, Sequence[RowGroup], list[int]]
"""Row groups of a file, which are fetched at once, and the positions that they may hold."""


class SingleVersions:
    """Reads versions, superseded or not. Thread-safe; the methods raise StoreError."""

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue = catalogue
        self._files = files

    def find(
        self, manifest: Manifest, positions: Sequence[int], names: tuple[str, ...]
    ) -> Mapping[int, Mapping[str, Any]]:
        """Return these columns of the versions at ascending positions, as far as they exist.

        `names` are columns of records, and begin with the position.
        """
        versions: dict[int, Mapping[str, Any]] = {}
        others = names[1:]
        for place, text in self._rows(manifest, layout.SINGLES, positions):
            if (fields := split_row(others, schema.SINGLE, text)) is not None:
                versions[place] = {names[0]: place, **fields}
        left = [place for place in positions if place not in versions]
        for file, groups, near in self._homes(manifest, "records", left) if left else ():
            columns = self._files.columns(names, file, groups, _THERE, len(near), places=near)
            for row in zip(*columns.values(), strict=True):
                versions[row[0]] = dict(zip(names, row, strict=True))
        return versions

    def find_superseded(self, manifest: Manifest, positions: Sequence[int]) -> set[int]:
        """Return those of the ascending positions whose versions were superseded."""
        return {row[0] for row in self._rows(manifest, "dead", positions)}

    def _rows(
        self, manifest: Manifest, table: str, positions: Sequence[int]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a plain table at these positions, which its first column has."""
        for file, groups, near in self._homes(manifest, table, positions):
            read = self._files.plain(table, file, groups)
            for group, (places, *columns) in zip(groups, read, strict=True):
                for place in _within(near, group.first, group.last):
                    row = bisect_left(places, place)
                    if row < len(places) and places[row] == place:
                        yield place, *(column[row] for column in columns)

    def _homes(self, manifest: Manifest, table: str, positions: Sequence[int]) -> Iterator[Home]:
        """Yield the row groups that can hold the positions, with those positions."""
        for reference in manifest.tables.get(table, ()):
            if not _within(positions, reference.first, reference.last):
                continue
            for file in self._catalogue.leaf(reference).files:
                near = _within(positions, file.groups[0].first, file.groups[-1].last)
                groups = overlapping(file.groups, near[0], near[-1]) if near else ()
                homes = [(group, _within(near, group.first, group.last)) for group in groups]
                homes = [(group, places) for group, places in homes if places]
                most = _MOST if table == "records" else layout.SINGLE_FILE_GROUPS
                for begin in range(0, len(homes), most):
                    part = homes[begin : begin + most]
                    yield file, [g for g, _ in part], [p for _, places in part for p in places]


def _within(positions: Sequence[int], first: object, last: object) -> Sequence[int]:
    """Return those of the ascending positions between two bounds, both included."""
    assert isinstance(first, int)
    assert isinstance(last, int)
    return positions[bisect_left(positions, first) : bisect_left(positions, last + 1)]
