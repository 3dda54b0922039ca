"""Readers of the tables that know nothing but the specifications, and SQL of the snapshots."""

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro

from builder.outputs.tables.table import SNAPSHOTS, TABLES
from builder.snapshot.query import _STORED, statements
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue

COLUMNS = {table.name: [c.name for c in table.columns] for table in (*TABLES, SNAPSHOTS)}
Rows = list[tuple[Any, ...]]


class IcebergReader:
    """Reads a table's metadata as it is in effect, and the rows of its snapshots."""

    def __init__(self, store: Writer, name: str) -> None:
        self._store = store
        folder = f"tables/{name}/metadata"
        version = store.read(f"{folder}/version-hint.text").decode()
        self.metadata = json.loads(store.read(f"{folder}/v{version}.metadata.json"))
        self.snapshots = {s["snapshot-id"]: s for s in self.metadata["snapshots"]}

    def rows(self, snapshot: int | None = None, columns: Sequence[str] = ()) -> Rows:
        """Return all rows of a snapshot; the columns are by default those of the schema."""
        chosen = self.snapshots[snapshot or self.metadata["current-snapshot-id"]]
        columns = columns or [f["name"] for f in self.metadata["schemas"][0]["fields"]]
        data, deletes = [], []
        for listed in self._entries(chosen["manifest-list"]):
            for entry in self._entries(listed["manifest_path"]):
                (deletes if entry["data_file"]["content"] else data).append(entry["data_file"])
        gone: set[tuple[str, int]] = set()
        found: Rows = []
        with engine.connect() as connection:
            for file in deletes:
                rows = self._query(connection, "file_path, pos", file)
                assert {path for path, _ in rows} <= {one["file_path"] for one in data}
                gone.update(rows)
            for file in data:
                rows = self._query(connection, ", ".join(columns), file)
                found += [r for n, r in enumerate(rows) if (file["file_path"], n) not in gone]
        return found

    def _query(self, connection: engine.Connection, columns: str, file: dict[str, Any]) -> Rows:
        path = self._store.local(self._key(file["file_path"]))
        assert path.stat().st_size == file["file_size_in_bytes"]
        rows = connection.execute(
            f"SELECT {columns} FROM read_parquet($path, hive_partitioning = false)",
            {"path": str(path)},
        ).fetchall()
        assert len(rows) == file["record_count"]
        return rows

    def _entries(self, path: str) -> list[Any]:
        return list(fastavro.reader(io.BytesIO(self._store.read(self._key(path)))))

    def _key(self, path: str) -> str:
        root = f"{self._store.address}/"
        assert path.startswith(root)
        return path.removeprefix(root)


def view_rows(store: Writer, snapshot: int, name: str, columns: Sequence[str] = ()) -> Rows:
    """Return the rows of a snapshot's view, by default with the columns that the table has."""
    manifest = Catalogue(store).manifest(snapshot)
    selected = ", ".join(columns or COLUMNS[name])
    source = "records WHERE kind = 'capture' AND NOT deleted" if name == "captures" else name
    with engine.connect() as connection:
        connection.execute(statements(store, manifest, _STORED))
        return connection.execute(f"SELECT {selected} FROM {source}").fetchall()


def order(rows: Rows) -> Rows:
    return sorted(rows, key=repr)
