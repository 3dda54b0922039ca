"""Finds the record of the archiving of a dataset that is published."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from builder.filesets.strategies import record as records
from builder.filesets.strategies.keys import RECORD, prefix_of, version_prefix
from builder.filesets.strategies.record import KeepingRecord
from functions.snapshot.store import Writer


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """A record, and the key prefix that it is below."""

    base: str
    record: KeepingRecord


def find_record(store: Writer, fields: Mapping[str, Any]) -> KeptRecord | None:
    """Return the record with all the files in the document of a dataset, if it exists.

    It also has files that failed, or that were archived later. Without objects of its own (a WARC,
    archive.org), the prefix is looked for among those of the version. Raises FilesetError
    (error-store-verify) and StoreError.
    """
    files = fields.get("files") or ()
    wanted = {(file["path"], file.get("sha256")) for file in files}
    for base in sorted(set(_list_prefixes(store, fields, files))):
        found = records.read(store, base)
        if found and wanted and wanted <= {(f.path, f.sha256) for f in found.archived.manifest}:
            return KeptRecord(base, found)
    return None


def _list_prefixes(
    store: Writer, fields: Mapping[str, Any], files: Iterable[Mapping[str, Any]]
) -> Iterable[str]:
    own = {prefix_of(file["key"]) for file in files if file.get("key")} - {None}
    if own:
        return (base for base in own if base)
    names = (fields[name] for name in ("platform", "host", "id", "version"))
    keys = store.keys(version_prefix(*names))
    return (key.removesuffix(RECORD) for key in keys if key.endswith(f"/{RECORD}"))
