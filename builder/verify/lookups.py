"""Checks of the tables of keys, row by row, from the index of data files.

The keys of revisits and originals, and the row of each capture in the table of URLs, are computed
again from the records. The original that a revisit names must be among the listed records.
"""

from collections.abc import Iterator

from builder.store.findings import Finding
from builder.verify.data_files import DataFileIndex
from builder.verify.inventory import SnapshotContents
from functions.database import engine
from functions.snapshot import layout

_VIEWS = "".join(
    f"CREATE OR REPLACE TEMP VIEW {table} AS SELECT * FROM held_{table} SEMI JOIN chosen "
    "USING (file);"
    for table in ("owed", "referring", "findable")
)
# The original of each listed revisit, found by the hash of its identifier.
_FOUND = (
    "CREATE OR REPLACE TEMP VIEW found AS SELECT f.*, r.position AS original "
    "FROM (SELECT * FROM referring SEMI JOIN live USING (position)) f "
    "LEFT JOIN (SELECT name, position FROM live WHERE kind = 'capture' AND NOT deleted "
    "AND position NOT IN (SELECT position FROM referring)) r ON f.original_name = r.name"
)
_SAME = (
    "o.key = t.key AND o.position = t.position AND o.url IS NOT DISTINCT FROM t.url "
    "AND o.moment IS NOT DISTINCT FROM t.moment"
)
# By file: number of rows, and an example.
_BY_FILE = (
    (
        "tie-wrong",
        "{count:,} rows do not match the record at their position, the first {example}",
        "SELECT t.file, count(*), min(t.position) FROM originals t "
        f"LEFT JOIN owed o ON {_SAME} LEFT JOIN records r ON r.position = t.position "
        "WHERE (r.position IS NOT NULL AND o.key IS NULL) OR t.position NOT BETWEEN 1 AND $last "
        "GROUP BY t.file",
    ),
    (
        "tie-wrong",
        "{count:,} rows do not match the revisit at their position, the first {example}",
        "SELECT t.file, count(*), min(t.position) FROM revisits t "
        "LEFT JOIN records r ON r.position = t.position "
        "LEFT JOIN referring f ON f.position = t.position "
        "WHERE (r.position IS NOT NULL AND (t.goal IS NULL = (t.moment IS NULL) AND ("
        "(t.key = f.date_key AND t.url IS NULL AND t.goal IS NULL) OR (t.key = f.digest_key "
        "AND coalesce(t.url, f.url_hash) = f.url_hash "
        "AND coalesce(t.moment, f.moment) = f.moment))) IS NOT TRUE) "
        "OR t.position NOT BETWEEN 1 AND $last GROUP BY t.file",
    ),
    (
        "revisit-wrong",
        "{count:,} revisits refer to an item that cannot be their original, the first {example}",
        "SELECT file, count(*), min(position) FROM found "
        "WHERE original_name IS NOT NULL AND original IS NULL GROUP BY file",
    ),
    (
        "url-wrong",
        "{count:,} rows do not match the capture at their position, the first {example}",
        "SELECT u.file, count(*), min(u.position) FROM urls u "
        "LEFT JOIN records r USING (position) LEFT JOIN findable f USING (position) "
        "WHERE (r.position IS NOT NULL AND f.mark IS DISTINCT FROM u.mark) "
        "OR u.position NOT BETWEEN 1 AND $last GROUP BY u.file",
    ),
)
_NO_TIE = (
    """
SELECT count(DISTINCT o.position), min(o.position)
FROM (FROM owed SEMI JOIN live USING (position)) o
LEFT JOIN originals t ON """
    + _SAME
    + " WHERE t.key IS NULL"
)
# A revisit with a URL and date needs their key. A revisit without an original also needs the key of
# its digest. A revisit with an original needs a key of that original.
_NO_KEY = """
SELECT count(*), min(f.position) FROM found f WHERE
    (f.date_key IS NOT NULL AND f.position NOT IN (
        SELECT t.position FROM revisits t JOIN referring d USING (position)
        WHERE t.key = d.date_key))
    OR (f.original_name IS NULL AND f.digest_key IS NOT NULL AND f.position NOT IN (
        SELECT t.position FROM revisits t JOIN referring d USING (position)
        WHERE t.key = d.digest_key AND t.url IS NULL AND t.goal IS NULL))
    OR (f.original IS NOT NULL AND f.position NOT IN (
        SELECT t.position FROM revisits t JOIN found g USING (position)
        JOIN owed o ON o.position = g.original AND o.key = t.key
        AND o.moment IS NOT DISTINCT FROM t.goal AND (t.url IS NULL OR t.url = o.url)))
"""
_COUNTS = (
    "SELECT count(*), count(*) FILTER (WHERE original_name IS NULL) "
    "FROM referring SEMI JOIN live USING (position)"
)
_NO_URL = (
    "SELECT count(*), min(position) FROM (FROM findable SEMI JOIN live USING (position)) "
    "ANTI JOIN urls USING (mark, position)"
)


_MISSING = (
    ("tie-missing", "captures cannot be found by their keys", _NO_TIE),
    ("tie-missing", "revisits cannot be found by their keys", _NO_KEY),
    ("url-missing", "captures cannot be found by their URLs", _NO_URL),
)


def lookup_findings(evidence: DataFileIndex, held: SnapshotContents) -> Iterator[Finding]:
    """Yield findings on keys and URLs of the snapshot that TableChecks checked last.

    Raises StoreError if scratch space or memory is insufficient.
    """
    manifest, connection = held.manifest, evidence.connection
    key = layout.manifest_key(manifest.snapshot)
    with engine.reading(key):
        connection.execute(_VIEWS)
        connection.execute(_FOUND)
        values = {"last": manifest.last_position}
        for code, text, sql in _BY_FILE:
            used = values if "$last" in sql else {}
            for number, count, example in connection.execute(sql, used).fetchall():
                problem = text.format(count=count, example=example)
                yield Finding(code, evidence.keys[number], problem)
        for code, text, sql in _MISSING:
            ((count, first),) = connection.execute(sql).fetchall()
            if count:
                yield Finding(code, key, f"{count:,} {text}, the first at {first}")
        (counts,) = connection.execute(_COUNTS).fetchall()
        if counts != (manifest.revisits, manifest.unresolved):
            problem = (
                f"there are {counts[0]:,} revisits, {counts[1]:,} of them without an original, "
                f"not {manifest.revisits:,} and {manifest.unresolved:,}"
            )
            yield Finding("records-count", key, problem)
