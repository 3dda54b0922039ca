"""The journal: outcomes that are in no run of the intake yet, on this machine's disk.

Each is a line, synced before anybody is told of it. What a process left that was killed is taken
over by the next one that works for the same store, so that no result is lost.
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
    """A folder of this process, with its journal and room for what need not last."""

    folder: Path

    @property
    def scratch(self) -> Path:
        """A folder for what need not last."""
        return self.folder / _SCRATCH

    def add(self, outcome: IngestOutcome) -> None:
        """Write an outcome down. Raises StoreError where that cannot be."""
        with writing(self.folder), (self.folder / _LINES).open("ab") as file:
            file.write(b"\n" + line(outcome))  # for the one before may be torn, of a full disk
            file.flush()
            os.fsync(file.fileno())

    def clear(self) -> None:
        """Forget all outcomes: a run of the intake has them."""
        with writing(self.folder):
            (self.folder / _LINES).unlink(missing_ok=True)

    def outcomes(self) -> Iterator[IngestOutcome]:
        """Yield what stands in it. A line that was being written when its process died is none."""
        with contextlib.suppress(FileNotFoundError), (self.folder / _LINES).open("rb") as file:
            for data in file:
                with contextlib.suppress(ValueError, TypeError):
                    yield outcome(data)


@contextmanager
def open_journal(home: Path, address: str) -> Iterator[Journal]:
    """Give a journal for the store at `address`, its folder in `home`, with what others left.

    The folder is removed afterwards, unless outcomes are in it. Raises StoreError where nothing
    can be written.
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
    """Return a folder that is new, and its lock. Raises OSError.

    Another process may take one for what somebody left, before it is locked, and remove it.
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
    """Take over what a process left, if it is no more."""
    with contextlib.suppress(OSError):
        lock = _lock(left)
        if lock is not None:
            with lock:
                for one in Journal(left).outcomes():
                    journal.add(one)
                shutil.rmtree(left, ignore_errors=True)


def _lock(folder: Path) -> BinaryIO | None:
    """Return the lock of a folder, None where another process has it."""
    lock = (folder / _LOCK).open("a+b")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def line(told: IngestOutcome) -> bytes:
    """Return an outcome as a line; the body of its landing page is left out."""
    resource = told.resource and replace(told.resource, body=None)
    return json.dumps(codec.plain(replace(told, resource=resource))).encode() + b"\n"


def outcome(data: bytes) -> IngestOutcome:
    """Return the outcome that a line tells of. Raises ValueError or TypeError."""
    return codec.build(IngestOutcome, json.loads(data))
