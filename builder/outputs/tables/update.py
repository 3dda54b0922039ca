"""Update of the tables after a change of the store's content (`publish.tables`).

Everything but the hints and the index is named by its content or by a number of its own, and is
written first. Then each table's `version-hint.text` names the new metadata, and last the index is
replaced by a conditional write. So no reader sees half a table. An interrupted update is done again
by the next one, from the index and the snapshots.
"""

import hashlib
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from builder.outputs.output import try_often
from builder.outputs.tables import index as keys
from builder.outputs.tables.index import FOLDER, INDEX, TablesIndex
from builder.outputs.tables.metadata import describe_table
from builder.outputs.tables.snapshot import SnapshotWriter
from builder.outputs.tables.table import digest_schemas
from builder.runtime import Runtime
from builder.snapshot import consistency, recovery
from builder.threads import map_requests
from functions.config.configuration import Configuration
from functions.snapshot.errors import Conflict, DamagedStore, MissingObject, StoreError
from functions.snapshot.manifest import Manifest
from functions.snapshot.seal import replace
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue

_KEPT = 1
"""Versions of metadata before the newest that stay, for readers that have just read a hint."""


def update_tables(store: Writer, configuration: Configuration, runtime: Runtime) -> None:
    """Bring the tables to the newest snapshot, or remove them if `publish.tables` is off.

    Raises Conflict if other processes updated them every time, and StoreError.
    """
    if configuration["publish.tables"]:
        refresh_tables(store, runtime)
    elif store.tag(INDEX) is not None:
        runtime.say("publish.tables is off: the tables in the store are removed")
        store.remove(INDEX)
        store.remove(*store.keys(FOLDER))


def refresh_tables(store: Writer, runtime: Runtime) -> None:
    """Bring the tables to the snapshots that are kept. Raises as `update_tables` does."""

    def update() -> None:
        tag = store.tag(INDEX)
        _refresh(store, runtime, read_index(store), tag)

    try_often(update, "the tables were")


def read_index(store: Writer) -> TablesIndex | None:
    """Return the index, None if it is missing or damaged, and the tables are made anew."""
    try:
        return TablesIndex.from_json(store.read(INDEX))
    except (MissingObject, DamagedStore):
        return None


def _refresh(store: Writer, runtime: Runtime, before: TablesIndex | None, tag: str | None) -> None:
    pointer, _ = recovery.current(store)
    newest = pointer.newest()
    if newest is None:
        return
    catalogue = Catalogue(store)
    manifest = catalogue.manifest(newest.snapshot)
    numbers = consistency.kept_snapshots(pointer, manifest.skipped)
    begun = _begin(store, manifest, before)
    state = begun.drop(numbers)
    wanted = [number for number in numbers if number > begun.snapshot]
    if before is not None and state == before and not wanted:
        return
    with (
        tempfile.TemporaryDirectory(prefix="sheaf-tables-") as scratch,
        engine.connect(threads=runtime.threads) as connection,
    ):
        writer = SnapshotWriter(store, catalogue, connection, Path(scratch), state)
        for number in wanted:
            try:
                writer.write(catalogue.manifest(number))
            except MissingObject:
                if not catalogue.pointer().is_retired(number):
                    raise
                continue  # expired meanwhile
            write_objects(store, writer.objects)
    _commit(store, writer.index, before, tag)


def _begin(store: Writer, manifest: Manifest, before: TablesIndex | None) -> TablesIndex:
    """Return the state to continue from; it is empty if paths or columns are others now."""
    fresh = TablesIndex(manifest.store, store.address, digest_schemas())
    if before is None:
        return fresh
    places = [(index.store, index.location, index.schemas) for index in (before, fresh)]
    if places[0] == places[1] and before.snapshot <= manifest.snapshot:
        return before
    return replace(fresh, version=before.version, tags=before.tags)


def write_objects(store: Writer, objects: dict[str, bytes]) -> None:
    """Write objects that are named by their content, and forget them."""
    for _ in store.create_all(list(objects.items())):
        pass
    objects.clear()


def _commit(store: Writer, index: TablesIndex, before: TablesIndex | None, tag: str | None) -> None:
    """Write the metadata, then the hints, then the index. Raises Conflict."""
    version = index.version + 1
    # Other metadata with this number was left by an interrupted update.
    while not _create_metadata(store, index, version):
        version += 1
    earlier = {}
    if before and before.version == version - 1:
        for name in filter(index.snapshots.__contains__, before.snapshots):
            key = keys.metadata_key(name, version - 1)
            # Another release may have described the columns otherwise.
            is_same = before.schemas == index.schemas
            with suppress(MissingObject, DamagedStore):  # what is lost must not stop an update
                metadata = describe_table(before, name) if is_same else store.read(key)
                earlier[key] = hashlib.sha256(metadata).hexdigest()
    named = {keys.hint_key(name): str(version).encode() for name in index.snapshots}
    tags = map_requests(lambda k: _replace(store, k, named[k], index.tags.get(k)), list(named))
    final = replace(
        index,
        version=version,
        tags=dict(zip(named, tags, strict=True)),
        earlier=earlier,
    )
    store.replace(INDEX, final.to_json(), tag)
    _remove_old(store, before, index.snapshots, version)


def _create_metadata(store: Writer, index: TablesIndex, version: int) -> bool:
    """Write a version of the metadata of all tables; return False if there is another one."""
    objects = {
        keys.metadata_key(name, version): describe_table(index, name) for name in index.snapshots
    }
    written = store.create_all(list(objects.items()))
    there = [key for key, new in zip(objects, written, strict=True) if not new]
    return all(store.read(key) == objects[key] for key in there)


def _replace(store: Writer, key: str, data: bytes, tag: str | None) -> str:
    """Replace an object whose tag should be `tag`, and return the new tag."""
    for _ in range(8):
        with suppress(Conflict):
            return store.replace(key, data, tag)
        tag = store.tag(key)
    raise Conflict(f"{key} was changed by other processes every time")


def _remove_old(
    store: Writer, before: TablesIndex | None, names: Collection[str], version: int
) -> None:
    """Remove metadata that no hint has named for a while, and tables that are no more."""
    if before is None:
        return
    gone = [name for name in before.snapshots if name not in names]
    with suppress(StoreError):  # `sheaf expire` removes what is left
        store.remove(
            *(keys.metadata_key(name, version - _KEPT - 1) for name in before.snapshots),
            *map(keys.hint_key, gone),
            *(keys.metadata_key(name, before.version) for name in gone),
        )
