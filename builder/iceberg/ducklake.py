"""Frozen DuckLake over the data files: `tables/sheaf.ducklake`, which DuckDB attaches.

It is a small database of DuckDB with the tables of DuckLake 1.0. Each update writes it anew, from
the last one and the new snapshots. Paths in it are relative to the store's root: a copied store
keeps its meaning, and readers name the root themselves (DATA_PATH). Deletes are the position
deletes of Iceberg, of which DuckLake reads only the positions.

https://ducklake.select/docs/stable/specification/introduction
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.iceberg.index import ListedFile, TablesIndex
from builder.iceberg.table import SNAPSHOTS, TABLES
from builder.snapshot.sql import Statements
from functions.database import engine
from functions.snapshot import instant
from functions.snapshot.layout import LAKE

_SQL = Statements(__file__)
_ATTACH = "ATTACH {} AS {} ({})"
_SMALL = "BLOCK_SIZE 16384, STORAGE_VERSION 'v1.2.0'"
"""Most tables have a few rows, and each takes whole blocks. DuckDB 1.2 and later read this."""
_TYPES = {
    # type in Iceberg: type in DuckLake
    "long": "int64",
    "int": "int32",
    "boolean": "boolean",
    "string": "varchar",
    "binary": "blob",
    "timestamp": "timestamp",
}


@dataclass(frozen=True, slots=True)
class LakeCatalogue:
    """Which data files and deletes the tables have in which snapshots, in a scratch database.

    `folder` is for scratch files.
    """

    connection: engine.Connection
    folder: Path

    @staticmethod
    def read(connection: engine.Connection, folder: Path, data: bytes | None) -> "LakeCatalogue":
        """Return the state of a catalogue; without one, no snapshot. Raises DamagedStore."""
        connection.execute(_SQL.get("scratch"))
        found = LakeCatalogue(connection, folder)
        if data is not None:
            with engine.reading(LAKE), found._attach("earlier", data, "READ_ONLY"):
                connection.execute(_SQL.get("load"))
        return found

    def add(self, snapshot: int, files: Iterable[ListedFile]) -> None:
        """Add a snapshot later than all others, with the files of all tables."""
        columns: dict[str, list[Any]] = {
            name: []
            for name in (
                *("table_name", "path", "rows", "bytes"),
                *("delete_path", "delete_rows", "delete_bytes"),
            )
        }
        for file in files:
            one = file.deletes
            deletes = (None, None, None) if one is None else (one.key, one.rows, one.bytes)
            row = (file.table, file.key, file.rows, file.bytes, *deletes)
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
        self.connection.execute(_SQL.get("listed"), columns)
        for name in ("end_files", "begin_files", "end_deletes", "begin_deletes"):
            self.connection.execute(_SQL.get(name), {"snapshot": snapshot})

    def list_files(self, snapshot: int) -> dict[str, set[tuple[str, str]]]:
        """Return for each table its data files in a snapshot, each with its deletes or ""."""
        found: dict[str, set[tuple[str, str]]] = {}
        for table, path, deletes in self.connection.execute(
            _SQL.get("shown"), {"snapshot": snapshot}
        ).fetchall():
            found.setdefault(table, set()).add((path, deletes or ""))
        return found

    def write(self, index: TablesIndex) -> bytes:
        """Return the catalogue of the snapshots of the index; others are dropped."""
        instants = {one.number: one.effective for some in index.snapshots.values() for one in some}
        for table in ("lake_files", "lake_deletes"):
            self.connection.execute(_SQL.get("drop", table=table), {"kept": [*instants]})
        with self._attach("lake", None, _SMALL) as path:
            self.connection.execute(_SQL.get("catalogue"))
            self._describe_tables(index)
            self.connection.execute(_SQL.get("numbered"))
            self.connection.execute(_SQL.get("fill"))
            values = {
                "number": sorted(instants),
                "effective": [instant.to_text(instants[number]) for number in sorted(instants)],
            }
            self.connection.execute(_SQL.get("snapshots"), values)
            self.connection.execute("CHECKPOINT lake")
        return path.read_bytes()

    def _describe_tables(self, index: TablesIndex) -> None:
        tables = [table for table in (*TABLES, SNAPSHOTS) if table.name in index.snapshots]
        names = [table.name for table in tables]
        ids = range(1, 1 + len(tables))
        made = [str(uuid.uuid5(uuid.NAMESPACE_URL, f"{index.store}/{name}")) for name in names]
        self.connection.execute(_SQL.get("tables"), {"id": [*ids], "uuid": made, "name": names})
        columns: dict[str, list[Any]] = {
            name: [] for name in ("table", "id", "name", "type", "parent", "meaning")
        }
        for number, table in zip(ids, tables, strict=True):
            for field in table.fields():
                for row in _describe_column(field):
                    for name, value in zip(columns, (number, *row), strict=True):
                        columns[name].append(value)
        meanings = columns.pop("meaning")
        self.connection.execute(_SQL.get("columns"), columns)
        values = {"table": columns["table"], "id": columns["id"], "meaning": meanings}
        self.connection.execute(_SQL.get("comments"), values)

    @contextmanager
    def _attach(self, name: str, data: bytes | None, options: str) -> Iterator[Path]:
        """Attach a scratch file under a name, with the bytes that it begins with."""
        path = self.folder / f"{name}.ducklake"
        if data is not None:
            path.write_bytes(data)
        self.connection.execute(_ATTACH.format(engine.quote(str(path)), name, options))
        try:
            yield path
        finally:
            self.connection.execute(f"DETACH {name}")


def _describe_column(field: Mapping[str, Any]) -> Iterator[tuple[int, str, str, int | None, str]]:
    """Yield id, name, type, parent and meaning of a column, then of the elements of a list."""
    type_ = field["type"]
    if isinstance(type_, str):
        yield field["id"], field["name"], _TYPES[type_], None, field["doc"]
    else:
        yield field["id"], field["name"], "list", None, field["doc"]
        yield type_["element-id"], "element", _TYPES[type_["element"]], field["id"], ""
