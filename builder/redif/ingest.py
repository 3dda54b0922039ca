"""Ingest of ReDIF: reads sources, and commits a run of the obi store.

All sources are read and parsed before a time is claimed. Other runs therefore wait only for the
comparison with the store and for the writing. Nothing is written before that.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from builder.errors import UsageError
from builder.ingest import pool
from builder.ingest.workdir import Work
from builder.intake.intake import writing
from builder.obi import log
from builder.obi.content import ArchiveRow
from builder.obi.history import DOCUMENTS, LOG, Committed
from builder.obi.key import DAY_START, parse_tist
from builder.obi.run import ObiRun, ObiRuntime, Purpose, claim, history
from builder.redif import tarball
from builder.redif.account import RedifReport, build_report
from builder.redif.entry import LogEntries, Parents
from builder.redif.known_files import KnownFiles, open_known
from builder.redif.packing import PackStorage
from builder.redif.parse import parse
from builder.redif.source import Sources, open_member, tarballs, tree_members
from builder.redif.spool import LARGEST, NO_ENCODINGS, FileOrigin, Flaw, RedifFile, Segment, Spool
from builder.redif.staging import (
    PREFIX,
    UNKNOWN,
    UNREAD,
    Acceptance,
    compare,
    stage,
)
from builder.redif.stored_state import read_state
from builder.redif.stretches import Stretches, stretches
from functions.database import engine
from functions.snapshot.errors import Conflict, StoreError
from functions.snapshot.store import Writer

T = TypeVar("T")
_KIND = "ingest"
_MEMORY = 2048  # megabytes for DuckDB; a million new templates need more than 512
_FLAWS = 10_000  # most files left out that are listed one by one
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

    runtime: ObiRuntime
    bar: Bar
    jobs: int = 1
    largest: int = LARGEST
    encodings: Mapping[str, str] = field(default_factory=lambda: NO_ENCODINGS)
    home: Path | None = None
    again: bool = False


def jobs(
    files: Sequence[str],
    time: str | None,
    sources: Sources,
    accepted: Acceptance,
) -> list[RedifJob]:
    """Return the runs in order: of tarballs at their dates, and one of the other sources.

    `time` dates the one tarball, or else the sources. Raises UsageError.
    """
    tist = None if time is None else parse_tist(time, "--tist", DAY_START)
    states = [*files, *sources.dated]
    if tist is not None and len(states) + bool(sources.redif) != 1:
        raise UsageError("--tist expects either one TARBALL or SOURCEs of ReDIF")
    found = [RedifJob((origin,), at, accepted) for origin, at in tarballs(states, tist)]
    return [*found, RedifJob(sources.redif, tist, accepted)] if sources.redif else found


def is_done(store: Writer, order: RedifJob) -> bool:
    """Return whether the job's single source was ingested as of its time. Raises DamagedStore."""
    if order.tist is None or len(order.origins) != 1:
        return False
    (origin,) = order.origins
    return any(
        (run.tist, run.kind, Path(run.source).name) == (order.tist, _KIND, origin.path.name)
        for run in history(store)
    )


def accept_held(store: Writer, order: RedifJob) -> RedifJob:
    """Return the job a second later if it was done before and held losses that it now accepts.

    Any other job is returned unchanged. Raises DamagedStore.
    """
    while is_done(store, order):
        (run,) = (run for run in history(store) if run.tist == order.tist)
        rows = log.read_rows(store, run)
        held = {row.home for row in rows if isinstance(row, ArchiveRow) and row.held}
        if not any(order.accepted.everything or home in order.accepted.archives for home in held):
            break
        order = replace(order, tist=run.tist + 1)
    return order


def ingest(store: Writer, order: RedifJob, work: Work, means: RedifRuntime) -> RedifReport | None:
    """Ingest the sources, commit the run, and return its report.

    A run that was cut off continues. If it lacked only its commit, it is committed and the result
    is None: there is no report. Raises UsageError if no source holds ReDIF, and StoreError.
    """
    has_trees = any(origin.is_tree for origin in order.origins)
    asked = json.dumps([store.address, order.fingerprint(), sorted(means.encodings.items())])
    kept = open_known(means.home if has_trees else None, asked, trust=not means.again)
    with work.scratch() as folder, kept as known:
        doing = _RedifIngest(store, order, means, folder, known)
        content = doing.read()
        purpose = Purpose(_KIND, order.label, order.fingerprint(), content)
        while True:
            try:
                run = claim(store, purpose, means.runtime, tist=order.tist)
            except StoreError:
                if is_done(store, order):
                    return None
                raise
            try:
                return doing.commit(run)
            except Conflict:
                # It was begun before, from files that have changed since. A given time is used only
                # once.
                if order.tist is not None or doing.conflicts:
                    raise
                doing.conflicts += 1
                run.abandon("its sources have changed since it began")


