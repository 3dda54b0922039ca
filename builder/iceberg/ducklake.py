"""Frozen DuckLake over the data files: `tables/sheaf.ducklake`, which DuckDB attaches.

It is a small database of DuckDB with the tables of DuckLake 1.0. Each update adds its snapshots to
a scratch copy, which replaces it. Paths in it are relative to the store's root: a copied store
keeps its meaning, and readers name the root themselves (DATA_PATH). Deletes are the position
deletes of Iceberg, of which DuckLake reads only the positions.

https://ducklake.select/docs/stable/specification/introduction
"""

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from builder.iceberg.index import ListedFile
from builder.iceberg.table import SNAPSHOTS, TABLES, IcebergTable
from builder.snapshot.sql import Statements
from functions.database import engine
from functions.snapshot import instant
from functions.snapshot.layout import LAKE

_SQL = Statements(__file__)
_NEW = "BLOCK_SIZE 16384, STORAGE_VERSION 'v1.2.0'"
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
_DATA_FILE = {"table": "ducklake_data_file", "id": "data_file_id"}
_DELETE_FILE = {"table": "ducklake_delete_file", "id": "delete_file_id"}
_ROW_BITS = 32
"""Rows of a file are numbered from the file's number, shifted by this."""


@dataclass(frozen=True, slots=True)
class _KnownFile:
    """A data file of a snapshot: its number, and number and key of its deletes, if any."""

    number: int
    deletes: int | None
    deletes_key: str | None


