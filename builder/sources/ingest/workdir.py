"""Work folder of an ingest on the local disk, and the join of the results in it.

An ingest by one machine keeps its parts (builder.sources.ingest.parts) here. A repeated ingest with
the same arguments reuses them. A process locks its work folder for as long as it lives. Folders
without a lock were abandoned; a later ingest removes them once they are old.

The ranges of one file are joined if they are complete. The reader distinguishes equal captures of
one file (same URL, date, status and digest) by an ordinal, the number of equal captures before. It
counts within one split. So the ordinals of captures that occur in several ranges are counted again
over the whole file.
"""

import contextlib
import hashlib
import io
import json
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from builder.errors import UsageError
from builder.intake import intake
from builder.intake.intake import WORK_PREFIX, writing
from builder.sources.ingest.cdx import columns as index_columns
from builder.sources.ingest.plan import SplitResult
from builder.sources.ingest.splits import ArchiveFile
from builder.sources.webarchives.side_records import Crawl
from builder.store.durable import replace_durably, sync
from functions.database import engine
from functions.store.folder_lock import lock_folder, lock_holder, remove_abandoned


class Measured(io.RawIOBase):
    """A forward-only file, hashed while it is read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return the number of bytes."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._digest.update(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes read."""
        return self._position

    def finish(self) -> str:
        """Read the rest, and return the SHA-256 of the whole."""
        while self.read(1 << 20):
            pass
        return self._digest.hexdigest()


KEPT = 14 * 86400.0
"""Seconds for which an abandoned work folder is kept."""

_MEMORY = 1024  # megabytes, of DuckDB while it joins rows
_BEGUN = "begun.json"
_PARTS = "parts"
_PASSING = "passing-"  # work that cannot be continued
_ONCE = ("gzip-not-per-record", "zstd-not-per-record")
"""Faults that are reported once for a file: its records have no offsets."""
_CAPTURE_ROWS = (
    "read_parquet($files, filename = true, file_row_number = true, hive_partitioning = false)"
)
_FIELDS = "raw, second, status, digest"
_AGAIN = f"""
CREATE OR REPLACE TABLE again AS SELECT identity FROM {_CAPTURE_ROWS}
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
    FROM {_CAPTURE_ROWS}
), several AS (
    SELECT DISTINCT {_FIELDS} FROM captures WHERE identity IN (FROM again)
)
SELECT *,
    row_number() OVER (PARTITION BY {_FIELDS}, file ORDER BY row) - 1 AS within,
    row_number() OVER (
        PARTITION BY {_FIELDS} ORDER BY list_position($files, file), row) - 1 AS ordinal
FROM captures SEMI JOIN several USING ({_FIELDS})
"""


