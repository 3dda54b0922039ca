"""Rows of a run: writes captures and faults as they come."""

from dataclasses import astuple
from operator import attrgetter
from pathlib import Path

from builder.intake.captures import Capture, Fault
from builder.intake.intake import CAPTURES, TABLES, part_path
from builder.store.parquet.writer import RowWriter

_values = attrgetter(*(column.name for column in CAPTURES[2:]))


class IntakeWriter:
    """Writes captures and faults into a local folder; without rows there is no file."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._writers: dict[str, RowWriter] = {}
        self.captured = 0
        self.faulted = 0

    def capture(self, capture: Capture, sets: tuple[str, ...]) -> None:
        """Add a capture that is in `sets`."""
        self._writer("captures").append((capture.identity, sets, *_values(capture)))
        self.captured += 1

    def fault(self, fault: Fault) -> None:
        """Add a fault."""
        self._writer("faults").append(astuple(fault))
        self.faulted += 1

    def close(self) -> None:
        """Finish the files."""
        for writer in self._writers.values():
            writer.close()

    def _writer(self, table: str) -> RowWriter:
        if table not in self._writers:
            path = part_path(self._folder, table, self._name)
            self._writers[table] = RowWriter(path, TABLES[table])
        return self._writers[table]
