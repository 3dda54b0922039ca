"""Source of an export: archived datasets of the newest snapshot, as packages."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from builder.errors import UsageError
from builder.exports.dataset_package import DatasetPackage, pack
from builder.exports.restore.datasets import DatasetReader, find_versions, open_datasets
from builder.kinds.datasets.dataset_versions import DATASET
from builder.snapshot import query
from builder.sources.datasets.strategies.record import find_record
from builder.store.context import Context
from builder.store.web_store import UnlistedError
from functions.snapshot.store import Writer
from functions.store import engine

_LISTED = f"""
SELECT {DATASET} AS dataset, identifier FROM filesets
WHERE files > 0 AND ($identifiers IS NULL OR list_contains($identifiers, identifier))
    AND ($set IS NULL
        OR len(list_filter(sets, lambda s: s = $set OR starts_with(s, $set || ':'))) > 0)
ORDER BY dataset, document ->> '$.version_order' NULLS FIRST, identifier
"""
"""The archived versions of each dataset, the oldest first."""


@dataclass(slots=True)
class DatasetSource:
    """Archived datasets: the identifiers of their chosen versions by that of the dataset.

    Of the packages so far, `elsewhere` counts the files that another service keeps, and `missing`
    those that are not archived.
    """

    store: Writer
    reader: DatasetReader
    versions: Mapping[str, Sequence[str]]
    archive: str
    elsewhere: int = field(default=0, init=False)
    missing: int = field(default=0, init=False)

    @property
    def count(self) -> int:
        """The number of versions."""
        return sum(map(len, self.versions.values()))

    def pack(self, identifier: str) -> DatasetPackage:
        """Return the package of a version. Raises UsageError and StoreError."""
        record = self.reader.record(identifier)
        try:
            archiving = find_record(self.store, record.fields)
        except UnlistedError:  # on a web server, where only the files of a dataset are named
            archiving = None
        package = pack(record, self.reader.slices, self.store, archiving, self.archive)
        self.elsewhere += package.elsewhere
        self.missing += len(record.fields.get("withheld") or ())
        return package

    def pack_all(self) -> Iterator[DatasetPackage]:
        """Yield the package of each version. Raises as `pack` does."""
        for identifiers in self.versions.values():
            yield from map(self.pack, identifiers)


@contextmanager
def open_source(
    context: Context, spec: str | None, names: Sequence[str]
) -> Iterator[DatasetSource]:
    """Open the datasets in the set `spec` (None: all) that `names` name (none: all).

    A name is a DOI or an identifier. Raises UsageError if none is chosen, RebuildError for an
    unknown name, NothingPublished and StoreError.
    """
    store = context.store
    with open_datasets(context) as reader:
        if spec is not None and not reader.repository.has_set(reader.manifest, spec):
            raise UsageError(f"--set {spec}: there is no such set in this store")
        named = (
            [version for name in names for version in find_versions(store, name)] if names else None
        )
        versions = _list_versions(store, spec, named)
        if not versions and (names or spec):
            raise UsageError("no archived dataset matches")
        yield DatasetSource(store, reader, versions, context.configuration["repository.name"])


def _list_versions(
    store: Writer, spec: str | None, identifiers: Sequence[str] | None
) -> Mapping[str, Sequence[str]]:
    values: dict[str, Any] = {"set": spec, "identifiers": identifiers}
    versions: defaultdict[str, list[str]] = defaultdict(list)
    with engine.connect_reader() as connection:
        query.prepare_view(connection, store, "filesets")
        with engine.reading("the datasets"):
            for dataset, identifier in connection.execute(_LISTED, values).fetchall():
                versions[dataset].append(identifier)
    return versions
