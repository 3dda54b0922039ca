"""Ingest of archive files into one run of the intake.

Results are kept until everything is committed, so that nothing is read twice after an interruption.
The output does not depend on the splits or the number of processes.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from builder.errors import UsageError
from builder.ingest import pool, splits, workdir
from builder.ingest.plan import IngestJob
from builder.ingest.remote.access import SourceAccess
from builder.ingest.result import IngestResult, judge
from builder.ingest.split_reader import SplitResult, Task, carry_out
from builder.ingest.splits import ArchiveFile, Split
from builder.ingest.workdir import Work
from builder.intake import intake, rows
from functions.database import engine
from functions.snapshot import layout, oai_name
from functions.snapshot.errors import MissingObject
from functions.snapshot.store import Writer


class Watch(Protocol):
    """Observer of the progress."""

    def resume(self, read: int, captures: int, files: int) -> None:
        """Called with the counts of earlier processes."""
        ...

    def advance(self, read: int, captures: int, files: int) -> None:
        """Called with bytes read, captures found and files finished since the last call."""
        ...


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Options: processes, observer of the progress, and size of a split if it is given."""

    watch: Watch
    jobs: int = 1
    say: Callable[[str], None] = lambda text: None
    split: int | None = None
    connection: SourceAccess | None = None


def collection_sets(collections: Sequence[str]) -> tuple[str, ...]:
    """Return the sets of `--collection` values, whose levels are separated by colons."""
    specs = []
    for collection in collections:
        levels = collection.split(":")
        if not all(levels):
            raise UsageError(f"--collection {collection!r}: a level between colons is empty")
        try:
            specs.append(oai_name.join_set("collection", *levels))
        except UnicodeEncodeError as error:
            raise UsageError(f"--collection {collection!r}: expected UTF-8") from error
    return oai_name.most_specific_sets(specs)


def ingest(
    store: Writer, job: IngestJob, work: Work, options: IngestOptions, name: str
) -> IngestResult:
    """Read the archive files and commit their rows as one run of intake, `name`.

    Results in the work folder are not read again; a run that was begun keeps its name. The run is
    committed even if files fail, so that their faults are published.
    """
    work_state = work.begin(run=name, split=options.split or splits.size(job.bytes, options.jobs))
    with (
        work.scratch() as scratch,
        closing(workdir.connect(scratch, options.jobs)) as connection,
    ):
        state = _Ingest(job, work, options, connection)
        state.resume(int(work_state["split"]))
        state.read()
        sources = tuple(state.source(file) for file in job.files)
        for file, source in zip(job.files, sources, strict=True):
            if "unreadable" not in source.codes and file.has_changed():
                options.say(
                    f"{file.label} changed while it was read: ingest it again when it is complete"
                )
        run = intake.IntakeRun(str(work_state["run"]), sources)
        committed = False
        if run.name != name:
            run, committed = _find_resumable(store, run, name)
        if not committed:
            intake.commit(store, run, work.folder, state.rows())
    work.remove()
    return IngestResult(run, tuple(state.whole))


def _find_resumable(
    store: Writer, run: intake.IntakeRun, name: str
) -> tuple[intake.IntakeRun, bool]:
    """Return the run that was begun under a name, and whether it is committed.

    Files that an earlier process moved into an uncommitted run are removed: sources may have
    changed.
    """
    prefix = layout.run_prefix(run.name)
    try:
        if store.read(prefix + layout.RUN_SUMMARY) == intake.summary(run):
            return run, True
    except MissingObject:
        store.remove(*list(store.keys(prefix)))
        return run, False
    return intake.IntakeRun(name, run.sources), False