def folder_of(home: Path, fingerprint: str | None) -> Path:
    """Return the work folder of a job's fingerprint; None means that it cannot be continued."""
    if fingerprint is None:
        return home / f"{WORK_PREFIX}{_PASSING}{secrets.token_hex(8)}"
    return home / (
        WORK_PREFIX
        + hashlib.sha256(fingerprint.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    )


class Work:
    """The work folder of one ingest, locked by this process."""

    def __init__(self, folder: Path, lock: BinaryIO) -> None:
        self.folder = folder
        self.parts = folder / _PARTS
        self._lock = lock

    def begin(self, **notes: str | int) -> Mapping[str, str | int]:
        """Return the notes made when this work began; if it begins now, write them."""
        path = self.folder / _BEGUN
        with writing(self.folder), contextlib.suppress(FileNotFoundError, ValueError):
            document = json.loads(path.read_bytes())
            if isinstance(document, dict) and document.keys() == notes.keys():
                return document
        with writing(self.folder):
            replace_durably(path, json.dumps(notes).encode())
        return notes

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Create an empty folder for the duration of the context."""
        folder = self.folder / "scratch"
        with writing(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def spool(self, stream: BinaryIO) -> ArchiveFile:
        """Write standard input to a file, and return that as a source named by the user."""
        path, measured = self.folder / "stdin", Measured(stream)
        with writing(self.folder), path.open("wb") as file:
            shutil.copyfileobj(measured, file, 1 << 20)
        # Captures of two streams must not seem to be in one file.
        path = path.rename(self.folder / f"stdin-{measured.finish()[:16]}")
        return replace(ArchiveFile.of(path, "-"), named=True)

    def remove(self) -> None:
        """Remove the work folder: it is committed, or empty."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def leave(self) -> None:
        """Release the lock. Finished results stay, for a repeated ingest."""
        passing = self.folder.name.startswith(WORK_PREFIX + _PASSING)
        if passing or not any(self.parts.glob("*.json")):
            self.remove()
        self._lock.close()


def connect(scratch: Path, jobs: int) -> engine.Connection:
    """Return the database that joins rows; `scratch` is an empty folder for it."""
    with engine.reading(str(scratch)):
        return engine.connect(threads=jobs, memory_megabytes=_MEMORY, scratch=scratch)


@contextmanager
def open_workdir(folder: Path, clock: Callable[[], float] = time.time) -> Iterator[Work]:
    """Open the work in `folder`, new or continued; old work folders beside it are removed.

    Raises UsageError if another process uses it, StoreError if it cannot be written.
    """
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(folder)
        if lock is None:
            raise UsageError(
                f"process {lock_holder(folder)} is ingesting the same sources into this store: "
                "wait until it ends"
            )
        _sweep(folder, clock() - KEPT)
        (folder / _PARTS).mkdir(exist_ok=True)
        for path in (folder, folder.parent):
            sync(path)
    work = Work(folder, lock)
    try:
        yield work
    finally:
        work.leave()


def _sweep(own: Path, before: float) -> None:
    """Remove unlocked work folders beside `own` that are old or cannot be continued."""
    for folder in own.parent.glob(f"{WORK_PREFIX}*"):
        if folder == own:
            continue
        with contextlib.suppress(OSError):  # already removed
            passing = folder.name.startswith(WORK_PREFIX + _PASSING)
            there = [path for path in (folder, folder / _PARTS) if path.exists()]
            newest = max((path.stat().st_mtime for path in there), default=0.0)
            if not passing and newest > before:
                continue
            with contextlib.suppress(OSError):
                folder.rmdir()  # its process ended before it had a lock
            remove_abandoned(folder)


def _identities(columns: str, source: str) -> str:
    """Return a query of `columns`, with the identity of each row of `source` as `counted`."""
    rows = index_columns.halves(f"SELECT *, {index_columns.HASHED} AS hash FROM ({source})")
    triples = "(SELECT $triples::VARCHAR[] AS triples)"
    return f"SELECT {columns}, {index_columns.IDENTITY} AS counted FROM ({rows}), {triples}"


_WITHIN = _identities("identity", "SELECT * REPLACE (within AS ordinal) FROM alike")
_ODD = f"SELECT count(*) FROM ({_WITHIN}) WHERE counted != identity"
_CREATE_RENAMED = "CREATE TABLE IF NOT EXISTS renamed (file VARCHAR, row BIGINT, identity VARCHAR)"
_RENAMED = "INSERT INTO renamed " + _identities(
    "file, row", "SELECT * FROM alike WHERE ordinal != within"
)
_FILES = "SELECT DISTINCT file FROM alike WHERE ordinal != within"


def ranges_meet(pieces: Sequence[SplitResult]) -> bool:
    """Return whether each range begins with exactly the record at which the previous one ended."""
    if any(sum(code in piece.source.codes for piece in pieces) > 1 for code in _ONCE):
        return False
    # A request may belong to a document in the next range, which only the whole file shows.
    return all(
        before.next is not None and before.next == after.first and not before.next.open
        for before, after in pairwise(pieces)
    )


def renumber_captures(connection: engine.Connection, captures: Sequence[Path]) -> set[Path] | None:
    """Renumber equal captures over the ranges of a file; return the Parquet files that change.

    New identities are written to the table `renamed`: Parquet file of captures, row number in it,
    and identity. Returns None if the columns do not determine the identities; the file must then be
    read as a whole.
    """
    files = [str(path) for path in captures]
    if len(files) < 2:
        return set()
    triples = {"triples": index_columns.TRIPLES}
    with engine.reading("the intermediate results"):
        connection.execute(_CREATE_RENAMED)
        connection.execute(_AGAIN, {"files": files})
        if not connection.execute("FROM again LIMIT 1").fetchall():
            return set()  # as nearly always; what follows takes ten times as long
        connection.execute(_ALIKE, {"files": files})
        ((odd,),) = connection.execute(_ODD, triples).fetchall()
        if odd:
            return None
        connection.execute(_RENAMED, triples)
        return {Path(file) for (file,) in connection.execute(_FILES).fetchall()}


def join_ranges(pieces: Sequence[SplitResult], digest: str) -> intake.IntakeSource:
    """Return the result of a file from the results of its ranges, in order."""
    first = pieces[0].source
    skips = sum((Counter(piece.source.skips) for piece in pieces), Counter[str]())
    codes = sum((Counter(piece.source.codes) for piece in pieces), Counter[str]())
    crawl = Crawl()
    for source in (piece.source for piece in pieces):
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
