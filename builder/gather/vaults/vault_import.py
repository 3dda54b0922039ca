"""Import of web archives: records what gathering the captured URLs would have recorded.

Run again, it adds nothing: a capture counts only if it is later than what the store has of its URL.
An import that was cut off continues its last run.
"""

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from builder.gather.fetch_file import follow_redirects
from builder.gather.hold import Hold
from builder.gather.results import Fetched, FileContent, Moved, Result
from builder.gather.run_outcomes import RunOutcomes
from builder.gather.state import FileStates
from builder.gather.vaults.archives import VaultArchives
from builder.gather.vaults.capture_index import CaptureIndex
from builder.gather.vaults.capture_plan import (
    CapturePlan,
    PlannedCapture,
    PlannedFetch,
)
from builder.gather.vaults.captured_response import (
    CapturedResponse,
    CaptureReader,
    LostCaptureError,
)
from builder.gather.vaults.import_report import ImportReport
from builder.ingest.splits import ArchiveFile
from builder.intake.intake import writing
from builder.obi.content import ExchangeRow, Row
from builder.obi.history import IMPORT
from builder.obi.run import Committed, ObiRun, ObiRuntime, Purpose, claim, history
from builder.progress import ProgressBar
from functions.database import engine
from functions.snapshot.errors import Conflict, SheafError
from functions.snapshot.store import Writer


@dataclass(frozen=True, slots=True)
class ImportJob:
    """What to import: files, and their sources as the operator wrote them.

    A run has at most `batch` URLs. `megabytes` bounds the memory of each of two databases.
    """

    files: Sequence[ArchiveFile]
    source: str
    batch: int
    megabytes: int
    pdf_text: bool = False


