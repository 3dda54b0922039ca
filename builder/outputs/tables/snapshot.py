"""Snapshot of the Iceberg tables: its manifests and manifest lists, named by their content.

A leaf of the store has one manifest of data files in each table, and one of their deletes. Both are
shared by all snapshots with that leaf, as long as no row of it is superseded. So a publish writes
what it changed.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.outputs.tables import avro
from builder.outputs.tables.deletes import DeletedRows
from builder.outputs.tables.index import (
    FOLDER,
    FileDeletes,
    ManifestFile,
    TablesIndex,
    TableSnapshot,
)
from builder.outputs.tables.table import OVER_RECORDS, SNAPSHOTS, TABLES, IcebergTable
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import DataFile, LeafReference, Manifest
from functions.snapshot.seal import replace
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue
from functions.store.checked_files import CheckedFiles

_PATH_FIELD = 2147483546  # reserved for the column file_path of position deletes
_POSITIONS = f"SELECT position FROM {engine.table('$files')}"
_NEW_POSITIONS = f"{_POSITIONS} EXCEPT SELECT position FROM {engine.table('$gone')}"
_SEQUENCES = (
    "SELECT unnest($sequence::INTEGER[]) AS sequence, "
    "unnest($datestamp::TIMESTAMP[]) AS datestamp, "
    "unnest($first::BIGINT[]) AS first_position, unnest($last::BIGINT[]) AS last_position, "
    "unnest($records::BIGINT[]) AS records"
)
_BOUNDS = ("lower_bounds", "upper_bounds")
_Statement = tuple[str, Mapping[str, Any]]


@dataclass(slots=True)
class SnapshotWriter:
    """Writes one snapshot after the other into `objects`, which the caller stores.

    `index` is the state, which begins as that of the last update. `connection` is a database in
    memory and `folder` is for scratch files.
    """

    store: Writer
    catalogue: Catalogue
    connection: engine.Connection
    folder: Path
    index: TablesIndex
    objects: dict[str, bytes] = field(default_factory=dict)
    checked: CheckedFiles = field(init=False)

    def __post_init__(self) -> None:
        self.checked = CheckedFiles(self.store)

    def write(self, manifest: Manifest) -> None:
        """Add a snapshot to the tables. Raises StoreError."""
        leaves = manifest.tables.get("records", ())
        files = self._find_deletes(manifest, leaves)
        before = self.index.leaves
        manifests: dict[str, dict[str, tuple[ManifestFile, ...]]] = {}
        for reference in leaves:
            data = self.catalogue.leaf(reference).files
            same = all(files[f.key] == self.index.files.get(f.key) for f in data)
            if reference.key in before and same:
                manifests[reference.key] = dict(before[reference.key])
            else:
                manifests[reference.key] = {
                    table.name: self._write_leaf(table, data, files) for table in OVER_RECORDS
                }
        for table in TABLES:
            for reference in () if table.versioned else manifest.tables.get(table.source, ()):
                earlier = before.get(reference.key, {}).get(table.name)
                manifests.setdefault(reference.key, {})[table.name] = earlier or self._write_leaf(
                    table, self.catalogue.leaf(reference).files, {}
                )
        lists = {
            table.name: [
                listed
                for reference in manifest.tables.get(table.source, ())
                for listed in manifests[reference.key][table.name]
            ]
            for table in TABLES
        }
        lists[SNAPSHOTS.name] = [self._write_sequences(manifest)]
        self.index = replace(
            self.index,
            snapshot=manifest.snapshot,
            snapshots=self._list(manifest, lists),
            dead=tuple(file.key for file in self.catalogue.files(manifest, "dead")),
            files=files,
            leaves=manifests,
        )

    def _find_deletes(
        self, manifest: Manifest, leaves: Sequence[LeafReference]
    ) -> dict[str, FileDeletes]:
        """Return the deletes of each data file of records."""
        before, location = self.index.files, self.index.location
        deleted = DeletedRows(
            self.store, self.checked, self.connection, self.folder, location, self.objects
        )
        every = {f.key: f for leaf in leaves for f in self.catalogue.leaf(leaf).files}
        deletes = {key: before.get(key) or deleted.find_others(file) for key, file in every.items()}
        fresh = [leaf for leaf in leaves if leaf.key not in self.index.leaves]
        if candidates := list(self._list_candidates(manifest, fresh)):
            deletes |= deleted.find_superseded(list(every.values()), candidates, deletes)
        return deletes

    def _list_candidates(
        self, manifest: Manifest, fresh: Iterable[LeafReference]
    ) -> Iterator[_Statement]:
        """Yield statements that give the positions that may be superseded rows without a delete.

        These are the new superseded positions, and all that lie in the new leaves of records.
        """
        dead = list(self.catalogue.files(manifest, "dead"))
        if new := [file.key for file in dead if file.key not in self.index.dead]:
            gone = sorted(set(self.index.dead) - {file.key for file in dead})
            if earlier := self._find_paths(gone):
                yield _NEW_POSITIONS, {"files": self._find_paths(new), "gone": earlier}
            else:
                yield _POSITIONS, {"files": self._find_paths(new)}
        for leaf in fresh:
            met = [
                file.key for file in dead if leaf.meets(file.groups[0].first, file.groups[-1].last)
            ]
            if met:
                values = {"files": self._find_paths(met), "first": leaf.first, "last": leaf.last}
                yield f"{_POSITIONS} WHERE position BETWEEN $first AND $last", values

    def _find_paths(self, keys: Iterable[str]) -> list[str]:
        """Return the local paths of data files; one that was merged may be gone by now.

        Without it, more positions count as new, which takes longer but gives the same deletes.
        """
        paths = []
        for key in keys:
            with suppress(MissingObject):
                paths.append(str(self.checked.whole(key)))
        return paths

    def _write_leaf(
        self,
        table: IcebergTable,
        files: Sequence[DataFile],
        deletes: Mapping[str, FileDeletes],
    ) -> tuple[ManifestFile, ...]:
        """Write the manifests of a leaf in a table: of its data files, and of their deletes."""
        shown = [f for f in files if table.name not in _deletes_of(deletes, f).without]
        data = [
            self._describe(avro.DATA, file.key, file.rows, file.bytes) | _find_bounds(table, file)
            for file in shown
        ]
        hidden = [
            self._describe(avro.DELETES, delete.key, delete.rows, delete.bytes)
            | {
                name: [{"key": _PATH_FIELD, "value": self._locate(file.key).encode()}]
                for name in _BOUNDS
            }
            for file in shown
            if (delete := _deletes_of(deletes, file).find(table.name)) is not None
        ]
        return tuple(
            self._write_manifest(table, content, entries)
            for content, entries in ((avro.DATA, data), (avro.DELETES, hidden))
            if entries
        )

    def _locate(self, key: str) -> str:
        return f"{self.index.location}/{key}"

    def _describe(self, content: int, key: str, rows: int, size: int) -> dict[str, Any]:
        return {
            "content": content,
            "file_path": self._locate(key),
            "file_format": "PARQUET",
            "record_count": rows,
            "file_size_in_bytes": size,
        }

    def _write_manifest(
        self, table: IcebergTable, content: int, entries: Sequence[Mapping[str, Any]]
    ) -> ManifestFile:
        data = avro.write_manifest(table.schema(), content, entries)
        rows = sum(entry["record_count"] for entry in entries)
        return ManifestFile(self._keep(table.name, data), len(data), content, len(entries), rows)

    def _keep(self, table: str, data: bytes) -> str:
        key = f"{FOLDER}{table}/metadata/{hashlib.sha256(data).hexdigest()[:32]}.avro"
        self.objects[key] = data
        return key

    def _write_sequences(self, manifest: Manifest) -> ManifestFile:
        """Write the rows of the table `snapshots`, and their manifest."""
        path = self.folder / "snapshots.parquet"
        sequences = manifest.sequences
        self.connection.execute(
            f"COPY ({_SEQUENCES}) TO {engine.quote(str(path))} (FORMAT parquet, COMPRESSION zstd)",
            {
                "sequence": [s.number for s in sequences],
                "datestamp": [s.effective.replace(tzinfo=None) for s in sequences],
                "first": [s.first for s in sequences],
                "last": [s.last for s in sequences],
                "records": [sum(s.records.values()) for s in sequences],
            },
        )
        data = path.read_bytes()
        path.unlink()
        key = f"{FOLDER}{SNAPSHOTS.name}/data/{hashlib.sha256(data).hexdigest()[:32]}.parquet"
        self.objects[key] = data
        entry = self._describe(avro.DATA, key, len(sequences), len(data))
        return self._write_manifest(SNAPSHOTS, avro.DATA, [entry])

    def _list(
        self, manifest: Manifest, lists: Mapping[str, Sequence[ManifestFile]]
    ) -> dict[str, tuple[TableSnapshot, ...]]:
        """Write the manifest lists; a table begins with its first row."""
        snapshots = {}
        for name, manifests in lists.items():
            earlier = self.index.snapshots.get(name, ())
            if manifests or earlier:
                ordered = sorted(manifests, key=lambda file: file.content)
                data = avro.write_list(self.index.location, ordered)
                rows = sum(file.rows for file in manifests if file.content == avro.DATA)
                snapshot = TableSnapshot(
                    manifest.snapshot, manifest.effective, self._keep(name, data), rows
                )
                snapshots[name] = (*earlier, snapshot)
        return snapshots


def _find_bounds(table: IcebergTable, file: DataFile) -> dict[str, Any]:
    """Return the bounds of the sorted column of a data file, if it is a column of the table."""
    key, bounds = table.key_field(), (file.groups[0].first, file.groups[-1].last)
    if key is None or not all(isinstance(bound, int | str) for bound in bounds):
        return {}
    width = "<q" if key[1] == "long" else "<i"
    values = (struct.pack(width, b) if isinstance(b, int) else str(b).encode() for b in bounds)
    return {n: [{"key": key[0], "value": value}] for n, value in zip(_BOUNDS, values, strict=True)}


def _deletes_of(deletes: Mapping[str, FileDeletes], file: DataFile) -> FileDeletes:
    return deletes.get(file.key) or FileDeletes()
