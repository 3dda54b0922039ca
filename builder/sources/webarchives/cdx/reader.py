"""Reader of CDX and CDXJ files into the intake, for archives that have an index already.

A block of lines is one task (`block`), and each thread runs one at a time.
The captures of a block are one Parquet file, so that memory does not grow with the index.

Finally, equal captures within one archive file get their ordinals, as the archive's reader assigns
them: it counts captures with the same URL, date, status and digest along the file. An index has
another order and may list a record twice. So equal identities within one file get their ordinals
by offset, and repeated records are dropped. Few captures are equal, so only the parts that hold
them are rewritten. If an index names no archive file, it is unknown which captures belong to one
file.
"""

import tempfile
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import BinaryIO

from builder.intake.captures import Fault
from builder.intake.pool import Advance
from builder.sources.webarchives.cdx import block, columns
from builder.sources.webarchives.cdx.block import IndexFile, Result
from builder.sources.webarchives.cdx.lines_sql import PARQUET
from builder.sources.webarchives.cdx.text import BLOCK, PIECE, IndexText, LineBlock, blocks
from builder.store.parquet.writer import RowWriter
from functions.snapshot import schema
from functions.store import engine

_SORT_MEMORY = 1024  # megabytes

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
        {columns.IDENTIFYING},
        warc_record_offset IS NOT NULL AND row_number() OVER record > 1 AS repeated
    FROM {_ROWS} WHERE {_KEY} IN (SELECT key FROM alike) AND warc_filename != ''
    WINDOW record AS (
        PARTITION BY identity, warc_filename, warc_record_offset ORDER BY part, file_row_number)
)
WINDOW same AS (
    PARTITION BY identity, warc_filename, repeated
    ORDER BY warc_record_offset NULLS LAST, part, row)
"""
_SETTLED = f"""
CREATE TABLE settled (part, row, repeated, settled) AS
{columns.identities("part, row, repeated", "FROM twins WHERE ordinal > 0 OR repeated")}
"""
_WRITTEN = """
SELECT * EXCLUDE (file_row_number, row, repeated, settled)
    REPLACE (coalesce(settled, identity) AS identity)
FROM read_parquet($files, hive_partitioning = false, file_row_number = true)
LEFT JOIN (SELECT row, repeated, settled FROM settled WHERE part = $part)
    ON row = file_row_number
