"""The seams between ranges of one file: that nothing lies between them, and nothing is told twice.

The reader tells captures of one file apart that are alike (same URL, date, status and digest) by an
ordinal, the number of those before. It counts within what it reads in one go, so of captures that
several ranges have, the ordinals are counted anew over the whole file.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

from builder import intake
from builder.reading import Reading
from builder.sources.event import Crawl
from functions.oai import engine
from functions.snapshot.identifier import capture_identity

Changes = Mapping[Path, Mapping[int, str]]
"""New identities, by file of captures and number of the row in it."""

_ONCE = "gzip-not-per-record"  # a fault that is told once of a file: its records have no offsets
_ROWS = "read_parquet($files, filename = true, file_row_number = true, hive_partitioning = false)"
_ALIKE = {
    "url": "coalesce(url_bytes, encode(url))",
    "second": r"regexp_replace(fetch_date, '\.\d+Z$', 'Z')",
    "status": "CASE WHEN warc_record_type = 'revisit' THEN NULL ELSE fetch_status END",
    "digest": "content_digest",
}
"""What an identity is made of (see identifier.capture_identity), out of a capture's columns."""


def meet(pieces: Sequence[Reading]) -> bool:
    """Tell whether each range begins with the very record at which the one before it ended."""
    if sum(_ONCE in piece.source.codes for piece in pieces) > 1:
        return False
    return all(one.next is not None and one.next == other.first for one, other in pairwise(pieces))


def renumbered(connection: engine.Connection, pieces: Sequence[Reading]) -> Changes | None:
    """Return which captures of a file, read in ranges, get another identity than they have.

    None if that cannot be told from the columns; the file is then to be read in one piece.
    """
    files = [str(one.path("captures")) for one in pieces if one.source.captures]
    values = {"files": files}
    columns = ", ".join(f"{value} AS {name}" for name, value in _ALIKE.items())
    same = " AND ".join(f"r.{name} IS NOT DISTINCT FROM a.{name}" for name in _ALIKE)
    changes: dict[Path, dict[int, str]] = {}
    if len(files) < 2:
        return changes
    before: Counter[tuple[object, ...]] = Counter()
    within: Counter[tuple[object, ...]] = Counter()
    with engine.reading("what was read"):
        connection.execute(
            f"CREATE OR REPLACE TABLE again AS SELECT identity FROM {_ROWS} "
            "GROUP BY identity HAVING count(DISTINCT filename) > 1",
            values,
        )
        sql = (
            f"WITH r AS (SELECT filename, file_row_number, identity, {columns} FROM {_ROWS}), "
            f"a AS (SELECT DISTINCT {', '.join(_ALIKE)} FROM r WHERE identity IN (FROM again)) "
            f"SELECT filename, file_row_number, identity, {', '.join('r.' + n for n in _ALIKE)} "
            f"FROM r JOIN a ON {same} "
            "ORDER BY list_position($files, filename), file_row_number"
        )
        with closing(engine.batches(connection, sql, values)) as batches:
            for name, row, identity, url, second, status, digest in (r for b in batches for r in b):
                alike = (url, second, status, digest)
                if capture_identity(*alike, within[name, alike]) != identity:
                    return None
                if before[alike] != within[name, alike]:
                    renamed = changes.setdefault(Path(name), {})
                    renamed[row] = capture_identity(*alike, before[alike])
                before[alike] += 1
                within[name, alike] += 1
    return changes


def joined(pieces: Sequence[Reading], digest: str) -> intake.Source:
    """Return what a file gave by what its ranges gave, in order."""
    first = pieces[0].source
    skips: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    crawl = Crawl()
    for source in (piece.source for piece in pieces):
        skips.update(source.skips)
        codes.update(source.codes)
        crawl = crawl.filled(
            Crawl(source.software, source.operator, source.part_of, source.description)
        )
    return replace(
        first,
        digest=digest,
        captures=sum(piece.source.captures for piece in pieces),
        skipped=skips.total(),
        faults=codes.total(),
        skips=dict(skips),
        codes=dict(codes),
        **asdict(crawl),
    )