@dataclass
class _Ingest:
    """State of one ingest: the splits of its files, and the results of reading them."""

    job: IngestJob
    work: Work
    options: IngestOptions
    connection: engine.Connection
    whole: list[str] = field(default_factory=list)
    _split: int = splits.MOST
    _ranges: dict[ArchiveFile, tuple[Split, ...]] = field(default_factory=dict)
    _done: dict[Split, SplitResult] = field(default_factory=dict)
    _renamed: set[Path] = field(default_factory=set)
    _left: Counter[ArchiveFile] = field(default_factory=Counter)

    def resume(self, split: int) -> None:
        """Split the files, and load the results of earlier processes."""
        self._split = split
        # Files that could not be read may be available again.
        self._done = {
            one.split: one for one in self.work.readings() if "unreadable" not in one.source.codes
        }
        for file in self.job.files:
            ranges = splits.ranges(file, split)
            if Split(file) not in self._done:
                self._ranges[file] = ranges
            elif ranges:
                self.whole.append(file.label)
        known = [s for file in self.job.files for s in self._plan_splits(file) if s in self._done]
        files = sum(all(s in self._done for s in self._plan_splits(f)) for f in self.job.files)
        read = sum(s.bytes for s in known)
        if not (files or read):
            return  # a digest alone is not reported
        self.options.watch.resume(read, sum(self._done[s].source.captures for s in known), files)
        self.options.say(
            f"resuming: {files:,} of {len(self.job.files):,} files were read before, "
            f"{read / 1e6:,.1f} of {self.job.bytes / 1e6:,.1f} MB"
        )

    def read(self) -> None:
        """Read the remaining splits."""
        self._carry_out([s for file in self.job.files for s in self._plan_splits(file)])
        torn = [file for file in self.job.files if not self._join_ranges(file)]
        odd = [file for file in torn if not self._is_lost(file)]
        for file in odd:
            self.options.say(f"{file.label}: its ranges do not join, so it is read in one piece")
        for file in torn:
            self._ranges[file] = ()
        self._carry_out([Split(file) for file in torn], again=True)
        self.whole += [file.label for file in odd if not self._is_lost(file)]

    def source(self, file: ArchiveFile) -> intake.IntakeSource:
        """Return the result of a file."""
        pieces = self._pieces(file)
        source = pieces[0].source
        if len(pieces) > 1:
            source = workdir.join_ranges(pieces, self._done[splits.digest(file)].source.digest)
        return judge(file, source)

    def rows(self) -> Iterator[Path]:
        """Write the rows of all files in order, as few files, each when it is requested."""
        every = [piece for file in self.job.files for piece in self._pieces(file)]
        pieces = [piece for piece in every if not piece.own]
        for table, at, count in (
            ("captures", "captures_at", "captures"),
            ("faults", "faults_at", "faults"),
        ):
            some = (
                rows.RowSpan(one.path(table), getattr(one, at), getattr(one.source, count))
                for one in pieces
            )
            yield from rows.gather_rows(
                self.connection, some, table, self.work.folder, self._renamed
            )
        yield from rows.link_files(
            (one.part / name for one in every for name in one.own), self.work.folder
        )

    def _plan_splits(self, file: ArchiveFile) -> tuple[Split, ...]:
        """Return the splits of a file: its digest first, so that the ranges are then cached."""
        ranges = self._ranges.get(file, ())
        return (splits.digest(file), *ranges) if ranges else (Split(file),)

    def _pieces(self, file: ArchiveFile) -> list[SplitResult]:
        return [self._done[s] for s in self._ranges.get(file) or (Split(file),)]

    def _join_ranges(self, file: ArchiveFile) -> bool:
        """Return whether a file's ranges join; renumber captures that occur in several of them."""
        pieces = self._pieces(file)
        if len(pieces) == 1:
            return True
        if self._is_lost(file):
            return False
        renamed = (
            workdir.renumber_captures(self.connection, pieces)
            if workdir.ranges_meet(pieces)
            else None
        )
        self._renamed |= renamed or set()
        return renamed is not None

    def _is_lost(self, file: ArchiveFile) -> bool:
        """Return whether a split of a file could not be read; a fault then says so."""
        return any("unreadable" in self._done[s].source.codes for s in self._plan_splits(file))

    def _carry_out(self, wanted: Sequence[Split], *, again: bool = False) -> None:
        left = [one for one in wanted if one not in self._done]
        self._left = Counter(one.file for one in left)

        def report(read: int, captures: int) -> None:
            if not again:  # progress of splits that are read again is not reported
                self.options.watch.advance(read, captures, 0)

        job = self.job
        shares = list(splits.together(left, self._split))
        threads = max(1, self.options.jobs // max(1, len(shares)))
        tasks = [
            Task(some, self.work.parts, job.sets, job.rules, threads, self.options.connection)
            for some in shares
        ]
        for readings in pool.map_tasks(carry_out, tasks, self.options.jobs, report):
            for one in readings:
                self._done[one.split] = one
                self._left[one.split.file] -= 1
                if not (self._left[one.split.file] or again):
                    self.options.watch.advance(0, 0, 1)