WHERE repeated IS NOT TRUE ORDER BY file_row_number
"""


def number_captures(parts: Sequence[Path], folder: Path, threads: int = 1) -> int:
    """Assign ordinals to equal captures in the parts of an index, in place.

    Return the number of captures that were dropped as repeated records. Scratch files are in a
    folder within `folder`. Raises StoreError.
    """
    files = {"files": list(map(str, parts))}
    if not parts:
        return 0
    with (
        tempfile.TemporaryDirectory(dir=folder) as scratch,
        engine.reading("the captures of an index"),
        closing(
            engine.connect(threads=threads, memory_megabytes=_SORT_MEMORY, scratch=Path(scratch))
        ) as database,
    ):
        ((alike,),) = database.execute(_ALIKE, files).fetchall()
        if not alike:
            return 0
        database.execute(_TWINS, files)
        database.execute(_SETTLED, {"triples": columns.TRIPLES})
        rows = database.execute(
            "SELECT part, count(*) FILTER (WHERE repeated) FROM settled GROUP BY part ORDER BY part"
        ).fetchall()
        temporary = Path(scratch, "part")
        for part, _ in rows:
            literal, target = engine.quote(part), engine.quote(str(temporary))
            written = _WRITTEN.replace("$files", literal).replace("$part", literal)
            database.execute(f"COPY ({written}) TO {target} ({PARQUET})")
            temporary.replace(part)
        return sum(repeated for _, repeated in rows)


@dataclass(slots=True)
class IndexResult:
    """Result of an index: numbers of captures, lines left out by reason, and faults by code.

    `files` are the names of the files with its rows. `faults` counts the rows of faults, which are
    fewer than the faults if there are many.
    """

    captures: int = 0
    skips: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    files: tuple[str, ...] = ()
    faults: int = 0


def read(
    file: BinaryIO, index: IndexFile, form: str, threads: int, advance: Advance, size: int = BLOCK
) -> IndexResult:
    """Read an index from its beginning and write its captures and faults as files of the intake.

    `form` is the result of text.find_form; `size` is the number of bytes of text in a block. Raises
    OSError for the file, and StoreError.
    """
    text = IndexText(file, index.name, min(size, PIECE))
    summary = IndexResult()
    faults = _Faults(index, summary.codes)
    parts: list[Path] = []
    reported = 0
    try:
        items = blocks(text, form.removesuffix(".gz"), size)
        with closing(_results(items, index, threads)) as results:
            for result in results:
                if isinstance(result, Fault):
                    faults.add(result)
                    continue
                parts += [result.path] if result.path else []
                summary.captures += result.captures
                summary.skips.update(result.skips)
                faults.take(result)
                advance(text.consumed - reported, result.captures)
                reported = text.consumed
        for fault in text.faults:
            faults.add(fault)
        repeated = number_captures(parts, index.folder, threads)
        if repeated:
            summary.captures -= repeated
            summary.skips["repeated"] += repeated
        advance(text.consumed - reported, -repeated)
    finally:
        faults.close()
    summary.faults = faults.rows
    summary.files = tuple(path.name for path in (*parts, faults.path))
    return summary


class _Faults:
    """Writer of an index's faults: a limited number of each code, and the count of the rest."""

    def __init__(self, index: IndexFile, codes: Counter[str]) -> None:
        self._name = index.name
        self._codes = codes
        self._written: Counter[str] = Counter()
        self._foreign = 0
        self.rows = 0
        self.path = index.folder / f"faults-{index.part}.parquet"
        self._rows = RowWriter(self.path, schema.FAULT)

    def add(self, fault: Fault) -> None:
        """Count a fault, and write it unless its code has reached the limit."""
        self._codes[fault.code] += 1
        self._write(fault)

    def take(self, result: Result) -> None:
        """Count a block's faults, and write those that it lists."""
        self._foreign += result.foreign
        self._codes.update(result.codes)
        for fault in result.faults:
            self._write(fault)

    def _write(self, fault: Fault) -> None:
        if self._written[fault.code] < block.MOST:
            self._written[fault.code] += 1
            self._append(fault)

    def _append(self, fault: Fault) -> None:
        self._rows.append(astuple(fault))
        self.rows += 1

    def close(self) -> None:
        """Write the faults that concern the whole file, and finish."""
        if self._foreign:
            detail = f"{self._foreign} captures"
            done = "published, not as the archive's items"
            self.add(Fault(self._name, None, "index-digest", "digest", detail, done))
        for code, count in sorted(self._codes.items()):
            if more := count - self._written[code]:
                detail, done = f"{more} more of {code}", "counted"
                self._append(Fault(self._name, None, "faults-cut", None, detail, done))
        self._rows.close()


def _results(
    items: Iterator[LineBlock | Fault], index: IndexFile, threads: int
) -> Generator[Result | Fault, None, None]:
    """Yield the results of the blocks, in order; memory holds one block more than threads."""
    idle: deque[engine.Connection] = deque()
    connections: list[engine.Connection] = []
    waiting: deque[Future[Result | Fault]] = deque()

    def work(item: LineBlock | Fault) -> Result | Fault:
        if isinstance(item, Fault):
            return item
        connection = idle.popleft()
        try:
            return block.read(connection, item, index)
        finally:
            idle.append(connection)

    pool = ThreadPoolExecutor(threads)
    try:
        for _ in range(threads):
            connections.append(block.connection(index))
            idle.append(connections[-1])
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting[0].result()
                waiting.popleft()
        while waiting:
            yield waiting[0].result()
            waiting.popleft()
    finally:
        left = [future for future in waiting if not future.cancel()]
        while wait(left, 0.05).not_done:  # after an interrupt, which only the first thread sees
            for connection in connections:
                connection.interrupt()
        pool.shutdown()
        for connection in connections:
            connection.close()
