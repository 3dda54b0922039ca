"""Snapshots of earlier schemas: manifest and views of each are written anew, beside the first."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from builder.runtime import Advance, Runtime
from builder.snapshot import consistency, views
from builder.snapshot.commit import inline_leaves
from builder.snapshot.draft import Draft
from builder.store.findings import Finding
from builder.upgrade import documents
from builder.upgrade.data_files import FileConversion
from functions.snapshot import layout
from functions.snapshot.errors import VERSION, DamagedStore, MissingObject
from functions.snapshot.manifest import DataFile, Leaf, LeafReference, Manifest, Span
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue


def read_manifest(store: Writer, number: int) -> tuple[Manifest, bool]:
    """Return the newest manifest of a snapshot, and whether it is of an earlier schema.

    Raises MissingObject, NewerSchema or DamagedStore.
    """
    key = layout.manifest_key(number)
    found = documents.parse(store.read(key), key)
    for schema in range(VERSION, found["schema"], -1):
        key = layout.manifest_key(number, schema)
        try:
            found = documents.parse(store.read(key), key)
        except MissingObject:
            continue
        break
    return documents.convert_manifest(found), documents.is_older(found)


class SnapshotConversion:
    """Converts the snapshots that `pointer` keeps, one after the other; leaves are shared."""

    def __init__(
        self, store: Writer, draft: Draft, files: FileConversion, runtime: Runtime
    ) -> None:
        self._store = store
        self._draft = draft
        self._files = files
        self._runtime = runtime
        self._leaves: dict[tuple[str, LeafReference], tuple[LeafReference, ...]] = {}

    def convert(self, pointer: Pointer) -> int:
        """Convert all snapshots; return how many were of an earlier schema. Raises DamagedStore."""
        newest = pointer.newest()
        if newest is None:
            return 0
        manifest, _ = read_manifest(self._store, newest.snapshot)
        count = 0
        for number in consistency.kept_snapshots(pointer, manifest.skipped):
            manifest, is_older = read_manifest(self._store, number)
            if is_older:
                self._runtime.say(f"snapshot {number} of {newest.snapshot}")
                self._convert(manifest, pointer)
                count += 1
        return count

    def _convert(self, manifest: Manifest, pointer: Pointer) -> None:
        references = [(t, r) for t, some in manifest.tables.items() for r in some]
        new = [one for one in references if one not in self._leaves]
        with self._runtime.progress(sum(r.rows for _, r in new)) as advance:
            for table, reference in new:
                self._leaves[table, reference] = self._convert_leaf(table, reference, advance)
        tables = {
            table: tuple(chain.from_iterable(self._leaves[table, r] for r in some))
            for table, some in manifest.tables.items()
        }
        catalogue = Catalogue(self._store)
        after = replace(manifest, tables=tables, leaves={}, upgraded=VERSION)
        for finding in _check(catalogue, after, pointer):
            raise DamagedStore(f"{finding.object}: {finding.problem}")
        statements = views.store_views(catalogue, after)
        leaves = inline_leaves(after, catalogue)
        after = replace(after, leaves=leaves, views=views.digest(statements))
        self._put(after.views_key, statements.encode())
        self._put(after.key, after.to_json())

    def _convert_leaf(
        self, table: str, reference: LeafReference, advance: Advance
    ) -> tuple[LeafReference, ...]:
        data = self._store.read(reference.key)
        if layout.leaf_key(hashlib.sha256(data).hexdigest()[:32]) != reference.key:
            raise DamagedStore(f"{reference.key} is damaged: its content does not match its name")
        files: list[DataFile] = []
        for file in documents.convert_leaf(documents.parse(data, reference.key)).files:
            files += self._files.convert(table, file)
            advance(file.rows)
        return self._draft.leaves(files, Span(*reference.span) if reference.span else None)

    def _put(self, key: str, data: bytes) -> None:
        """Write an object that nothing names yet; an interrupted upgrade may have left another."""
        tag = self._store.tag(key)
        if tag is None or self._store.read(key) != data:
            self._store.replace(key, data, tag)


def _check(catalogue: Catalogue, manifest: Manifest, pointer: Pointer) -> Iterator[Finding]:
    """Check a converted snapshot as `sheaf verify` does."""
    yield from consistency.of_manifest(manifest.snapshot, manifest, pointer.entries)
    for table, references in manifest.tables.items():
        leaves: list[tuple[LeafReference, Leaf]] = []
        for reference in references:
            leaves.append((reference, catalogue.leaf(reference)))
            yield from consistency.of_leaf(table, *leaves[-1])
        yield from consistency.of_table(manifest.snapshot, table, leaves)
