"""Iceberg tables: which there are, of which rows and columns of the store, and their schemas.

The specification is that of Apache Iceberg, format version 2. Data files have no field ids, so the
schema comes with a name mapping.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, groupby
from operator import attrgetter
from typing import Any

from functions.kinds import ROWS, WHOLE, ItemKind
from functions.snapshot import figure_tables, item_tables, obi, schema
from functions.snapshot.item_tables import Column

_TYPES = {
    # type of a column: type in Iceberg; a list ends with []
    "BIGINT": "long",
    "INTEGER": "int",
    "SMALLINT": "int",
    "BOOLEAN": "boolean",
    "VARCHAR": "string",
    "BLOB": "binary",
    "TIMESTAMP": "timestamp",
}
_ITEM = ("identifier", "sequence", "sets")


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """A table: name, the store's table with its rows, and its columns.

    If `kinds` is not empty, it has only the rows that are live items of these kinds. Then, and if
    `versioned`, superseded rows are deleted.
    """

    name: str
    source: str
    columns: tuple[Column, ...]
    kinds: frozenset[str] = frozenset()
    versioned: bool = False

    def fields(self) -> list[dict[str, Any]]:
        """Return the columns as fields of an Iceberg schema."""
        ids = count(1 + len(self.columns))
        fields = []
        for number, column in enumerate(self.columns, start=1):
            type_: Any = _TYPES[column.type.removesuffix("[]")]
            if column.type.endswith("[]"):
                type_ = {
                    "type": "list",
                    "element-id": next(ids),
                    "element": type_,
                    "element-required": False,
                }
            fields.append(
                {
                    "id": number,
                    "name": column.name,
                    "required": False,
                    "type": type_,
                    "doc": column.meaning,
                }
            )
        return fields

    def schema(self) -> dict[str, Any]:
        """Return the Iceberg schema."""
        return {"type": "struct", "schema-id": 0, "fields": self.fields()}

    def mapping(self) -> tuple[list[dict[str, Any]], int]:
        """Return the name mapping and the highest field id.

        It has each column of the data files, for engines refuse a file with another one. Columns
        that the table does not show have ids of their own.
        """
        ids = count(1 + len(self.columns))
        fields = [
            _map_column(column.name, column.type, chain([number], ids))
            for number, column in enumerate(self.columns, start=1)
        ]
        shown = {column.name for column in self.columns}
        hidden = [c for c in schema.TABLES.get(self.source, ()) if c.name not in shown]
        fields += [_map_column(column.name, column.type, ids) for column in hidden]
        return fields, next(ids) - 1

    def key_field(self) -> tuple[int, str] | None:
        """Return id and type of the column by which the rows are sorted, if it is a column here."""
        first = schema.ORDER[self.source][0] if self.source in schema.ORDER else ""
        for number, column in enumerate(self.columns, start=1):
            if column.name == first and column.type in ("BIGINT", "INTEGER", "VARCHAR"):
                return number, _TYPES[column.type]
        return None


def _map_column(name: str, type_: str, ids: Iterator[int]) -> dict[str, Any]:
    """Map a column of a data file with its parts: of a list, the elements, of a struct, all."""
    mapping: dict[str, Any] = {"field-id": next(ids), "names": [name]}
    if type_.endswith("[]"):
        mapping["fields"] = [_map_column("element", type_.removesuffix("[]"), ids)]
    elif type_.startswith("STRUCT("):
        parts = (part.split(" ") for part in type_[len("STRUCT(") : -1].split(", "))
        mapping["fields"] = [_map_column(part, kind, ids) for part, kind in parts]
    return mapping


def _choose(columns: tuple[Column, ...], *names: str) -> tuple[Column, ...]:
    return tuple(column for name in names for column in columns if column.name == name)


SNAPSHOTS = IcebergTable(
    "snapshots",
    "",
    (
        Column("sequence", "INTEGER", "number of the publish", "1"),
        Column("datestamp", "TIMESTAMP", "when it took effect, UTC", "2026-11-21 10:00:00"),
        Column("first_position", "BIGINT", "its first position", "1"),
        Column("last_position", "BIGINT", "its last position", "412"),
        Column("records", "BIGINT", "its records that are still listed", "409"),
    ),
)
"""The one table whose rows are not in a data file of the store: they are in the manifest."""


def _of_kinds(name: str, kinds: Sequence[ItemKind]) -> IcebergTable:
    columns = _choose(schema.ITEM, *_ITEM, *(("kind",) if len(kinds) > 1 else ()))
    own = kinds[0].columns if kinds[0].is_capture else (obi.DOCUMENT,)
    return IcebergTable(name, "records", (*columns, *own), frozenset(k.name for k in kinds), True)


_WHOLE = [kind for kind in ROWS if kind.table and kind.name in WHOLE]
TABLES = (
    IcebergTable("records", "records", schema.ITEM + schema.CONTENT, versioned=True),
    *(_of_kinds(name, [*kinds]) for name, kinds in groupby(_WHOLE, attrgetter("table"))),
    IcebergTable("sets", "sets", _choose(schema.SETS, "set_spec", "name", "records", "live")),
    IcebergTable("faults", "faults", schema.FAULT),
    IcebergTable("sources", "sources", schema.SOURCE),
    IcebergTable("publishes", "publishes", figure_tables.TABLES["publishes"]),
    *(IcebergTable(name, name, columns) for name, columns in item_tables.TABLES.items()),
    *(IcebergTable(name, name, columns) for name, columns in obi.TABLES.items()),
)
"""All tables but SNAPSHOTS. A store has those that ever had a row."""

OVER_RECORDS = tuple(table for table in TABLES if table.versioned)
OF_KINDS = tuple(table for table in OVER_RECORDS if table.kinds)


def digest_schemas() -> str:
    """Return a digest of all schemas: manifests of other schemas have other field ids."""
    schemas = [[table.name, table.fields()] for table in (*TABLES, SNAPSHOTS)]
    return hashlib.sha256(json.dumps(schemas).encode()).hexdigest()[:32]
