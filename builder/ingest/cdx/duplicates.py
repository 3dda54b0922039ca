"""Ordinals of equal captures within one archive file, as the archive's reader assigns them.

The reader counts captures with the same URL, date, status and digest along the file. An index has
another order and may list a record twice, so this step runs after all of it was read. Equal
identities within one file get their ordinals by offset; repeated records are dropped. Few captures
are equal, so only the parts that hold them are rewritten. If an index names no archive file, it is
unknown which captures belong to one file.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from builder.ingest.cdx import columns
from builder.ingest.cdx.block import quiet
from builder.ingest.cdx.lines_sql import PARQUET, quote
from functions.database import engine

_MEMORY = 1024  # megabytes

_KEY = "hash(identity, warc_filename)"
_ROWS = "read_parquet($files, hive_partitioning = false, filename = 'part', file_row_number = true)"
_ALIKE = f"""
CREATE TABLE alike AS SELECT {_KEY} AS key
FROM {engine.table("$files")} WHERE warc_filename != '' GROUP BY key HAVING count(*) > 1
"""
_TWINS = f"""
CREATE TABLE twins AS
SELECT *, row_number() OVER same - 1 AS ordinal FROM (
    SELECT part, file_row_number AS row, identity, warc_filename, warc_record_offset,
        coalesce(url_bytes, encode(url)) AS raw,
        coalesce(regexp_replace(fetch_date, '[.][0-9]+Z$', 'Z'), '') AS second,
        CASE WHEN fetch_status IS NULL OR warc_record_type = 'revisit' THEN ''
            ELSE fetch_status::VARCHAR END AS status,
        coalesce(content_digest, '') AS digest,
        warc_record_offset IS NOT NULL AND row_number() OVER record > 1 AS repeated
    FROM {_ROWS} WHERE {_KEY} IN (SELECT key FROM alike) AND warc_filename != ''
    WINDOW record AS (
        PARTITION BY identity, warc_filename, warc_record_offset ORDER BY part, file_row_number)
)
WINDOW same AS (
    PARTITION BY identity, warc_filename, repeated
    ORDER BY warc_record_offset NULLS LAST, part, row)
"""
_NEW = "ordinal > 0 OR repeated"
_SETTLED = f"""
CREATE TABLE settled AS
SELECT part, row, repeated, {columns.IDENTITY} AS settled
FROM ({columns.halves(f"SELECT *, {columns.HASHED} AS hash FROM twins WHERE {_NEW}")}),
    (SELECT $triples::VARCHAR[] AS triples)
"""
_WRITTEN = """
SELECT * EXCLUDE (file_row_number, row, repeated, settled)
    REPLACE (coalesce(settled, identity) AS identity)
FROM read_parquet($files, hive_partitioning = false, file_row_number = true)
LEFT JOIN (SELECT row, repeated, settled FROM settled WHERE part = $part)
    ON row = file_row_number
WHERE repeated IS NOT TRUE ORDER BY file_row_number
"""


def settle(parts: Sequence[Path], folder: Path, name: str, threads: int = 1) -> int:
    """Assign ordinals to equal captures in the parts of an index, in place.

    Return the number of captures that were dropped as repeated records. Scratch files are in a
    folder within `folder` whose name contains `name`. Raises StoreError.
    """
    if not parts:
        return 0
    scratch = folder / f"twins-{name}"
    scratch.mkdir()
    try:
        with engine.reading("the captures of an index"):
            connected = engine.connect(threads=threads, memory_megabytes=_MEMORY, scratch=scratch)
            database = quiet(connected)
            try:
                return _number_duplicates(database, [str(path) for path in parts], scratch / "part")
            finally:
                database.close()
    finally:
        shutil.rmtree(scratch)


def _number_duplicates(database: engine.Connection, files: list[str], temporary: Path) -> int:
    ((alike,),) = database.execute(_ALIKE, {"files": files}).fetchall()
    if not alike:
        return 0
    database.execute(_TWINS, {"files": files})
    database.execute(_SETTLED, {"triples": columns.TRIPLES})
    rows = database.execute(
        "SELECT part, count(*) FILTER (WHERE repeated) FROM settled GROUP BY part ORDER BY part"
    ).fetchall()
    for part, _ in rows:
        written = _WRITTEN.replace("$files", quote(part)).replace("$part", quote(part))
        target = quote(str(temporary))
        database.execute(f"COPY ({written}) TO {target} ({PARQUET})")
        temporary.replace(part)
    return sum(repeated for _, repeated in rows)
