"""Reads datasets of the newest snapshot: their records, and the bytes of their files."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from builder.context import Context
from builder.errors import UsageError
from builder.snapshot import recovery
from functions.oai.repository import PublishedRecord, Repository
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.snapshot.errors import NothingPublished
from functions.snapshot.manifest import Manifest
from functions.store.slice import Slices, open_reader, open_slices


@dataclass(frozen=True, slots=True)
class DatasetReader:
    """Reads the records of datasets in one snapshot; `slices` has the bytes of their files."""

    manifest: Manifest
    repository: Repository
    slices: Slices

    def record(self, identifier: str) -> PublishedRecord:
        """Return the record of a dataset. Raises UsageError if it is not listed, and StoreError."""
        found = self.repository.record(self.manifest, identifier)
        if found is None or found.deleted:
            raise UsageError(f"{self.slices.address}: {identifier} is not listed any more")
        return found


@contextmanager
def open_datasets(context: Context) -> Iterator[DatasetReader]:
    """Open the datasets of the newest snapshot. Raises SheafError."""
    where = context.store_uri()
    reader = open_reader(*where, context.configuration, context.reading_environment)
    slices = open_slices(*where, context.configuration, context.reading_environment)
    with closing(DuckRepository(reader)) as repository:
        entry = recovery.current(context.store)[0].newest()
        if entry is None:
            raise NothingPublished("nothing is published in this store yet: run `sheaf publish`")
        yield DatasetReader(repository.manifest(entry.snapshot), repository, slices)
