"""Intake runs of outcomes, which publish reads."""

import shutil
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from builder.filesets.entry import FilesetEntry, entry
from builder.filesets.item import IngestOutcome
from builder.intake import intake
from builder.parquet.plain import PlainWriter
from functions.snapshot.store import Writer

_HELD = 16  # rows in memory: a document with very many files has some megabytes


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
        self._writer: PlainWriter | None = None

    def add(self, outcome: IngestOutcome) -> FilesetEntry:
        """Add an outcome; return the entry that publishing will use.

        Raises StoreError if the folder cannot be written.
        """
        found = entry(outcome)
        with self._lock:
            writer = self._open()
            with intake.writing(self._folder):
                writer.append(_row(found))
            self._count += 1
        return found

    def commit(self) -> intake.IntakeRun | None:
        """Commit all outcomes since the last commit as one run; None if there are none.

        Later outcomes go into another run. Raises StoreError; then it may be called again.
        """
        with self._lock:
            folder = self._folder / self._name
            if self._writer is not None:
                with intake.writing(folder):
                    self._writer.close()
                self._writer = None
            if not self._parts:
                return None
            run = intake.IntakeRun(self._name, (), self._count)
            intake.commit(self._store, run, folder)
            shutil.rmtree(folder, ignore_errors=True)
            self._parts = self._count = 0
            return run

    def _open(self) -> PlainWriter:
        """Return the open writer, or a new one for the current run or for the next."""
        if self._writer is None:
            if not self._parts:
                self._name = intake.run_name(self._clock())
            self._parts += 1
            folder = self._folder / self._name
            with intake.writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                path = intake.part_path(folder, "filesets", str(self._parts))
                self._writer = PlainWriter(path, intake.TABLES["filesets"], _HELD)
        return self._writer


def _row(found: FilesetEntry) -> tuple[object, ...]:
    """Return a row of intake.FILESETS."""
    told = (found.deed, found.identity, found.kind, found.sets, found.document)
    return (*told, *found.result)