@dataclass(frozen=True, slots=True)
class LakeCatalogue:
    """A scratch copy of the catalogue at `path`, attached as `lake`.

    Tables have their ids from `store`, the store's id.
    """

    connection: engine.Connection
    path: Path
    store: str

    @staticmethod
    def open(
        connection: engine.Connection, folder: Path, store: str, data: bytes | None
    ) -> "LakeCatalogue":
        """Attach a catalogue, or one without snapshots. Raises DamagedStore."""
        path = folder / "lake.ducklake"
        attach = f"ATTACH {engine.quote(str(path))} AS lake (RECOVERY_MODE no_wal_writes{{}})"
        if data is not None:
            path.write_bytes(data)
        with engine.reading(LAKE):
            connection.execute(attach.format(f", {_NEW}" if data is None else ""))
            if data is None:
                connection.execute(_SQL.get("create"))
        return LakeCatalogue(connection, path, store)

    def add(self, snapshot: int, effective: datetime, files: Iterable[ListedFile]) -> None:
        """Add a snapshot later than all others, with the files of all tables."""
        listed = {(file.table, file.key): file for file in files}
        tables = self._find_tables(dict.fromkeys(name for name, _ in listed))
        known = self._list_known(snapshot)
        ended = [one.number for key, one in known.items() if key not in listed]
        self._execute("end", {"snapshot": snapshot, "ids": ended}, **_DATA_FILE)
        undone = [
            one.deletes
            for key, one in known.items()
            if one.deletes is not None and one.deletes_key != _find_deletes(listed.get(key))
        ]
        self._execute("end", {"snapshot": snapshot, "ids": undone}, **_DELETE_FILE)
        ids = count(max((number for _, number in self._execute("snapshots")), default=1))
        fresh = {key: next(ids) for key in listed if key not in known}
        self._add_data_files(snapshot, tables, {n: listed[key] for key, n in fresh.items()})
        numbers = fresh | {key: one.number for key, one in known.items()}
        hidden = {
            next(ids): (numbers[key], file)
            for key, file in listed.items()
            if file.deletes is not None
            and (key in fresh or known[key].deletes_key != file.deletes.key)
        }
        self._add_delete_files(snapshot, tables, hidden)
        values = {"snapshot": snapshot, "effective": instant.to_text(effective), "next": next(ids)}
        self._execute("snapshot", values)

    def drop(self, kept: Collection[int]) -> None:
        """Drop all other snapshots, and the files that they alone have."""
        numbers = [number for number, _ in self._execute("snapshots") if number not in kept]
        if numbers:
            self._execute("drop_snapshots", {"numbers": numbers})
            self._execute("drop_files", table=_DELETE_FILE["table"])
            self._execute("drop_files", table=_DATA_FILE["table"])

    def list_files(self, snapshot: int) -> dict[str, set[tuple[str, str]]]:
        """Return for each table its data files in a snapshot, each with its deletes or ""."""
        found: dict[str, set[tuple[str, str]]] = {}
        for (table, path), one in self._list_known(snapshot).items():
            found.setdefault(table, set()).add((path, one.deletes_key or ""))
        return found

    def to_bytes(self) -> bytes:
        """Return the catalogue for the store. Raises StoreError if the disk is full."""
        self._execute("drop_statistics")
        self._execute("statistics")
        with engine.reading("the catalogue of DuckLake"):
            self.connection.execute("CHECKPOINT lake")
        return self.path.read_bytes()

    def _list_known(self, snapshot: int) -> dict[tuple[str, str], _KnownFile]:
        rows = self._execute("known_files", {"snapshot": snapshot})
        return {(name, path): _KnownFile(*one) for name, path, *one in rows}

    def _add_data_files(
        self, snapshot: int, tables: Mapping[str, int], files: Mapping[int, ListedFile]
    ) -> None:
        values = {
            "snapshot": snapshot,
            "ids": [*files],
            "table": [tables[file.table] for file in files.values()],
            "path": [file.key for file in files.values()],
            "rows": [file.rows for file in files.values()],
            "bytes": [file.bytes for file in files.values()],
            "first": [number << _ROW_BITS for number in files],
        }
        self._execute("data_files", values)

    def _add_delete_files(
        self,
        snapshot: int,
        tables: Mapping[str, int],
        files: Mapping[int, tuple[int, ListedFile]],
    ) -> None:
        deletes = [file.deletes for _, file in files.values() if file.deletes is not None]
        values = {
            "snapshot": snapshot,
            "ids": [*files],
            "table": [tables[file.table] for _, file in files.values()],
            "data_file": [number for number, _ in files.values()],
            "path": [one.key for one in deletes],
            "rows": [one.rows for one in deletes],
            "bytes": [one.bytes for one in deletes],
        }
        self._execute("delete_files", values)

    def _find_tables(self, names: Iterable[str]) -> dict[str, int]:
        """Return the ids of tables; new ones are described first."""
        known = dict(self._execute("tables"))
        new = [table for table in (*TABLES, SNAPSHOTS) if table.name in {*names} - known.keys()]
        if new:
            first = 1 + max(known.values(), default=0)
            made = {table.name: number for number, table in enumerate(new, start=first)}
            values = {
                "ids": [*made.values()],
                "uuid": [str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.store}/{n}")) for n in made],
                "name": [*made],
            }
            self._execute("add_tables", values)
            self._add_columns(new, made)
            self._execute("add_versions", {"first": first})
            self._execute("map_tables", {"first": first})
            self._execute("map_columns", {"first": first})
            known |= made
        return known

    def _add_columns(self, tables: Iterable[IcebergTable], ids: Mapping[str, int]) -> None:
        columns: dict[str, list[Any]] = {
            name: [] for name in ("table", "ids", "name", "type", "parent", "meaning")
        }
        for table in tables:
            for field in table.fields():
                for row in _describe_column(field):
                    for column, value in zip(
                        columns.values(), (ids[table.name], *row), strict=True
                    ):
                        column.append(value)
        meanings = columns.pop("meaning")
        self._execute("add_columns", columns)
        values = {"table": columns["table"], "ids": columns["ids"], "meaning": meanings}
        self._execute("add_comments", values)

    def _execute(
        self, name: str, values: Mapping[str, Any] | None = None, **fields: str
    ) -> Sequence[Any]:
        """Execute a statement and return its rows; with no `ids` there is nothing to do."""
        if values is not None and values.get("ids") == []:
            return []
        rows: list[Any] = self.connection.execute(_SQL.get(name, **fields), values).fetchall()
        return rows


def _find_deletes(file: ListedFile | None) -> str | None:
    return None if file is None or file.deletes is None else file.deletes.key


def _describe_column(field: Mapping[str, Any]) -> Iterator[tuple[int, str, str, int | None, str]]:
    """Yield id, name, type, parent and meaning of a column, then of the elements of a list."""
    type_ = field["type"]
    if isinstance(type_, str):
        yield field["id"], field["name"], _TYPES[type_], None, field["doc"]
    else:
        yield field["id"], field["name"], "list", None, field["doc"]
        yield type_["element-id"], "element", _TYPES[type_["element"]], field["id"], ""
