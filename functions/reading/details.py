"""Rows that pages show of a record: its versions, and the archive file that it came from."""

from collections.abc import Mapping, Sequence
from typing import Any

from functions.reading.repository import ObjectLife
from functions.snapshot import oai_name, schema
from functions.snapshot.manifest import Manifest
from functions.store.catalog import Catalogue
from functions.store.files import FILE, Files

_POSITIONS = f"SELECT position FROM {FILE} WHERE key = $key"
_OF_SOURCE = f"SELECT * FROM {FILE} WHERE source = $source ORDER BY ALL LIMIT $limit"


_FILES_OF = f"SELECT url, id FROM {FILE} WHERE handle = $handle ORDER BY position"
_LIFE = (
    f"SELECT id, kind, found, noted, lost, versions FROM {FILE} "
    "WHERE list_contains($ids, id) AND kind IN ('tobi', 'fobi')"
)


class DetailTables:
    """Reads the tables of look-ups, of sources, of faults and of objects. Thread-safe."""

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue = catalogue
        self._files = files

    def versions(self, manifest: Manifest, identifier: str) -> tuple[int, ...]:
        """Return the positions of an item's versions that the snapshot knows, ascending.

        Compaction removes superseded versions.
        """
        key = oai_name.lookup_key(identifier)
        homes = self._catalogue.groups(manifest, "lookup", key, key)
        return tuple(sorted({p for (p,) in self._files.look_up(_POSITIONS, homes, key=key)}))

    def template_files(
        self, manifest: Manifest, handle: str, gathered: Mapping[str, str]
    ) -> Sequence[ObjectLife]:
        """Return the life of a template, if it is known, and then of each file that it names.

        `gathered` has the ids of stored files by URL.
        """
        blocks = self._catalogue.groups(manifest, "refipo", handle, handle)
        rows = self._files.look_up(_FILES_OF, blocks, handle=handle)
        named = [(url, gathered.get(url, id_)) for url, id_ in rows]
        ids = sorted({handle, *(id_ for _, id_ in named if id_)})
        spans: dict[tuple[str, str], tuple[Any, ...]] = {}
        homes = {
            file.key: (file, groups)
            for id_ in ids
            for file, groups in self._catalogue.groups(manifest, "obi", id_, id_)
        }
        for file, _ in homes.values():
            for id_, kind, *life in self._files.rows(_LIFE, file, ids=ids):
                spans[id_, kind] = tuple(life)
        lives = [ObjectLife("", *spans[handle, "tobi"])] if (handle, "tobi") in spans else []
        for url, id_ in named:
            lives.append(ObjectLife(url, *spans.get((id_ or "", "fobi"), (None, None, None, 0))))
        return lives

    def source_rows(
        self, manifest: Manifest, table: str, source: str, limit: int
    ) -> Sequence[Mapping[str, Any]]:
        """Return up to `limit` rows of `sources` or `faults` about an archive file."""
        details: list[Mapping[str, Any]] = []
        for file, groups in self._catalogue.groups(manifest, table, source, source):
            rows = self._files.rows(
                _OF_SOURCE, file, groups, source=source, limit=limit - len(details)
            )
            details += [dict(zip(schema.names(table), row, strict=True)) for row in rows]
        return details
