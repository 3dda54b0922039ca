"""Checks of the table of URLs, row by row, from the index of data files.

The correct row of each capture is computed again from its record.
"""

from collections.abc import Iterator

from builder.store.findings import Finding
from builder.verify.data_files import DataFileIndex
from builder.verify.inventory import SnapshotContents
from functions.database import engine
from functions.snapshot import layout

_FINDABLE = (
    "CREATE OR REPLACE TEMP VIEW findable AS SELECT * FROM held_findable SEMI JOIN chosen "
    "USING (file)"
)
_WRONG = (
    "SELECT u.file, count(*), min(u.position) FROM urls u "
    "LEFT JOIN records r USING (position) LEFT JOIN findable f USING (position) "
    "WHERE (r.position IS NOT NULL AND f.mark IS DISTINCT FROM u.mark) "
    "OR u.position NOT BETWEEN 1 AND $last GROUP BY u.file"
)
_MISSING = (
    "SELECT count(*), min(position) FROM (FROM findable SEMI JOIN live USING (position)) "
    "ANTI JOIN urls USING (mark, position)"
)


def findings(evidence: DataFileIndex, held: SnapshotContents) -> Iterator[Finding]:
    """Yield findings on the table of URLs of the snapshot that TableChecks checked last.

    Raises StoreError if scratch space or memory is insufficient.
    """
    manifest, connection = held.manifest, evidence.connection
    key = layout.manifest_key(manifest.snapshot)
    with engine.reading(key):
        connection.execute(_FINDABLE)
        wrong = connection.execute(_WRONG, {"last": manifest.last_position}).fetchall()
        for number, count, example in wrong:
            problem = (
                f"{count:,} rows do not match the capture at their position, the first {example}"
            )
            yield Finding("url-wrong", evidence.keys[number], problem)
        ((count, first),) = connection.execute(_MISSING).fetchall()
        if count:
            problem = f"{count:,} captures cannot be found by their URLs, the first at {first}"
            yield Finding("url-missing", key, problem)
