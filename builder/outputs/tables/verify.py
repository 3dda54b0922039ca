"""Checks of the tables: their objects exist, and are those that were written."""

import hashlib
from collections.abc import Iterator
from datetime import datetime

from builder.outputs.tables import avro, clean
from builder.outputs.tables import index as keys
from builder.outputs.tables.index import FOLDER, INDEX, TablesIndex
from builder.outputs.tables.metadata import describe_table
from builder.outputs.tables.table import digest_schemas
from builder.store.findings import Finding
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Writer


def table_findings(store: Writer, pointer: Pointer, now: datetime) -> Iterator[Finding]:
    """Yield what is wrong with the tables. Raises StoreError if the store cannot be read."""
    try:
        index = TablesIndex.from_json(store.read(INDEX))
    except MissingObject:
        return
    except DamagedStore as error:
        yield Finding("table-altered", INDEX, str(error))
        return
    newest = pointer.newest()
    if newest is not None and index.snapshot < newest.snapshot:
        problem = f"it ends with snapshot {index.snapshot}, and the newest is {newest.snapshot}"
        yield Finding("tables-behind", INDEX, problem)
    if index.location != store.address:
        problem = f"its paths begin with {index.location}, and the store is at {store.address}"
        yield Finding("tables-moved", INDEX, problem)
    if index.schemas != digest_schemas():
        yield Finding("tables-behind", INDEX, "an earlier Sheaf wrote it, with other columns")
    else:
        yield from _check_metadata(store, index)
    yield from _check_objects(store, index)
    for key in clean.list_strays(store, now):
        yield Finding("orphan", key, f"{INDEX} does not name it")


def _check_metadata(store: Writer, index: TablesIndex) -> Iterator[Finding]:
    """Check that each hint names metadata of the snapshots of the index.

    Hints are written before the index. An update that died in between leaves them ahead of it.
    """
    for name in index.snapshots:
        expected = {keys.hint_key(name): str(index.version).encode()}
        expected[keys.metadata_key(name, index.version)] = describe_table(index, name)
        for named, data in expected.items():
            content = _read(store, named)
            if isinstance(content, Finding):
                yield content
            elif content != data:
                is_ahead = content.isdigit() and int(content) > index.version
                if is_ahead and store.tag(keys.metadata_key(name, int(content))) is not None:
                    yield Finding("tables-behind", named, f"it is ahead of {INDEX}")
                else:
                    yield Finding("table-altered", named, "its content differs from the index")


def _check_objects(store: Writer, index: TablesIndex) -> Iterator[Finding]:
    """Check that lists, manifests and files of deletes exist and match their names.

    The metadata that hints named before is checked too: readers may still use it.
    """
    for key, digest in index.earlier.items():
        data = _read(store, key)
        if isinstance(data, Finding):
            yield data
        elif hashlib.sha256(data).hexdigest() != digest:
            yield Finding("table-altered", key, "its content differs from the index")
    named = {snapshot.key for table in index.snapshots.values() for snapshot in table}
    # A list names manifests, a manifest files: a damaged one hides only what it alone names.
    for find in (
        lambda entry: entry["manifest_path"],
        lambda entry: entry["data_file"]["file_path"],
        None,
    ):
        below: set[str] = set()
        for key in sorted(named):
            digest = key.rpartition("/")[2].partition(".")[0]
            data = _read(store, key)
            if isinstance(data, Finding):
                yield data
            elif not hashlib.sha256(data).hexdigest().startswith(digest):
                yield Finding("table-altered", key, "its content does not match its name")
            elif find is not None:
                paths = (str(find(entry)) for entry in avro.read_entries(data))
                below.update(path.removeprefix(f"{index.location}/") for path in paths)
        named = {key for key in below if key.startswith(FOLDER)}


def _read(store: Writer, key: str) -> bytes | Finding:
    """Return an object that the index names, or what is wrong with it."""
    try:
        return store.read(key)
    except MissingObject:
        return Finding("table-missing", key, f"{INDEX} names it, but it does not exist")
    except DamagedStore as error:
        return Finding("table-altered", key, str(error))
