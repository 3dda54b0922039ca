"""Runs of filesets: what requests came to goes into the intake, from where it is published."""

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

_HELD = 16  # rows in memory: a document of very many files has some megabytes


class Results:
    """Collects outcomes, and makes runs of the intake of them. May be used by many threads.

    `folder` is one of this machine for what is not in the store yet; it need not be there. `clock`
    gives the present, by which runs are named.
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
        """Take an outcome; return what becomes of it once it is published.

        Raises StoreError where the folder cannot be written.
        """
        found = entry(outcome)
        with self._lock:
            writer = self._open()
            with intake.writing(self._folder):
                writer.append(_row(found))
            self._count += 1
        return found

    def commit(self) -> intake.IntakeRun | None:
        """Put into the store what was added since the last time, as one run; None without any.

        What comes after that goes into another run. Raises StoreError; then it may be tried again.
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
        """Return what writes rows of the run that is begun, or of another one."""
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
