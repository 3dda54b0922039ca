"""Parts of an ingest that many processes or machines share, and their commit as one run.

`sheaf ingest plan` divides the files into numbered chunks (builder.ingest.plan). A part is the
result of one chunk. Its rows are objects of their own. `part-NNNNNN.json` is written last and only
once, and makes them count. So a chunk may be read again, or twice at once: the first process to
write that object wins, and the others remove their rows.

The commit needs all parts. It joins the ranges of large files as builder.ingest.ingest does, and a
file whose ranges do not join is read in one piece, as a part of its own. The rows stay where they
are; `run.json` names them in the order of the plan.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from builder.errors import UsageError
from builder.ingest import workdir
from builder.ingest.plan import (
    IngestPart,
    IngestPlan,
    find_part,
    part_name,
    read_chunk,
    read_plan,
)
from builder.ingest.pool import Advance
from builder.ingest.remote.access import SourceAccess
from builder.ingest.result import IngestResult, judge
from builder.ingest.split_reader import PART, SplitResult, Task, carry_out
from builder.ingest.splits import ArchiveFile, Split, reader_version
from builder.intake import intake, rows
from builder.store.s3 import open_store
from builder.threads import map_in_order
from functions.config.configuration import Configuration
from functions.database import engine
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, DamagedStore
from functions.snapshot.store import Writer

_THREADS = 32  # that read the results of parts, each a small object
_NAMED = 5  # missing parts


@dataclass(frozen=True, slots=True)
class PartTask:
    """What a machine needs to read parts of a run; the credentials are in its environment.

    `folder` is for unfinished files (None: the machine's own for temporary files).
    """

    store: str
    base: Path
    settings: Configuration
    run: str
    folder: Path | None = None


def read_part(
    store: Writer,
    plan: IngestPlan,
    index: int,
    folder: Path,
    connection: SourceAccess | None = None,
    advance: Advance = lambda read, captures: None,
) -> IngestPart:
    """Read a chunk and write its part, unless it is there; `folder` holds unfinished files.

    Faults in the data are rows of the part. Raises UsageError for a number that the plan lacks or a
    reader of another version, and StoreError.
    """
    if plan.reader != reader_version():
        raise UsageError(
            f"run {plan.run} was planned by Sheaf and suffix list {' and '.join(plan.reader)}, but "
            f"these are {' and '.join(reader_version())}: use one version for all parts"
        )
    found = find_part(store, plan, index)
    if found is not None:
        return found
    chunk = read_chunk(store, plan, index)
    return _read_splits(store, plan, index, chunk, folder, connection, advance)


def carry_out_part(task: PartTask, index: int) -> int:
    """Read one chunk and return its number. Raises UsageError and StoreError."""
    store = open_store(task.store, task.base, task.settings, os.environ)
    home = task.folder or Path(tempfile.gettempdir())
    try:
        plan, connection = read_plan(store, task.run), SourceAccess.of(task.settings)
        with intake.writing(home):
            home.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix="sheaf-part-", dir=home))
        try:
            read_part(store, plan, index, folder, connection)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        store.close()
    return index


def _read_splits(
    store: Writer,
    plan: IngestPlan,
    index: int,
    chunk: tuple[Split, ...],
    folder: Path,
    connection: SourceAccess | None,
    advance: Advance,
) -> IngestPart:
    with intake.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    task = Task(chunk, folder, plan.sets, plan.rules, connection=connection)
    results = tuple(carry_out(task, advance))
    local = results[0].part
    try:
        names = []
        for path in sorted(local.glob("*.parquet")):
            names.append(f"part-{index:06}-{local.name}/{path.name}")
            with intake.writing(path), path.open("rb") as file:
                store.put(plan.key(names[-1]), file)
    finally:
        shutil.rmtree(local, ignore_errors=True)
    files = dict.fromkeys(split.file for split in chunk)
    part = IngestPart(results, tuple(names), tuple(f.label for f in files if f.has_changed()))
    try:
        store.create(plan.key(part_name(index)), part.document())
    except Conflict:
        found = find_part(store, plan, index)
        if found is not None and found.files != part.files:  # else our own write arrived twice
            store.remove(*map(plan.key, part.files))
            return found
    return part


def fail_part(store: Writer, plan: IngestPlan, index: int, reason: str, folder: Path) -> IngestPart:
    """Write a part whose files are all unreadable, as faults say, unless the part is there.

    It is for a chunk whose reading failed again and again. Raises UsageError and StoreError.
    """
    found = find_part(store, plan, index)
    if found is not None:
        return found
    chunk = tuple(
        replace(split, file=replace(split.file, flaw=reason))
        for split in read_chunk(store, plan, index)
    )
    return _read_splits(store, plan, index, chunk, folder, None, lambda read, captures: None)


def list_missing(store: Writer, plan: IngestPlan) -> list[int]:
    """Return the numbers of the chunks whose part is not there.

    Raises UsageError if the run is committed.
    """
    there = set(store.keys(layout.run_prefix(plan.run)))
    if plan.key(layout.RUN_SUMMARY) in there:
        raise UsageError(f"run {plan.run} is committed already: run `sheaf publish`")
    return [n for n in range(plan.chunks) if plan.key(part_name(n)) not in there]


def commit(
    store: Writer,
    plan: IngestPlan,
    folder: Path,
    say: Callable[[str], None],
    connection: SourceAccess | None = None,
) -> IngestResult:
    """Commit all parts as one run of intake; `folder` holds unfinished files.

    Raises UsageError if a part is missing, and StoreError.
    """
    if missing := list_missing(store, plan):
        listed = ", ".join(map(str, missing[:_NAMED])) + (" and more" if missing[_NAMED:] else "")
        raise UsageError(
            f"{len(missing):,} of {plan.chunks:,} parts of run {plan.run} are missing: {listed}. "
            f"Run `sheaf ingest part --run {plan.run} --index {missing[0]}`"
        )
    with intake.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with closing(workdir.connect(folder, 1)) as database:
        return _Commit(store, plan, folder, say, connection, database).run()


@dataclass
class _Commit:
    """One commit: the results of the files, and the data files in order."""

    store: Writer
    plan: IngestPlan
    folder: Path
    say: Callable[[str], None]
    connection: SourceAccess | None
    database: engine.Connection
    _sources: list[intake.IntakeSource] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)
    _whole: list[str] = field(default_factory=list)

    def run(self) -> IngestResult:
        """Join the files, and write the run's summary."""
        for group in self._group():
            first = group[0].results[0].split
            if first.kind == "whole":
                self._add(group[0])
            else:
                self._join(first.file, group)
        run = intake.IntakeRun(self.plan.run, tuple(self._sources), parts=tuple(self._names))
        intake.commit(self.store, run, self.folder, ())
        return IngestResult(run, tuple(self._whole))

    def _group(self) -> Iterator[list[IngestPart]]:
        """Yield each part of whole files, and the parts of a file's digest and ranges together."""
        held: list[IngestPart] = []
        for part in map_in_order(self._find, range(self.plan.chunks), _THREADS, 2 * _THREADS):
            for label in part.changed:
                self.say(f"{label} changed while it was read: ingest it again when it is complete")
            split = part.results[0].split
            if held and (split.kind in ("whole", "digest")):
                yield held
                held = []
            held.append(part)
        if held:
            yield held

    def _find(self, index: int) -> IngestPart:
        part = find_part(self.store, self.plan, index)
        if part is None:
            raise DamagedStore(f"{self.plan.key(part_name(index))} was removed during the commit")
        return part

    def _add(self, part: IngestPart) -> None:
        """Add the files of a part of whole files."""
        for result in part.results:
            source = result.source
            self._sources.append(judge(result.split.file, source))
        self._names += part.files

    def _join(self, file: ArchiveFile, parts: Sequence[IngestPart]) -> None:
        """Add a file by its digest and its ranges, or in one piece if these do not join."""
        digest, *ranges = (part.results[0] for part in parts)
        lost = any("unreadable" in one.source.codes for one in (digest, *ranges))
        names = None if lost else self._join_ranges(ranges, parts[1:])
        if names is not None:
            source = workdir.join_ranges(ranges, digest.source.digest)
            self._sources.append(judge(file, source))
            self._names += names
            return
        if not lost:
            self.say(f"{file.label}: its ranges do not join, so it is read in one piece")
            self._whole.append(file.label)
        index = self.plan.chunks + len(self._sources)  # no chunk of the plan has it
        again = find_part(self.store, self.plan, index) or _read_splits(
            self.store, self.plan, index, (Split(file),), self.folder, self.connection,
            lambda read, captures: None,
        )  # fmt: skip
        self._add(again)

    def _join_ranges(
        self, ranges: Sequence[SplitResult], parts: Sequence[IngestPart]
    ) -> list[str] | None:
        """Return the data files of a file's ranges, None if the ranges do not join."""
        if not workdir.ranges_meet(ranges):
            return None
        local = [
            replace(one, part=self._fetch_captures(part))
            for one, part in zip(ranges, parts, strict=True)
        ]
        renamed = workdir.renumber_captures(self.database, local)
        if renamed is None:
            return None
        names = [name for part in parts for name in part.files]
        if not renamed:
            return names
        spans = (rows.RowSpan(one.path("captures"), 0, one.source.captures) for one in local)
        again = rows.gather_rows(self.database, spans, "captures", self.folder, renamed)
        below = f"joined-{len(self._sources):06}"
        joined = []
        for path in again:
            joined.append(f"{below}/{path.name}")
            with path.open("rb") as file:
                self.store.put(self.plan.key(joined[-1]), file)
            path.unlink()
        return joined + [name for name in names if "/captures-" not in name]

    def _fetch_captures(self, part: IngestPart) -> Path:
        """Return a folder with the captures of a range, as SplitResult.path names them."""
        folder = self.folder / part.files[0].partition("/")[0] if part.files else self.folder
        for name in part.files:
            if "/captures-" in name:
                folder.mkdir(exist_ok=True)
                path = intake.part_path(folder, "captures", PART)
                path.unlink(missing_ok=True)
                path.symlink_to(self.store.local(self.plan.key(name)))
        return folder
