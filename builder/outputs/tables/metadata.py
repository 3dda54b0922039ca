"""Metadata files of Iceberg tables: a table with its schema and its snapshots."""

import json
import uuid

from builder.outputs.tables.index import FOLDER, TablesIndex, TableSnapshot
from builder.outputs.tables.table import SNAPSHOTS, TABLES

_TABLES = {table.name: table for table in (*TABLES, SNAPSHOTS)}
_UNPARTITIONED = 999  # the last id of a partition field where there is none


def describe_table(index: TablesIndex, name: str) -> bytes:
    """Return the metadata of a table as JSON. A snapshot has its number in the store as its id."""
    table, snapshots = _TABLES[name], index.snapshots[name]
    newest = snapshots[-1]
    mapping, last_id = table.mapping()
    whole = {
        "format-version": 2,
        "table-uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{index.store}/{name}")),
        "location": f"{index.location}/{FOLDER}{name}",
        "last-sequence-number": newest.number,
        "last-updated-ms": _find_instant(newest),
        "last-column-id": last_id,
        "current-schema-id": 0,
        "schemas": [table.schema()],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": _UNPARTITIONED,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {
            "schema.name-mapping.default": json.dumps(mapping),
            # Iceberg's vectorized reader for Spark lacks encodings of Parquet 2.
            "read.parquet.vectorization.enabled": "false",
        },
        "current-snapshot-id": newest.number,
        "refs": {"main": {"snapshot-id": newest.number, "type": "branch"}},
        "snapshots": [
            {
                "snapshot-id": snapshot.number,
                "sequence-number": snapshot.number,
                "timestamp-ms": _find_instant(snapshot),
                "manifest-list": f"{index.location}/{snapshot.key}",
                "summary": {"operation": "overwrite", "total-records": str(snapshot.rows)},
                "schema-id": 0,
            }
            for snapshot in snapshots
        ],
        "snapshot-log": [
            {"snapshot-id": snapshot.number, "timestamp-ms": _find_instant(snapshot)}
            for snapshot in snapshots
        ],
        "metadata-log": [],
    }
    return json.dumps(whole, separators=(",", ":")).encode()


def _find_instant(snapshot: TableSnapshot) -> int:
    return int(snapshot.effective.timestamp() * 1000)