class _RedifIngest:
    def __init__(
        self,
        store: Writer,
        order: RedifJob,
        means: RedifRuntime,
        folder: Path,
        known: KnownFiles | None,
    ) -> None:
        self._store, self._order, self._means, self._folder = store, order, means, folder
        self._segments: list[Segment] = []
        self._flaws: list[tuple[int, Flaw]] = []
        self._dropped: list[int] = []  # known files that cannot be read any more
        self._databases = 0
        self._known = known
        self.conflicts = 0

    def read(self) -> str:
        """Copy the files of the sources to this machine and parse them; return their digest."""
        spool, known = self._open_spool(), self._known
        with self._means.bar("reading", None, " files") as bar:
            for number, origin in enumerate(self._order.origins):
                for found in _members(origin):
                    if isinstance(found, Flaw):
                        self._note(number, found)
                    elif known is not None and origin.is_tree and known.has(number, found):
                        known.skip(spool.files, number, found.path)
                        spool.skip(number, found)
                    elif flaw := spool.take(number, found):
                        self._note(number, flaw)
                    bar(1)
            spool.close()
        if known is not None:
            known.end_scan()
        self._segments = spool.segments
        if not self._segments and not (known and known.skipped):
            why = f": {self._flaws[0][1].detail}" if self._flaws else ""
            raise UsageError(f"{self._order.label} has no readable ReDIF file{why}")
        self._parse(spool)
        return spool.digest()

    def _open_spool(self) -> Spool:
        means = self._means
        return Spool(self._folder, means.largest, means.encodings, len(self._segments))

    def _parse(self, spool: Spool) -> None:
        with self._means.bar("parsing", spool.bytes, "B") as bar:
            told: Callable[[int, int], None] = lambda read, templates: bar(read)  # noqa: E731
            for _ in pool.map_tasks(parse, spool.segments, self._means.jobs, told):
                pass

    def _read_again(self, files: Sequence[tuple[int, int, str]]) -> None:
        """Read known files after all: each with its ordinal, its source and its path."""
        spool = self._open_spool()
        for ordinal, number, path in files:
            flaw: Flaw | None = None
            for found in open_member(self._order.origins[number].path, path):
                flaw = found if isinstance(found, Flaw) else spool.take(number, found, ordinal)
            if flaw is not None:
                self._note(number, flaw)
                self._dropped.append(ordinal)
        spool.close()
        self._parse(spool)
        self._segments += spool.segments

    def _note(self, source: int, flaw: Flaw) -> None:
        if len(self._flaws) < _FLAWS:
            self._flaws.append((source, flaw))
        elif len(self._flaws) == _FLAWS:  # files beyond the list may hide anything
            self._flaws += [
                (number, Flaw("", "flaws-cut", f"{_FLAWS:,} are listed", True))
                for number in range(len(self._order.origins))
            ]

    def commit(self, run: ObiRun) -> RedifReport:
        """Compare with the runs before this one, write what is new, and commit the run."""
        while True:
            place = self._folder / f"database-{self._databases}"
            self._databases += 1
            with writing(place):
                place.mkdir()
            with (
                stretches(self._folder) as texts,
                closing(self._connect(place)) as connection,
            ):
                self._compare(connection, run.turn(), place)
                with engine.reading("the read templates"):
                    lacking = connection.execute(UNREAD).fetchall()
                if not lacking:
                    report = self._write(run, connection, texts, place)
                    if self._known is not None:
                        self._known.keep(connection)
                    return report
            self._read_again(lacking)

    def _compare(
        self, connection: engine.Connection, before: Sequence[Committed], place: Path
    ) -> None:
        known = self._known
        statements = UNKNOWN if known is None else known.statements(self._dropped)
        with self._means.bar("comparing", len(before), " runs") as bar:
            stage(connection, self._segments, self._order.origins, self._flaws, statements)
            read_state(connection, self._store, before, place)
            compare(connection, self._order.accepted)
            bar(len(before))

    def _write(
        self, run: ObiRun, connection: engine.Connection, texts: Stretches, place: Path
    ) -> RedifReport:
        account = build_report(connection, run.tist, self._order.label)
        with self._means.bar("storing", None, "B") as bar, writing(place):
            packs = PackStorage(connection, run, self._folder, texts)
            packs.store(self._segments, PREFIX, bar)
        entries = LogEntries(connection, texts, run.tist)
        with self._means.bar("writing", account.documents, " documents") as bar, writing(place):
            said, codes = entries.write_log(place / LOG)
            parents = Parents(connection, self._store)
            told = entries.write_documents(place / DOCUMENTS, parents, bar)
        return account.having(run.commit_files(place, said, told), codes)

    def _connect(self, place: Path) -> engine.Connection:
        with engine.reading(str(place)):
            return engine.connect(threads=self._means.jobs, memory_megabytes=_MEMORY, scratch=place)


def _members(origin: FileOrigin) -> Iterator[RedifFile | Flaw]:
    try:
        read = tree_members if origin.is_tree else tarball.members
        yield from read(origin.path)
    except OSError as error:
        raise UsageError(f"{origin.label} cannot be read: {error.strerror}") from error
