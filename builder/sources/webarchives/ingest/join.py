"""Join of the results of all splits: the sources and the rows of a run.

A file whose ranges do not join is read again in one piece, as a part of its own. The rows of an
ingest by one machine are gathered in few large files. Those of many machines stay where they are,
because one machine would fetch them all: `run.json` names their files in the order of the plan.
Readers of parts need no DuckDB, so the commit is here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from builder.errors import UsageError
from builder.intake import intake, row_files
from builder.sources.webarchives.backlog import join_borders
from builder.sources.webarchives.cdx import columns as index_columns
from builder.sources.webarchives.ingest.parts import list_missing, write_part
from builder.sources.webarchives.ingest.plan import (
    IngestPart,
    IngestPlan,
    SplitResult,
    find_part,
    part_name,
)
from builder.sources.webarchives.ingest.result import IngestResult, judge
from builder.sources.webarchives.ingest.splits import ArchiveFile, Split
from builder.sources.webarchives.side_records import Crawl
from builder.store.durable import writing
from builder.threads import map_in_order
from functions.config.configuration import Configuration
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Reader, Writer
from functions.store import engine

_THREADS = 32  # that read the results of parts, each a small object
_NAMED = 5  # missing parts
_MEMORY = 1024  # megabytes, of DuckDB while it joins rows
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
        {index_columns.IDENTIFYING}
    FROM {_CAPTURE_ROWS}
), several AS (
    SELECT DISTINCT {_FIELDS} FROM captures WHERE identity IN (FROM again)
)
SELECT *, row_number() OVER (
    PARTITION BY {_FIELDS} ORDER BY list_position($files, file), row) - 1 AS ordinal
FROM captures SEMI JOIN several USING ({_FIELDS})
QUALIFY ordinal >= row_number() OVER (PARTITION BY {_FIELDS}, file ORDER BY row)
"""
Reread = Callable[[Mapping[int, ArchiveFile]], Iterable[SplitResult]]
"""Reads files, by their numbers in the plan, in one piece each; returns the results in order."""


@dataclass
class FileJoin:
    """The files of a plan, in order, each with the results that have its rows.

    `store` has the parts. `whole` names the files that were read in one piece although they are
    large.
    """

    store: Reader
    plan: IngestPlan
    database: engine.Connection
    say: Callable[[str], None]
    whole: list[str] = field(default_factory=list)
    _files: list[tuple[SplitResult, ...]] = field(default_factory=list)
    _rewritten: set[int] = field(default_factory=set)
    _changed: set[Path] = field(default_factory=set)

    def join(self, results: Iterable[SplitResult], reread: Reread) -> None:
        """Take the results of all files in the order of the plan, and join those of ranges."""
        torn: dict[int, ArchiveFile] = {}
        odd = set()
        for result in results:
            # A file has one result, or that of its digest and those of its ranges.
            before = self._files.pop() if result.split.kind == "range" else ()
            self._files.append((*before, result))
        for number, pieces in enumerate(self._files):
            file = pieces[0].split.file
            if len(pieces) == 1:
                continue
            if any(map(_is_lost, pieces)):
                # A file of which a part failed again and again is not opened once more.
                flawed = (piece.split.file for piece in pieces if piece.split.file.flaw)
                torn[number] = next(flawed, file)
            elif not self._join_ranges(number, pieces[1:]):
                torn[number] = file
                odd.add(number)
                self.say(f"{file.label}: its ranges do not join, so it is read in one piece")
        for (number, file), result in zip(torn.items(), reread(torn), strict=True):
            self._files[number] = (result,)
            if number in odd and not _is_lost(result):
                self.whole.append(file.label)

    def sources(self) -> Iterator[intake.IntakeSource]:
        """Yield the result of each file; tell of those that changed while they were read."""
        for first, *ranges in self._files:
            source, file = first.source, first.split.file
            if any(piece.changed for piece in (first, *ranges)):
                self.say(
                    f"{file.label} changed while it was read: ingest it again when it is complete"
                )
            if ranges:
                source = join_ranges(ranges, source.digest)
            yield judge(file, source)

    def gather(self, folder: Path, number: int | None = None) -> Iterator[tuple[str, Path]]:
        """Write the rows of all files, or of one, as few large files in `folder`; name them.

        Each is written when it is requested. The rows of an index are in large files already, which
        come last, with new names.
        """
        files = self._files if number is None else [self._files[number]]
        every = [piece for pieces in files for piece in pieces]
        for table in ("captures", "faults"):
            spans = (
                row_files.RowSpan(
                    self._fetch(result.file(table)),
                    getattr(result, f"{table}_at"),
                    getattr(result.source, table),
                )
                for result in every
                if not result.own and getattr(result.source, table)
            )
            for path in row_files.gather_rows(self.database, spans, table, folder, self._changed):
                yield path.name, path
        own = [name for result in every if result.own for name in result.files()]
        for place, name in enumerate(own):
            table = name.rpartition("/")[2].partition("-")[0]
            yield intake.part_path(Path(), table, f"own-{place:06}").name, self._fetch(name)

    def place(self, store: Writer, folder: Path) -> dict[str, None]:
        """Return the names of all data files in the order of the plan.

        Only the rows of files with changed captures are gathered in `folder` and put into the
        store; the others are there.
        """
        names: dict[str, None] = {}
        for number, pieces in enumerate(self._files):
            if number not in self._rewritten:
                names |= dict.fromkeys(name for piece in pieces for name in piece.files())
                continue
            for name, path in self.gather(folder, number):
                joined = f"joined-{number:06}/{name}"
                with writing(path), path.open("rb") as file:
                    store.put(self.plan.key(joined), file)
                path.unlink()
                names[joined] = None
        return names

    def _join_ranges(self, number: int, ranges: tuple[SplitResult, ...]) -> bool:
        """Return whether a file's ranges join; change captures for which other ranges count."""
        requests = join_borders(
            [(piece.source.captures + piece.source.skipped, piece.near) for piece in ranges]
        )
        # Each range begins with exactly the record at which the previous one ended.
        if (
            requests is None
            or any(sum(code in piece.source.codes for piece in ranges) > 1 for code in _ONCE)
            or any(a.next is None or a.next != b.first for a, b in pairwise(ranges))
        ):
            return False
        captures = [
            self._fetch(piece.file("captures")) for piece in ranges if piece.source.captures
        ]
        changed = renumber_captures(self.database, captures)
        for (place, capture), columns in requests.items():
            path = self._fetch(ranges[place].file("captures"))
            row = ranges[place].captures_at + capture
            self.database.execute(_SET_REQUEST, {"file": str(path), "row": row, **columns})
            changed.add(path)
        if changed:
            self._changed |= changed
            self._rewritten.add(number)
        return True

    def _fetch(self, name: str) -> Path:
        return self.store.local(self.plan.key(name))


