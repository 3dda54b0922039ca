"""The stored files of datasets, which a copy of the store gets with their records."""

from collections.abc import Iterator

from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies import record as records
from builder.sources.datasets.strategies.keys import FILESETS, RECORD, WARCS, prefix_of
from builder.store.copier import DAMAGED, CopiedObject, Stage, read_document
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Writer

PLACES = (FILESETS, WARCS)
"""Prefixes of their objects."""


def list_datasets(source: Writer) -> Iterator[Stage]:
    """Yield the objects of each archived dataset, then its record; none of unfinished ones."""
    for where in source.keys(FILESETS):
        base = prefix_of(where)
        if base is None or where != base + RECORD:
            continue
        document = read_document(source, where, replaced=True)
        try:
            objects = records.parse(document.data or b"", where).objects
        except FilesetError as error:
            raise DamagedStore(f"{error.detail}: {DAMAGED}") from error
        yield [CopiedObject(stored.key, stored.bytes, stored.sha256) for stored in objects]
        yield [document]
