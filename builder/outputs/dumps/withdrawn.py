"""Records that the dumps must not show any more, because items were withdrawn.

A withdrawal rewrites the store's data files without all versions of its items. It does the same
with revisits that had inherited metadata from them, and counts the collections again. All of these
have new versions since, so they are found behind the last position of the dumps.
"""

from functions.reading.duck_repository import DuckRepository
from functions.snapshot import oai_name
from functions.snapshot.manifest import Manifest, Span
from functions.store.files import FILE

_AFFECTED = (
    f"SELECT identifier, coalesce(deleted AND reason IS NOT NULL, false) FROM {FILE} "
    "WHERE position BETWEEN $first AND $last AND (reason IS NOT NULL OR kind = 'collection' "
    "OR warc_record_type = 'revisit') ORDER BY position"
)


def find_affected(repository: DuckRepository, manifest: Manifest, span: Span) -> set[int]:
    """Return the keys of identifiers whose earlier versions withdrawals of `span` removed.

    The set is empty if nothing was withdrawn there. Raises StoreError.
    """
    keys: set[int] = set()
    any_withdrawn = False
    if span.last < span.first:
        return keys
    values = {"first": span.first, "last": span.last}
    for file, groups in repository.catalogue.groups(manifest, "records", span.first, span.last):
        for name, is_withdrawn in repository.files.rows(_AFFECTED, file, groups, **values):
            keys.add(oai_name.lookup_key(name))
            any_withdrawn = any_withdrawn or is_withdrawn
    return keys if any_withdrawn else set()
