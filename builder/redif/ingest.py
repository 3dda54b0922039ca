"""Ingest of ReDIF: reads sources, and commits a run of the obi store.

All sources are read and parsed before a time is claimed. Other runs therefore wait only for the
comparison with the store and for the writing. Nothing is written before that.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from builder.errors import UsageError, explaining
from builder.ingest import pool
from builder.ingest.workdir import Work
from builder.intake.intake import writing
from builder.obi.history import DOCUMENTS, LOG
from builder.obi.run import ObiRun, ObiRuntime, Purpose, claim
from builder.redif import tarball
from builder.redif.account import RedifReport, build_report
from builder.redif.entry import LogEntries, Parents
from builder.redif.job import KIND, Bar, RedifJob, is_done
from builder.redif.known_files import KnownFiles, open_known
from builder.redif.packing import PackStorage
from builder.redif.parse import parse
from builder.redif.scope import WITHIN
from builder.redif.source import open_member, tree_members
from builder.redif.spool import LARGEST, NO_ENCODINGS, FileOrigin, Flaw, RedifFile, Segment, Spool
from builder.redif.staging import PREFIX, UNKNOWN, UNREAD, compare, stage
from builder.redif.stored_state import read_state
from builder.redif.stretches import Stretches
from functions.database import engine
from functions.snapshot.errors import Conflict, StoreError
from functions.snapshot.store import Writer

T = TypeVar("T")
_MEMORY = 512  # megabytes for DuckDB
_FLAWS = 10_000  # most files left out that are listed one by one


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
        purpose = Purpose(KIND, order.label, order.fingerprint(), content)
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
        self._dropped: list[int] = []  # files that were read again
        self._databases = 0
        self._known = known
        self._following = 0  # the next ordinal of a file
        self.conflicts = 0

    def read(self) -> str:
        """Copy the files of the sources to this machine and parse them; return their digest."""
        known = self._known
        table = known.templates if known else None
        spool = self._open_spool(known.following if known else 0, table)
        with ExitStack() as stack:
            progress = _ParsingProgress(self._means.bar, stack)
            self._parse(self._copy(spool, progress), progress.add)
        self._following = spool.ordinal
        if not self._segments and not (known and known.skipped):
            why = f": {self._flaws[0][1].detail}" if self._flaws else ""
            raise UsageError(f"{self._order.label} has no readable ReDIF file{why}")
        return spool.digest()

    def _open_spool(self, ordinal: int, known: Path | None = None) -> Spool:
        means, first = self._means, len(self._segments)
        return Spool(self._folder, means.largest, means.encodings, first, ordinal, known)

    def _copy(self, spool: Spool, progress: "_ParsingProgress") -> Iterator[Segment]:
        """Copy the files of the sources, and yield each segment as soon as it is complete."""
        known, given, skipped = self._known, 0, 0
        with self._means.bar("reading", None, " files") as bar:
            for number, origin in enumerate(self._order.origins):
                for found in _members(number, origin, known):
                    flaw = found if isinstance(found, Flaw) else spool.take(number, found)
                    if flaw:
                        self._note(number, flaw)
                    bar(1)
                    yield from spool.segments[given:]
                    given = len(spool.segments)
                if known is not None:
                    bar(known.skipped - skipped)
                    skipped = known.skipped
            spool.close()
        if known is not None:
            spool.add_known(known.end_scan())
        progress.show(spool.bytes)
        yield from spool.segments[given:]

    def _parse(self, segments: Iterable[Segment], told: Callable[[int, int], None]) -> None:
        """Parse segments, the first ones while later ones are still made."""
        self._segments += pool.map_tasks(parse, segments, self._means.jobs, told)

    def _read_again(self, files: Sequence[tuple[int, int, str]]) -> None:
        """Read files whole after all: each with its ordinal, its source and its path."""
        spool = self._open_spool(self._following)
        for ordinal, number, path in files:
            self._dropped.append(ordinal)
            for found in open_member(self._order.origins[number].path, path):
                flaw = found if isinstance(found, Flaw) else spool.take(number, found)
                if flaw is not None:
                    self._note(number, flaw)
        spool.close()
        self._following = spool.ordinal
        with self._means.bar("parsing", spool.bytes, "B") as bar:
            self._parse(spool.segments, lambda read, _: bar(read))

    def _note(self, source: int, flaw: Flaw) -> None:
        if self._known is not None:
            self._known.doubt(source, flaw.path)
        if len(self._flaws) < _FLAWS:
            self._flaws.append((source, flaw))
        elif len(self._flaws) == _FLAWS:  # files beyond the list may hide anything
            self._flaws += [
                (number, Flaw("", "flaws-cut", f"{_FLAWS:,} are listed", True))
                for number in range(len(self._order.origins))
            ]

    def commit(self, run: ObiRun) -> RedifReport:
        """Compare with the states before this one, write what is new, and commit the run."""
        while True:
            place = self._folder / f"database-{self._databases}"
            self._databases += 1
            with writing(place):
                place.mkdir()
            with (
                closing(Stretches(self._folder)) as texts,
                closing(self._connect(place)) as connection,
            ):
                self._compare(connection, run, place)
                with engine.reading("the read templates"):
                    lacking = connection.execute(UNREAD).fetchall()
                if not lacking:
                    report = self._write(run, connection, texts, place)
                    if self._known is not None:
                        trees = [
                            n for n, origin in enumerate(self._order.origins) if origin.is_tree
                        ]
                        parsed = bool(self._segments)
                        self._known.keep(connection, report.commit, self._following, trees, parsed)
                    return report
            self._read_again(lacking)

    def _compare(self, connection: engine.Connection, run: ObiRun, place: Path) -> None:
        known, before = self._known, run.turn()
        statements = UNKNOWN if known is None else known.statements(self._dropped)
        last = next((one.digest for one in reversed(before) if one.kind == KIND), None)
        scope = None if known is None else known.scope(last)
        with self._means.bar("comparing", len(before), " runs") as bar:
            scope = stage(
                connection,
                self._segments,
                self._order.origins,
                self._flaws,
                statements,
                scope,
                dropped=self._dropped,
            )
            within = "true" if scope is None else WITHIN
            read_state(connection, self._store, before, place, within)
            compare(connection, self._order.accepted, scope)
            bar(len(before))

    def _write(
        self, run: ObiRun, connection: engine.Connection, texts: Stretches, place: Path
    ) -> RedifReport:
        skipped = self._known.skipped - len(self._dropped) if self._known else 0
        account = build_report(connection, run.tist, self._order.label, skipped)
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
    number: int, origin: FileOrigin, known: KnownFiles | None
) -> Iterator[RedifFile | Flaw]:
    with explaining(origin.label, "read"):
        if not origin.is_tree:
            yield from tarball.members(origin.path)
        elif known is None:
            yield from tree_members(origin.path)
        else:
            yield from tree_members(origin.path, partial(known.compare, number))
