"""Ingest of ReDIF: reads sources, and commits a run of the obi store.

All sources are read and parsed before a time is claimed. Other runs therefore wait only for the
comparison with the store and for the writing. Nothing is written before that.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from builder.errors import UsageError, explaining
from builder.intake import pool
from builder.obi import log, replay
from builder.obi.content import SOURCE, TEMPLATE
from builder.obi.history import DOCUMENTS, LOG, history
from builder.obi.run import ObiRun, ObiRuntime, Purpose, claim
from builder.sources.redif import tarball
from builder.sources.redif.account import RedifReport, build_report
from builder.sources.redif.entry import LogEntries, Parents
from builder.sources.redif.known_files import KnownFiles
from builder.sources.redif.packing import PackStorage, Stretches
from builder.sources.redif.parse import parse
from builder.sources.redif.spool import (
    LARGEST,
    FileOrigin,
    Flaw,
    RedifFile,
    Segment,
    Spool,
)
from builder.sources.redif.staging import (
    ALL_READ,
    INCOMPLETE,
    PREFIX,
    UNREAD,
    Acceptance,
    compare,
    stage,
)
from builder.sources.redif.tree import open_member, tree_members
from builder.store.durable import writing
from builder.store.workdir import Work
from functions.snapshot.errors import Conflict, StoreError
from functions.snapshot.store import Writer
from functions.store import engine

T = TypeVar("T")
_MEMORY = 512  # megabytes for DuckDB
_FLAWS = 10_000  # most files left out that are listed one by one
_OF_REDIF = f"kind IN ('{TEMPLATE}', '{SOURCE}') OR row = 'fault' AND code = '{INCOMPLETE}'"
"""The condition on rows of logs: of templates, of their files, and of files that hid templates."""
KIND = "ingest"
"""The kind of these runs."""
_VERSION = 1  # version of the fingerprint

Bar = Callable[[str, int | None, str], AbstractContextManager[Callable[[int], None]]]
"""Opens a progress bar: its label, the total (None if unknown) and the unit."""


@dataclass(frozen=True, slots=True)
class RedifJob:
    """What to ingest as one run: sources, the time if it is given, and accepted losses."""

    origins: tuple[FileOrigin, ...]
    tist: int | None = None
    accepted: Acceptance = field(default_factory=Acceptance)

    @property
    def label(self) -> str:
        """The names of the sources."""
        return ", ".join(origin.label for origin in self.origins)

    def fingerprint(self) -> str:
        """Return a text that identifies the request, but not the content of its files."""
        places = [str(origin.path.absolute()) for origin in self.origins]
        return json.dumps([_VERSION, places, self.tist])


@dataclass(frozen=True, slots=True)
class RedifRuntime:
    """Settings and dependencies of an ingest.

    `largest` bounds the bytes of a file. `encodings` has the encoding of undeclared text, by
    archive. Files of folders that have not changed are not read again, unless `again`; `home` keeps
    what is known of them, None keeps nothing.
    """

    obi: ObiRuntime
    bar: Bar
    jobs: int = 1
    largest: int = LARGEST
    encodings: Mapping[str, str] = field(default_factory=dict)
    home: Path | None = None
    again: bool = False


def is_done(store: Writer, job: RedifJob) -> bool:
    """Return whether the job's single source was ingested as of its time. Raises DamagedStore."""
    if job.tist is None or len(job.origins) != 1:
        return False
    (origin,) = job.origins
    return any(
        (run.time, run.kind, Path(run.source).name) == (job.tist, KIND, origin.path.name)
        for run in history(store)
    )


def accept_held(store: Writer, job: RedifJob) -> RedifJob:
    """Return the job a second later if it was done before and held losses that it now accepts.

    Any other job is returned unchanged. Raises DamagedStore.
    """
    while job.tist is not None and is_done(store, job):
        homes = log.read_held(store, history(store), job.tist)
        if not any(job.accepted.everything or home in job.accepted.archives for home in homes):
            break
        job = replace(job, tist=job.tist + 1)
    return job


