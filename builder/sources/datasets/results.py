"""Result log: writes outcomes to the journal at once, and to the intake in batches.

The journal is on this machine's disk. Each outcome is one line, synced before it is reported. No
result is lost if a process is killed: the next process for the same store takes over its journal.
Publish reads the intake runs.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from builder.intake import intake
from builder.intake.lines import LineWriter
from builder.sources.datasets import result
from builder.sources.datasets.entry import entry
from builder.sources.datasets.item import IngestOutcome
from builder.store.documents import build
from builder.store.durable import LineJournal, writing
from functions.snapshot.store import Writer
from functions.store.folder_lock import lock_folder

_LINES, _SCRATCH = "outcomes", "scratch"
_MANY = 1000  # outcomes


@dataclass(frozen=True, slots=True)
class Journal:
    """The folder of this process, with its journal and a folder for temporary files."""

    folder: Path

    @property
    def scratch(self) -> Path:
        """The folder for temporary files."""
        return self.folder / _SCRATCH

    def add(self, outcome: IngestOutcome) -> None:
        """Append an outcome and sync it. Raises StoreError if that fails."""
        with writing(self.folder):
            self._lines.add(outcome_line(outcome).rstrip())

    def clear(self) -> None:
        """Delete all outcomes, once an intake run has them."""
        with writing(self.folder):
            self._lines.clear()

    @property
    def _lines(self) -> LineJournal:
        return LineJournal(self.folder / _LINES)

    def outcomes(self) -> Iterator[IngestOutcome]:
        """Yield the outcomes in the journal. Incomplete lines of a killed process are skipped."""
        for data in self._lines.lines():
            with contextlib.suppress(ValueError):
                yield parse_outcome(data)


@contextmanager
def open_journal(home: Path, address: str) -> Iterator[Journal]:
    """Open a journal in `home` for the store at `address`; outcomes of ended processes are added.

    The folder is removed afterwards, unless it holds outcomes. Raises StoreError if the disk cannot
    be written.
    """
    mark = f"filesets-{hashlib.sha256(os.fsencode(address)).hexdigest()[:16]}-"
    with writing(home):
        lock = None
        while lock is None:  # another process may take a new folder for an abandoned one
            folder = home / f"{mark}{secrets.token_hex(8)}"
            lock = lock_folder(folder)
    journal = Journal(folder)
    with lock:
        try:
            with writing(folder):
                journal.scratch.mkdir()
            for left in sorted(home.glob(f"{mark}*")):
                with contextlib.suppress(OSError):
                    # The process of a folder that can be locked has ended.
                    if left == folder or (ended := lock_folder(left)) is None:
                        continue
                    with ended:
                        for outcome in Journal(left).outcomes():
                            journal.add(outcome)
                        shutil.rmtree(left, ignore_errors=True)
            yield journal
        finally:
            shutil.rmtree(journal.scratch, ignore_errors=True)
            if not (folder / _LINES).exists():
                shutil.rmtree(folder, ignore_errors=True)


def outcome_line(outcome: IngestOutcome) -> bytes:
    """Encode an outcome as a line, without the body of its landing page."""
    resource = outcome.resource and replace(outcome.resource, body=None)
    return json.dumps(result.to_json(replace(outcome, resource=resource))).encode() + b"\n"


def parse_outcome(data: bytes) -> IngestOutcome:
    """Decode an outcome from a line. Raises ValueError."""
    return build(IngestOutcome, json.loads(data))


class Results:
    """Collects outcomes and commits them as intake runs. May be used by many threads.

    `folder` is local, for rows not yet in the store; it is created if missing. `clock` returns the
    present, which names the runs.
    """

    def __init__(self, store: Writer, folder: Path, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._folder = folder
        self._clock = clock
        self._lock = threading.Lock()
        self._name = ""
        self._parts = self._count = 0
        self._writer: LineWriter | None = None

    def add(self, outcome: IngestOutcome) -> None:
        """Add an outcome. Raises StoreError if the folder cannot be written."""
        row = entry(outcome)
        with self._lock:
            writer = self._open()
            with writing(self._folder):
                names = (row.identity, row.version_identity, row.kind, row.sets)
                writer.append((row.deed, *names, row.document, *row.result))
            self._count += 1

    def commit(self) -> intake.IntakeRun | None:
        """Commit all outcomes since the last commit as one run; None if there are none.

        Later outcomes go into another run. Raises StoreError; then it may be called again.
        """
        with self._lock:
            folder = self._folder / self._name
            if self._writer is not None:
                with writing(folder):
                    self._writer.close()
                self._writer = None
            if not self._parts:
                return None
            run = intake.IntakeRun(self._name, (), self._count)
            intake.commit(self._store, run, folder)
            shutil.rmtree(folder, ignore_errors=True)
            self._parts = self._count = 0
            return run

    def _open(self) -> LineWriter:
        """Return the open writer, or a new one for the current run or for the next."""
        if self._writer is None:
            if not self._parts:
                self._name = intake.run_name(self._clock())
            self._parts += 1
            folder = self._folder / self._name
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                path = intake.part_path(folder, "filesets", str(self._parts))
                self._writer = LineWriter(path, intake.TABLES["filesets"])
        return self._writer


def is_kept(outcome: IngestOutcome) -> bool:
    """Return whether an outcome goes into the intake: not that of an invalid line."""
    names = outcome.request.given.keys()
    return outcome.status != "cancelled" and ("line" not in names or "base_url" in names)


@dataclass(slots=True)
class Keeping:
    """Collects outcomes. Calls `settled` for each once an intake run has it, without its item.

    A `cancelled` outcome is not stored: it would hide the earlier result. The outcome of an invalid
    line is not stored either.
    """

    results: Results
    journal: Journal
    settled: Callable[[IngestOutcome], None] = lambda outcome: None
    clock: Callable[[], float] = time.monotonic
    runs: list[str] = field(init=False, default_factory=list)
    _waiting: list[IngestOutcome] = field(init=False, default_factory=list)
    _since: float = field(init=False, default=0.0)

    def recover(self) -> int:
        """Put the journal of earlier processes into the intake; return the number of outcomes."""
        count = 0
        for outcome in self.journal.outcomes():
            self.results.add(outcome)
            count += 1
        self._commit()
        return count

    def add(self, outcome: IngestOutcome) -> None:
        """Add an outcome. Raises StoreError."""
        if is_kept(outcome):
            self.journal.add(outcome)
            self.results.add(outcome)
        if not self._waiting:
            self._since = self.clock()
        self._waiting.append(replace(outcome, resource=None, item=None, archived=None))
        self.tick()

    def tick(self) -> None:
        """Commit if a minute has passed or 1,000 outcomes are waiting. Raises StoreError."""
        if self._waiting and (len(self._waiting) >= _MANY or self.clock() - self._since >= 60.0):
            self.commit()

    def commit(self) -> None:
        """Commit the waiting outcomes as an intake run. Raises StoreError."""
        self._commit()
        batch, self._waiting = self._waiting, []
        for outcome in batch:
            self.settled(outcome)

    def _commit(self) -> None:
        if (run := self.results.commit()) is not None:
            self.runs.append(run.name)
        self.journal.clear()
