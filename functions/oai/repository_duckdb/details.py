"""Rows that pages show of a record: its versions, and the archive file that it came from."""

from collections.abc import Mapping, Sequence
from typing import Any

from functions.database.files import FILE, Files
from functions.snapshot import oai_name, schema
from functions.snapshot.manifest import Manifest
from functions.store.catalog import Catalogue

_POSITIONS = f"SELECT position FROM {FILE} WHERE key = $key"
_OF_SOURCE = f"SELECT * FROM {FILE} WHERE source = $source ORDER BY ALL LIMIT $limit"


class DetailTables:
    """Reads the tables of look-ups, of sources and of faults. Thread-safe."""

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue = catalogue
        self._files = files

    def versions(self, manifest: Manifest, identifier: str) -> tuple[int, ...]:
        """Return the positions of an item's versions that the snapshot knows, ascending.

        Compaction removes superseded versions.
        """
        key = oai_name.lookup_key(identifier)
        found: set[int] = set()
        for file, groups in self._catalogue.groups(manifest, "lookup", key, key):
            found.update(place for (place,) in self._files.rows(_POSITIONS, file, groups, key=key))
        return tuple(sorted(found))

    def source_rows(
        self, manifest: Manifest, table: str, source: str, limit: int
    ) -> Sequence[Mapping[str, Any]]:
        """Return up to `limit` rows of `sources` or `faults` about an archive file."""
        found: list[Mapping[str, Any]] = []
        for file, groups in self._catalogue.groups(manifest, table, source, source):
            rows = self._files.rows(
                _OF_SOURCE, file, groups, source=source, limit=limit - len(found)
            )
            found += [dict(zip(schema.names(table), row, strict=True)) for row in rows]
        return found
