"""Journal: outcomes that are not yet in an intake run, on this machine's disk.

Each outcome is one line, synced before it is reported. No result is lost if a process is killed:
the next process for the same store takes over its journal.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from builder.filesets import codec
from builder.filesets.item import IngestOutcome
from builder.intake.intake import writing

_LINES, _LOCK, _SCRATCH = "outcomes", ".lock", "scratch"


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
        with writing(self.folder), (self.folder / _LINES).open("ab") as file:
            file.write(b"\n" + line(outcome))  # a full disk may have cut off the line before
            file.flush()
            os.fsync(file.fileno())

    def clear(self) -> None:
        """Delete all outcomes, once an intake run has them."""
        with writing(self.folder):
            (self.folder / _LINES).unlink(missing_ok=True)

    def outcomes(self) -> Iterator[IngestOutcome]:
        """Yield the outcomes in the journal. Incomplete lines of a killed process are skipped."""
        with contextlib.suppress(FileNotFoundError), (self.folder / _LINES).open("rb") as file:
            for data in file:
                with contextlib.suppress(ValueError, TypeError):
                    yield outcome(data)


@contextmanager
def open_journal(home: Path, address: str) -> Iterator[Journal]:
    """Open a journal in `home` for the store at `address`; outcomes of ended processes are added.

    The folder is removed afterwards, unless it holds outcomes. Raises StoreError if the disk cannot
    be written.
    """
    mark = f"filesets-{hashlib.sha256(os.fsencode(address)).hexdigest()[:16]}-"
    with writing(home):
        folder, lock = _own(home, mark)
    journal = Journal(folder)
    with lock:
        try:
            with writing(folder):
                journal.scratch.mkdir()
            for left in sorted(home.glob(f"{mark}*")):
                if left != folder:
                    _take_over(left, journal)
            yield journal
        finally:
            shutil.rmtree(journal.scratch, ignore_errors=True)
            if not (folder / _LINES).exists():
                shutil.rmtree(folder, ignore_errors=True)


def _own(home: Path, mark: str) -> tuple[Path, BinaryIO]:
    """Create and lock a new folder. Raises OSError.

    Before it is locked, another process may mistake it for abandoned and remove it; hence the loop.
    """
    while True:
        folder = home / f"{mark}{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700, parents=True)
        with contextlib.suppress(FileNotFoundError):
            lock = _lock(folder)
            if lock is not None and (folder / _LOCK).exists():
                return folder, lock
            if lock is not None:
                lock.close()


def _take_over(left: Path, journal: Journal) -> None:
    """Take over the journal of a process that has ended."""
    with contextlib.suppress(OSError):
        lock = _lock(left)
        if lock is not None:
            with lock:
                for one in Journal(left).outcomes():
                    journal.add(one)
                shutil.rmtree(left, ignore_errors=True)


def _lock(folder: Path) -> BinaryIO | None:
    """Lock a folder; None if another process holds the lock."""
    lock = (folder / _LOCK).open("a+b")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def line(told: IngestOutcome) -> bytes:
    """Encode an outcome as a line, without the body of its landing page."""
    resource = told.resource and replace(told.resource, body=None)
    return json.dumps(codec.plain(replace(told, resource=resource))).encode() + b"\n"


def outcome(data: bytes) -> IngestOutcome:
    """Decode an outcome from a line. Raises ValueError or TypeError."""
    return codec.build(IngestOutcome, json.loads(data))