def _is_lost(result: SplitResult) -> bool:
    """Return whether a split could not be read; a fault then says so."""
    return "unreadable" in result.source.codes


def connect(scratch: Path, jobs: int) -> engine.Connection:
    """Return the database that joins rows; `scratch` is an empty folder for it."""
    with engine.reading(str(scratch)):
        connection = engine.connect(threads=jobs, memory_megabytes=_MEMORY, scratch=scratch)
        connection.execute(_CREATE_CHANGED)
    return connection


_CREATE_CHANGED = (
    "CREATE TABLE changed (file VARCHAR, row BIGINT, identity VARCHAR, "
    "fetch_method VARCHAR, fetch_body VARCHAR, url_surtkey VARCHAR, warc_request_offset BIGINT)"
)
_SET_REQUEST = (
    "INSERT INTO changed VALUES ($file, $row, NULL, $fetch_method, $fetch_body, $url_surtkey, "
    "$warc_request_offset)"
)
_RENAMED = f"""
INSERT INTO changed (file, row, identity) {index_columns.identities("file, row", "FROM alike")}
"""


def renumber_captures(connection: engine.Connection, captures: Sequence[Path]) -> set[Path]:
    """Renumber equal captures over the ranges of a file; return the Parquet files that change.

    New identities are written to the table `changed`, with the row's number in its Parquet file.
    """
    files = [str(path) for path in captures]
    if len(files) < 2:
        return set()
    with engine.reading("the intermediate results"):
        connection.execute(_AGAIN, {"files": files})
        if not connection.execute("FROM again LIMIT 1").fetchall():
            return set()  # as nearly always; what follows takes ten times as long
        connection.execute(_ALIKE, {"files": files})
        connection.execute(_RENAMED, {"triples": index_columns.TRIPLES})
        renamed = connection.execute("SELECT DISTINCT file FROM alike").fetchall()
        return {Path(file) for (file,) in renamed}


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
        problem=next((p.source.problem for p in pieces if p.source.problem), ""),
        **asdict(crawl),
    )


def check_parts(store: Writer, plan: IngestPlan) -> None:
    """Raise UsageError, which names some, if parts of a run are missing. Raises StoreError."""
    if missing := list_missing(store, plan):
        listed = ", ".join(map(str, missing[:_NAMED])) + (" and more" if missing[_NAMED:] else "")
        raise UsageError(
            f"{len(missing):,} of {plan.chunks:,} parts of run {plan.run} are missing: {listed}. "
            f"Run `sheaf ingest part --run {plan.run} --index {missing[0]}`, or the state machine "
            f'again with {{"run": "{plan.run}"}}'
        )


def commit(
    store: Writer,
    plan: IngestPlan,
    folder: Path,
    say: Callable[[str], None],
    settings: Configuration | None = None,
) -> IngestResult:
    """Commit all parts in the store as one run of intake; `folder` holds unfinished files.

    Raises UsageError if a part is missing, and StoreError.
    """
    check_parts(store, plan)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)

    def find(index: int) -> IngestPart:
        part = find_part(store, plan, index)
        if part is None:
            raise DamagedStore(f"{plan.key(part_name(index))} was removed during the commit")
        return part

    def reread(torn: Mapping[int, ArchiveFile]) -> Iterator[SplitResult]:
        for number, file in torn.items():
            index = plan.chunks + number  # no chunk of the plan has it
            part = find_part(store, plan, index) or write_part(
                store, plan, index, (Split(file),), folder, settings
            )
            yield from part.results

    with closing(connect(folder, 1)) as database:
        joined = FileJoin(store, plan, database, say)
        parts = map_in_order(find, range(plan.chunks), _THREADS, 2 * _THREADS)
        joined.join((result for part in parts for result in part.results), reread)
        names = tuple(joined.place(store, folder))
    run = intake.IntakeRun(plan.run, tuple(joined.sources()), parts=names)
    intake.commit(store, run, folder, ())
    return IngestResult(run, tuple(joined.whole))