@dataclass(slots=True)
class VaultImport:
    """An import into a store; the caller holds its lock.

    `bar` makes progress bars. After a KeyboardInterrupt, the run is committed. The caller then
    raises `interrupted` after the report.
    """

    store: Writer
    hold: Hold
    runtime: ObiRuntime
    archives: VaultArchives
    job: ImportJob
    bar: Callable[[str, int | None, str], ProgressBar] = ProgressBar
    report: ImportReport = field(init=False)
    interrupted: KeyboardInterrupt | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.report = ImportReport(faults=self.archives.faults)

    def run(self) -> ImportReport:
        """Read all archives, and record their captures. Raises DamagedStore and StoreError."""
        lines = self.hold.scratch / "captures.lines"
        with self.bar("reading", sum(file.bytes for file in self.job.files), "B") as advance:
            index = CaptureIndex(lines, self.archives, self.report.faults, advance)
            lines.touch()
            for file in self.job.files:
                for archive in self.archives.find(file):
                    index.read(archive)
        self.report.archives = index.read_archives
        self.report.failed = self.archives.failed
        self.report.captures = index.captures
        folder = self.hold.scratch / "state"
        plan_folder = self.hold.scratch / "plan"
        with writing(self.hold.scratch):
            folder.mkdir()
            plan_folder.mkdir()
        most = self.job.megabytes
        state = FileStates.load(self.store, history(self.store), folder, most)
        with closing(state):
            made = engine.connect(threads=2, memory_megabytes=most, scratch=plan_folder)
            with closing(made) as connection:
                plan = CapturePlan.make(connection, lines, state, self.store, plan_folder)
                plan.schedule(self.report.faults, self.archives.names())
                self.report.unnamed, self.report.older = plan.unnamed, plan.older
                self.report.repeated = plan.repeated
                with self.bar("importing", plan.due, " files") as advance:
                    self._record(plan, state, advance)
        return self.report

    def _record(self, plan: CapturePlan, state: FileStates, advance: Callable[[int], None]) -> None:
        for fetches in plan.batches(self.job.batch):
            captures = plan.captures(fetches)
            committed = self._record_run(fetches, captures, state)
            if committed is not None:
                state.extend(*committed)
                self.report.gathered.add(*committed)
            advance(len(fetches))
            if self.interrupted is not None:
                return

    def _record_run(
        self,
        fetches: Sequence[PlannedFetch],
        captures: Sequence[PlannedCapture],
        state: FileStates,
    ) -> tuple[Committed, list[Row]] | None:
        token = _name_run(fetches, captures)
        run = claim(self.store, Purpose(IMPORT, self.job.source, token), self.runtime)
        try:
            if run.turn() != state.runs:
                raise Conflict("another process changed the store: run the command again")
            return self._commit(run, fetches, captures, state)
        except BaseException:
            with contextlib.suppress(SheafError):
                run.abandon("it was interrupted or failed")
            raise

    def _commit(
        self,
        run: ObiRun,
        fetches: Sequence[PlannedFetch],
        captures: Sequence[PlannedCapture],
        state: FileStates,
    ) -> tuple[Committed, list[Row]] | None:
        outcomes = RunOutcomes(run, state)
        outcomes.load(capture.url for capture in captures)
        responses = self._read(captures, outcomes)
        exchanges: dict[str, ExchangeRow] = {}
        for fetch in fetches:
            found = [responses.get(number) for number in fetch.members]
            known = [one for one in found if one is not None]
            if len(known) < len(found):
                continue
            results: dict[str, Result] = {one.exchange.id: one.result for one in known}
            outcomes.results.append(_follow(fetch.asked, results))
            exchanges |= {one.exchange.id: one.exchange for one in known}
        if not outcomes.results:
            run.abandon("nothing was imported")
            return None
        rows = outcomes.rows()
        told = {row.id for row in rows if isinstance(row, ExchangeRow)}
        rows += [exchanges[url] for url in sorted(exchanges.keys() - told)]
        rows += self.report.faults.take_rows()
        return run.commit(rows), rows

    def _read(
        self, captures: Sequence[PlannedCapture], outcomes: RunOutcomes
    ) -> dict[int, CapturedResponse]:
        """Return the responses of the captures that can be read, and store their files."""
        reader = CaptureReader(self.archives, self.hold.journal.files)
        found: dict[int, CapturedResponse] = {}
        try:
            for capture in captures:
                if (response := self._respond(reader, capture, outcomes)) is not None:
                    found[capture.number] = response
        except KeyboardInterrupt as interrupt:
            self.interrupted = interrupt
        return found

    def _respond(
        self, reader: CaptureReader, capture: PlannedCapture, outcomes: RunOutcomes
    ) -> CapturedResponse | None:
        source, place = self.archives.name(capture.archive), capture.place
        faults = self.report.faults
        try:
            found = reader.read(capture)
        except LostCaptureError as error:
            faults.add(source, place, error.code, str(error), "left out")
            return None
        for fault in capture.faults:
            code, _, detail = fault.partition(" ")
            faults.add(source, place, code, detail, "imported as it is")
        result = found.result
        if not isinstance(result, FileContent):
            return found if capture.fresh or isinstance(result, Moved) else None
        try:
            if not capture.fresh and outcomes.is_new(capture.url, result):
                return None  # the store has a later state of a redirect's target
            if self.job.pdf_text:
                outcomes.read_text(capture.url, result)
            outcomes.store(capture.url, result)
        finally:
            result.path.unlink(missing_ok=True)
        return found


def _follow(asked: str, results: dict[str, Result]) -> Fetched:
    return follow_redirects(asked, lambda url: results[url])


def _name_run(fetches: Sequence[PlannedFetch], captures: Sequence[PlannedCapture]) -> str:
    """Return a name of a run that is the same for the same captures."""
    found = hashlib.sha256()
    for fetch in fetches:
        found.update(f"{fetch.asked}\n".encode())
    for one in sorted(captures, key=lambda one: (one.url, one.at, one.digest or "")):
        found.update(f"{one.url} {one.at} {one.digest}\n".encode())
    return f"{IMPORT} {found.hexdigest()}"
