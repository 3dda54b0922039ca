"""Avro files of Iceberg: manifests and manifest lists (the only file that imports fastavro).

fastavro writes what the small tables of fields below describe. PyIceberg was passed over: it reads
the footer of each data file, keeps a catalogue in a database, and takes 0.5 s to import.
"""

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from builder.outputs.tables.index import ManifestFile
from functions.snapshot.errors import describe_failure

_MAPS = (
    ("column_sizes", 108, 117, 118, "long"),
    ("value_counts", 109, 119, 120, "long"),
    ("null_value_counts", 110, 121, 122, "long"),
    ("nan_value_counts", 137, 138, 139, "long"),
    ("lower_bounds", 125, 126, 127, "bytes"),
    ("upper_bounds", 128, 129, 130, "bytes"),
)
DATA, DELETES = 0, 1
"""The content of a data file: rows, or positions of deleted rows."""


def _field(name: str, type_: Any, number: int, *, optional: bool = False) -> dict[str, Any]:
    if optional:
        return {"name": name, "type": ["null", type_], "default": None, "field-id": number}
    return {"name": name, "type": type_, "field-id": number}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _map_of(name: str, number: int, key: int, value: int, type_: str) -> dict[str, Any]:
    pair = _record(f"k{key}_v{value}", _field("key", "int", key), _field("value", type_, value))
    return _field(
        name, {"type": "array", "items": pair, "logicalType": "map"}, number, optional=True
    )


def _list_of(name: str, number: int, element: int, type_: Any) -> dict[str, Any]:
    return _field(
        name, {"type": "array", "items": type_, "element-id": element}, number, optional=True
    )


_DATA_FILE = _record(
    "r2",
    _field("content", "int", 134),
    _field("file_path", "string", 100),
    _field("file_format", "string", 101),
    _field("partition", _record("r102"), 102),
    _field("record_count", "long", 103),
    _field("file_size_in_bytes", "long", 104),
    *(_map_of(*row) for row in _MAPS),
    _field("key_metadata", "bytes", 131, optional=True),
    _list_of("split_offsets", 132, 133, "long"),
    _list_of("equality_ids", 135, 136, "int"),
    _field("sort_order_id", "int", 140, optional=True),
)
_ENTRY = _record(
    "manifest_entry",
    _field("status", "int", 0),
    _field("snapshot_id", "long", 1, optional=True),
    _field("sequence_number", "long", 3, optional=True),
    _field("file_sequence_number", "long", 4, optional=True),
    _field("data_file", _DATA_FILE, 2),
)
_SUMMARY = _record(
    "r508",
    _field("contains_null", "boolean", 509),
    _field("contains_nan", "boolean", 518, optional=True),
    _field("lower_bound", "bytes", 510, optional=True),
    _field("upper_bound", "bytes", 511, optional=True),
)
_COUNTS = (
    ("added_files_count", "int", 504),
    ("existing_files_count", "int", 505),
    ("deleted_files_count", "int", 506),
    ("added_rows_count", "long", 512),
    ("existing_rows_count", "long", 513),
    ("deleted_rows_count", "long", 514),
)
_LISTED = _record(
    "manifest_file",
    _field("manifest_path", "string", 500),
    _field("manifest_length", "long", 501),
    _field("partition_spec_id", "int", 502),
    _field("content", "int", 517),
    _field("sequence_number", "long", 515),
    _field("min_sequence_number", "long", 516),
    _field("added_snapshot_id", "long", 503),
    *(_field(*count) for count in _COUNTS),
    _list_of("partitions", 507, 508, _SUMMARY),
    _field("key_metadata", "bytes", 519, optional=True),
)
_ADDED = 1  # the status of an entry


def write_manifest(schema: Mapping[str, Any], content: int, files: Iterable[Any]) -> bytes:
    """Return a manifest of files, each as a mapping of the fields of `data_file`.

    Snapshot and sequence number are inherited, so that snapshots share manifests.
    """
    entries = [{"status": _ADDED, "data_file": {"partition": {}, **file}} for file in files]
    metadata = {
        "schema": json.dumps(schema),
        "schema-id": "0",
        "partition-spec": "[]",
        "partition-spec-id": "0",
        "format-version": "2",
        "content": "deletes" if content else "data",
    }
    return _write(_ENTRY, entries, metadata)


def write_list(location: str, files: Iterable[ManifestFile]) -> bytes:
    """Return a list of manifests in the store at `location`.

    All have the same sequence number: a position delete counts for files of its own and earlier
    numbers, and no file is ever listed again without the deletes that it needs.
    """
    entries = [
        {
            "manifest_path": f"{location}/{file.key}",
            "manifest_length": file.bytes,
            "partition_spec_id": 0,
            "content": file.content,
            "sequence_number": 1,
            "min_sequence_number": 1,
            "added_snapshot_id": 1,
            **{name: 0 for name, _, _ in _COUNTS},
            "added_files_count": file.files,
            "added_rows_count": file.rows,
        }
        for file in files
    ]
    return _write(_LISTED, entries, {"format-version": "2"})


def _write(schema: Mapping[str, Any], entries: list[Any], metadata: dict[str, str]) -> bytes:
    import fastavro

    sink = io.BytesIO()
    # The marker between blocks is usually random; equal content shall give equal bytes.
    fastavro.writer(
        sink,
        dict(schema),
        entries,
        codec="deflate",
        metadata=metadata,
        sync_marker=b"sheaf-sync-mark!",
    )
    return sink.getvalue()


def read_entries(data: bytes) -> list[Any]:
    """Return the entries of a manifest or a list. Raises ValueError if it is damaged."""
    import fastavro

    try:
        return list(fastavro.reader(io.BytesIO(data)))
    except (EOFError, IndexError, KeyError, TypeError, OSError) as error:
        raise ValueError(f"no Avro file: {describe_failure(error)}") from error
