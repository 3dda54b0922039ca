"""Joins the ranges of one file: checks that they are complete, and removes duplicates.

The reader distinguishes equal captures of one file (same URL, date, status and digest) by an
ordinal, the number of equal captures before. It counts within one split. So the ordinals of
captures that occur in several ranges are counted again over the whole file.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

from builder.ingest.cdx import columns as index_columns
from builder.ingest.split_reader import SplitResult
from builder.intake import intake
from builder.sources.warcinfo import Crawl
from functions.database import engine

_ONCE = ("gzip-not-per-record", "zstd-not-per-record")
"""Faults that are reported once for a file: its records have no offsets."""
_ROWS = "read_parquet($files, filename = true, file_row_number = true, hive_partitioning = false)"
_FIELDS = "raw, second, status, digest"
_AGAIN = f"""
CREATE OR REPLACE TABLE again AS SELECT identity FROM {_ROWS}
GROUP BY identity HAVING count(DISTINCT filename) > 1
"""
_ALIKE = f"""
CREATE OR REPLACE TABLE alike AS
WITH captures AS (
    SELECT filename AS file, file_row_number AS row, identity,
        coalesce(url_bytes, encode(url)) AS raw,
        coalesce(regexp_replace(fetch_date, '[.][0-9]+Z$', 'Z'), '') AS second,
        CASE WHEN fetch_status IS NULL OR warc_record_type = 'revisit' THEN ''
            ELSE fetch_status::VARCHAR END AS status,
        coalesce(content_digest, '') AS digest
    FROM {_ROWS}
), several AS (
    SELECT DISTINCT {_FIELDS} FROM captures WHERE identity IN (FROM again)
)
SELECT *,
    row_number() OVER (PARTITION BY {_FIELDS}, file ORDER BY row) - 1 AS within,
    row_number() OVER (
        PARTITION BY {_FIELDS} ORDER BY list_position($files, file), row) - 1 AS ordinal
FROM captures SEMI JOIN several USING ({_FIELDS})
"""


def _identities(columns: str, source: str) -> str:
    """Return a query of `columns`, with the identity of each row of `source` as `counted`."""
    rows = index_columns.halves(f"SELECT *, {index_columns.HASHED} AS hash FROM ({source})")
    triples = "(SELECT $triples::VARCHAR[] AS triples)"
    return f"SELECT {columns}, {index_columns.IDENTITY} AS counted FROM ({rows}), {triples}"


_WITHIN = _identities("identity", "SELECT * REPLACE (within AS ordinal) FROM alike")
_ODD = f"SELECT count(*) FROM ({_WITHIN}) WHERE counted != identity"
_CREATED = "CREATE TABLE IF NOT EXISTS renamed (file VARCHAR, row BIGINT, identity VARCHAR)"
_RENAMED = "INSERT INTO renamed " + _identities(
    "file, row", "SELECT * FROM alike WHERE ordinal != within"
)
_FILES = "SELECT DISTINCT file FROM alike WHERE ordinal != within"


def meet(pieces: Sequence[SplitResult]) -> bool:
    """Return whether each range begins with exactly the record at which the previous one ended."""
    if any(sum(code in piece.source.codes for piece in pieces) > 1 for code in _ONCE):
        return False
    # A request may belong to a document in the next range, which only the whole file shows.
    return all(
        one.next is not None and one.next == other.first and not one.next.open
        for one, other in pairwise(pieces)
    )


def renumber(connection: engine.Connection, pieces: Sequence[SplitResult]) -> set[Path] | None:
    """Renumber equal captures over all ranges of a file; return the Parquet files that change.

    New identities are written to the table `renamed`: Parquet file of captures, row number in it,
    and identity. Returns None if the columns do not determine the identities; the file must then be
    read as a whole.
    """
    files = [str(one.path("captures")) for one in pieces if one.source.captures]
    if len(files) < 2:
        return set()
    triples = {"triples": index_columns.TRIPLES}
    with engine.reading("the intermediate results"):
        connection.execute(_AGAIN, {"files": files})
        connection.execute(_ALIKE, {"files": files})
        ((odd,),) = connection.execute(_ODD, triples).fetchall()
        if odd:
            return None
        connection.execute(_CREATED)
        connection.execute(_RENAMED, triples)
        return {Path(file) for (file,) in connection.execute(_FILES).fetchall()}


def join(pieces: Sequence[SplitResult], digest: str) -> intake.IntakeSource:
    """Return the result of a file from the results of its ranges, in order."""
    first = pieces[0].source
    skips: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    crawl = Crawl()
    for source in (piece.source for piece in pieces):
        skips.update(source.skips)
        codes.update(source.codes)
        crawl = crawl.fill_from(
            Crawl(source.software, source.operator, source.part_of, source.description)
        )
    return replace(
        first,
        digest=digest,
        format=next((p.source.format for p in pieces if p.source.format), ""),
        captures=sum(piece.source.captures for piece in pieces),
        skipped=skips.total(),
        faults=codes.total(),
        skips=dict(skips),
        codes=dict(codes),
        **asdict(crawl),
    )