def ingest(store: Writer, job: RedifJob, work: Work, runtime: RedifRuntime) -> RedifReport | None:
    """Ingest the sources, commit the run, and return its report.

    A run that was cut off continues. If it lacked only its commit, it is committed and the result
    is None: there is no report. Raises UsageError if no source holds ReDIF, and StoreError.
    """
    has_trees = any(origin.is_tree for origin in job.origins)
    request = json.dumps([store.address, job.fingerprint(), sorted(runtime.encodings.items())])
    with work.scratch() as folder, ExitStack() as stack:
        known_files: KnownFiles | None = None
        if runtime.home and has_trees:
            known_files = KnownFiles(runtime.home, request, trust=not runtime.again)
            stack.callback(known_files.close)
        doing = _RedifIngest(store, job, runtime, folder, known_files)
        content = doing.read()
        purpose = Purpose(KIND, job.label, job.fingerprint(), content)
        while True:
            try:
                run = claim(store, purpose, runtime.obi, tist=job.tist)
            except StoreError:
                if is_done(store, job):
                    return None
                raise
            try:
                return doing.commit(run)
            except Conflict:
                # It was begun before, from files that have changed since. A given time is used only
                # once.
                if job.tist is not None or doing.conflicts:
                    raise
                doing.conflicts += 1
                run.abandon("its sources have changed since it began")


