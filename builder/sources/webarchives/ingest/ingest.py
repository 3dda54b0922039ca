"""Ingest of archive files by this machine into one run of the intake: plan, parts and commit.

Parts are kept in the work folder until everything is committed, so that nothing is read twice after
an interruption. The output does not depend on the splits or the number of processes.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from builder.intake import intake, pool
from builder.progress import IngestProgress
from builder.sources.webarchives.ingest import parts, splits
from builder.sources.webarchives.ingest.join import FileJoin, connect
from builder.sources.webarchives.ingest.plan import (
    IngestJob,
    IngestPart,
    SplitResult,
    find_part,
    make_plan,
)
from builder.sources.webarchives.ingest.result import IngestResult
from builder.sources.webarchives.ingest.splits import ArchiveFile, Split
from builder.store.durable import replace_durably, sync, sync_file, writing
from builder.store.folder import FolderStore
from builder.store.workdir import Work
from functions.config.configuration import Configuration
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Writer


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Options: processes, observer of the progress, and size of a split if it is given."""

    watch: IngestProgress
    jobs: int = 1
    say: Callable[[str], None] = lambda text: None
    split: int | None = None
    settings: Configuration | None = None


def ingest(
    store: Writer, job: IngestJob, work: Work, options: IngestOptions, name: str
) -> IngestResult:
    """Read the archive files and commit their rows as one run of intake, `name`.

    Parts in the work folder are not read again; a run that was begun keeps its name. The run is
    committed even if files fail, so that their faults are published.
    """
    begun = work.begin(run=name, split=options.split or splits.size(job.bytes, options.jobs))
    plan, folder = make_plan("", job), PartFolder(work.parts)
    with work.scratch() as scratch, closing(connect(scratch, options.jobs)) as database:
        joined = FileJoin(folder, plan, database, options.say)
        state = _Ingest(job, int(begun["split"]), joined, folder, scratch / "drafts", options)
        joined.join(state.read(), state.read_whole)
        run, committed = intake.IntakeRun(str(begun["run"]), tuple(joined.sources())), False
        if run.name != name:
            run, committed = _find_resumable(store, run, name)
        if not committed:
            intake.commit(store, run, work.folder, joined.gather(work.folder))
    work.remove()
    return IngestResult(run, tuple(joined.whole))


def _find_resumable(
    store: Writer, run: intake.IntakeRun, name: str
) -> tuple[intake.IntakeRun, bool]:
    """Return the run that was begun under a name, and whether it is committed.

    Files that an earlier process moved into an uncommitted run are removed: sources may have
    changed.
    """
    written = intake.read_run(store, run.name)
    if written is None:
        store.remove(*list(store.keys(layout.run_prefix(run.name))))
        return run, False
    if written.sources == run.sources:
        return run, True
    return intake.IntakeRun(name, run.sources), False


class PartFolder(FolderStore):
    """Parts in a folder that only this ingest uses, perhaps on a disk without hard links."""

    def put(self, key: str, source: BinaryIO) -> None:
        """Move a file here that is on the same disk. Raises StoreError."""
        path = self.path(key)
        with writing(self.root):
            path.parent.mkdir(exist_ok=True)
            sync_file(source)
            Path(source.name).rename(path)
            sync(path.parent)

    def create(self, key: str, data: bytes) -> None:
        """Write a small object. There must be no other writer. Raises StoreError."""
        with writing(self.root):
            replace_durably(self.path(key), data)


@dataclass
class _Ingest:
    """The reading of a job's files, with the results of each split.

    The plan is only in memory: sources may change before the ingest is resumed, and addresses may
    have secrets. So results are found by their splits.
    """

    job: IngestJob
    most: int
    joined: FileJoin
    store: PartFolder
    drafts: Path
    options: IngestOptions
    _done: dict[Split, SplitResult] = field(default_factory=dict)
    _next: int = 0  # number of a part

    def read(self) -> list[SplitResult]:
        """Return the results of all files in order; splits that are not done are read."""
        self._find_done()
        every = [self._plan_splits(file) for file in self.job.files]
        self._tell_resumed(every)
        wanted = [split for file_splits in every for split in file_splits]
        self._carry_out(wanted)
        return [self._done[split] for split in wanted]

    def read_whole(self, torn: Mapping[int, ArchiveFile]) -> list[SplitResult]:
        """Read files again in one piece each. This progress is not reported."""
        wanted = [Split(self.job.files[number]) for number in torn]
        self._carry_out(wanted, again=True)
        return [self._done[split] for split in wanted]

    def _find_done(self) -> None:
        """Load the results of earlier processes; files that were unreadable may be back."""
        for key in [key for key in self.store.keys("part-") if key.endswith(".json")]:
            index = int(key.removeprefix("part-").removesuffix(".json"))
            self._next = index + 1
            try:
                part = find_part(self.store, self.joined.plan, index)
                for name, digest in part.digests.items() if part else ():
                    with self.store.open(self.joined.plan.key(name)) as file:
                        if hashlib.file_digest(file, "sha256").hexdigest() != digest:  # type: ignore[arg-type]
                            raise DamagedStore(f"{name} is damaged")
            except (DamagedStore, MissingObject):
                self.store.remove(key)
                continue
            for result in part.results if part else ():
                if "unreadable" not in result.source.codes:
                    self._done[result.split] = result

    def _plan_splits(self, file: ArchiveFile) -> tuple[Split, ...]:
        """Return the splits of a file: the whole if an earlier process read it so."""
        every = splits.split_file(file, self.most)
        if len(every) > 1 and Split(file) in self._done:
            self.joined.whole.append(file.label)
            return (Split(file),)
        return every

    def _tell_resumed(self, every: Sequence[Sequence[Split]]) -> None:
        done = [split for file_splits in every for split in file_splits if split in self._done]
        files = sum(all(split in self._done for split in file_splits) for file_splits in every)
        read = sum(split.bytes for split in done)
        if not (files or read):
            return  # a digest alone is not reported
        captures = sum(self._done[split].source.captures for split in done)
        self.options.watch.resume(read, captures, files)
        self.options.say(
            f"resuming: {files:,} of {len(self.job.files):,} files were read before, "
            f"{read / 1e6:,.1f} of {self.job.bytes / 1e6:,.1f} MB"
        )

    def _carry_out(self, wanted: Sequence[Split], *, again: bool = False) -> None:
        left = [split for split in wanted if split not in self._done]
        splits_of = Counter(split.file for split in left)

        def report(read: int, captures: int, files: int = 0) -> None:
            if not again:
                self.options.watch.advance(read, captures, files)

        chunks = list(splits.together(left, self.most))
        jobs = self.options.jobs
        write = partial(
            parts.write_part,
            self.store,
            self.joined.plan,
            folder=self.drafts,
            settings=self.options.settings,
            threads=max(1, jobs // max(1, len(chunks))),
        )
        tasks = [partial(write, index, chunk) for index, chunk in enumerate(chunks, self._next)]
        self._next += len(chunks)
        for part in pool.map_tasks(_call, tasks, jobs, report):
            for result in part.results:
                self._done[result.split] = result
                splits_of[result.split.file] -= 1
                if not splits_of[result.split.file]:
                    report(0, 0, 1)


def _call(work: Callable[..., IngestPart], advance: pool.Advance) -> IngestPart:
    return work(advance=advance)