class _RedifIngest:
    def __init__(
        self,
        store: Writer,
        job: RedifJob,
        runtime: RedifRuntime,
        folder: Path,
        known_files: KnownFiles | None,
    ) -> None:
        self._store, self._job, self._runtime, self._folder = store, job, runtime, folder
        self._segments: list[Segment] = []
        self._flaws: list[tuple[int, Flaw]] = []
        self._dropped: list[int] = []  # files that were read again
        self._databases = 0
        self._known_files = known_files
        self._following = 0  # the next ordinal of a file
        self.conflicts = 0

    def read(self) -> str:
        """Copy the files of the sources to this machine and parse them; return their digest."""
        known_files = self._known_files
        spool = self._open_spool(known_files.following if known_files else 0)
        with ExitStack() as stack:
            progress = _ParsingProgress(self._runtime.bar, stack)
            self._parse(self._copy(spool, progress), progress.add)
        self._following = spool.ordinal
        if not self._segments and not (known_files and known_files.skipped):
            why = f": {self._flaws[0][1].detail}" if self._flaws else ""
            raise UsageError(f"{self._job.label} has no readable ReDIF file{why}")
        return spool.digest()

    def _open_spool(self, ordinal: int) -> Spool:
        runtime, first = self._runtime, len(self._segments)
        return Spool(self._folder, runtime.largest, runtime.encodings, first, ordinal)

    def _copy(self, spool: Spool, progress: "_ParsingProgress") -> Iterator[Segment]:
        """Copy the files of the sources, and yield each segment as soon as it is complete."""
        known_files, yielded, skipped = self._known_files, 0, 0
        with self._runtime.bar("reading", None, " files") as bar:
            for number, origin in enumerate(self._job.origins):
                for member in _members(number, origin, known_files):
                    flaw = member if isinstance(member, Flaw) else spool.take(number, member)
                    if flaw:
                        self._note(number, flaw)
                    bar(1)
                    yield from spool.segments[yielded:]
                    yielded = len(spool.segments)
                if known_files is not None:
                    bar(known_files.skipped - skipped)
                    skipped = known_files.skipped
            spool.close()
        if known_files is not None:
            spool.add_known(known_files.end_scan())
        progress.show(spool.bytes)
        yield from spool.segments[yielded:]

    def _parse(self, segments: Iterable[Segment], advance: Callable[[int, int], None]) -> None:
        """Parse segments, the first ones while later ones are still made."""
        self._segments += pool.map_tasks(parse, segments, self._runtime.jobs, advance)

    def _read_again(self, files: Sequence[tuple[int, int, str]]) -> None:
        """Read files whole after all: each with its ordinal, its source and its path."""
        spool = self._open_spool(self._following)
        for ordinal, number, path in files:
            self._dropped.append(ordinal)
            for member in open_member(self._job.origins[number].path, path):
                flaw = member if isinstance(member, Flaw) else spool.take(number, member)
                if flaw is not None:
                    self._note(number, flaw)
        spool.close()
        self._following = spool.ordinal
        with self._runtime.bar("parsing", spool.bytes, "B") as bar:
            self._parse(spool.segments, lambda read, _: bar(read))

    def _note(self, source: int, flaw: Flaw) -> None:
        if self._known_files is not None:
            self._known_files.doubt(source, flaw.path)
        if len(self._flaws) < _FLAWS:
            self._flaws.append((source, flaw))
        elif len(self._flaws) == _FLAWS:  # files beyond the list may hide anything
            self._flaws += [
                (number, Flaw("", "flaws-cut", f"{_FLAWS:,} are listed", True))
                for number in range(len(self._job.origins))
            ]

    def commit(self, run: ObiRun) -> RedifReport:
        """Compare with the states before this one, write what is new, and commit the run."""
        while True:
            place = self._folder / f"database-{self._databases}"
            self._databases += 1
            with writing(place):
                place.mkdir()
            with engine.reading(str(place)):
                database = engine.connect(
                    threads=self._runtime.jobs, memory_megabytes=_MEMORY, scratch=place
                )
            with closing(database) as connection, closing(Stretches(self._folder)) as texts:
                self._compare(connection, run, place)
                with engine.reading("the read templates"):
                    lacking = connection.execute(UNREAD).fetchall()
                if not lacking:
                    report = self._write(run, connection, texts, place)
                    if self._known_files is not None:
                        origins = enumerate(self._job.origins)
                        trees = [number for number, origin in origins if origin.is_tree]
                        self._known_files.keep(
                            connection, self._following, trees, bool(self._segments)
                        )
                    return report
            self._read_again(lacking)

    def _compare(self, connection: engine.Connection, run: ObiRun, place: Path) -> None:
        known_files, before = self._known_files, run.turn()
        statements = ALL_READ if known_files is None else known_files.statements(self._dropped)
        with self._runtime.bar("comparing", len(before), " runs") as bar:
            stage(
                connection,
                self._segments,
                self._job.origins,
                self._flaws,
                statements,
                dropped=self._dropped,
            )
            replay.fold_objects(connection, self._store, before, place, _OF_REDIF)
            compare(connection, self._job.accepted)
            bar(len(before))

    def _write(
        self, run: ObiRun, connection: engine.Connection, texts: Stretches, place: Path
    ) -> RedifReport:
        skipped = self._known_files.skipped - len(self._dropped) if self._known_files else 0
        report = build_report(connection, run.tist, self._job.label, skipped)
        with self._runtime.bar("storing", None, "B") as bar, writing(place):
            packs = PackStorage(connection, run, self._folder, texts)
            packs.store(self._segments, PREFIX, bar)
        entries = LogEntries(connection, texts, run.tist)
        with self._runtime.bar("writing", report.documents, " documents") as bar, writing(place):
            log, codes = entries.write_log(place / LOG)
            parents = Parents(connection, self._store)
            documents = entries.write_documents(place / DOCUMENTS, parents, bar)
        return report.having(run.commit_files(place, log, documents), codes)


class _ParsingProgress:
    """The bar of parsing, which is shown when all files were copied."""

    def __init__(self, bar: Bar, stack: ExitStack) -> None:
        self._open, self._stack = bar, stack
        self._early = 0
        self._bar: Callable[[int], None] | None = None

    def add(self, read: int, templates: int) -> None:
        if self._bar is None:
            self._early += read
        else:
            self._bar(read)

    def show(self, whole: int) -> None:
        self._bar = self._stack.enter_context(self._open("parsing", whole, "B"))
        self._bar(self._early)


def _members(
    number: int, origin: FileOrigin, known_files: KnownFiles | None
) -> Iterator[RedifFile | Flaw]:
    with explaining(origin.label, "read"):
        if not origin.is_tree:
            yield from tarball.members(origin.path)
        elif known_files is None:
            yield from tree_members(origin.path)
        else:
            yield from tree_members(origin.path, partial(known_files.compare, number))
