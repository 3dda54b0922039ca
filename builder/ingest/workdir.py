"""Work folder of an ingest on the local disk, with the results that are not committed yet.

The results of one task are a part: a folder that gets its name when all in it is synced, so it is
complete or absent. A repeated ingest with the same arguments reuses it.
A process locks its work folder for as long as it lives. Folders without a lock were abandoned; a
later ingest removes them once they are old.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from builder.errors import UsageError
from builder.ingest.split_reader import SplitResult
from builder.intake.intake import writing
from builder.store.durable import sync

PREFIX = "ingest-"
KEPT = 14 * 86400.0
"""Seconds for which an abandoned work folder is kept."""

_LOCK = ".lock"
_BEGUN = "begun.json"
_PARTS = "parts"
_PASSING = "passing-"  # work that cannot be continued


def folder_of(home: Path, asked: str | None) -> Path:
    """Return the work folder of a job's fingerprint; None means that it cannot be continued."""
    if asked is None:
        return home / f"{PREFIX}{_PASSING}{secrets.token_hex(8)}"
    return home / (
        PREFIX + hashlib.sha256(asked.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    )


class Work:
    """The work folder of one ingest, locked by this process."""

    def __init__(self, folder: Path, lock: BinaryIO) -> None:
        self.folder = folder
        self.parts = folder / _PARTS
        self._lock = lock

    def begin(self, **said: str | int) -> Mapping[str, str | int]:
        """Return the notes made when this work began; if it begins now, write them."""
        path = self.folder / _BEGUN
        with writing(self.folder), contextlib.suppress(FileNotFoundError, ValueError):
            found = json.loads(path.read_bytes())
            if isinstance(found, dict) and found.keys() == said.keys():
                return found
        with writing(self.folder):
            draft = self.folder / f".{_BEGUN}"
            draft.write_text(json.dumps(said))
            sync(draft)
            draft.replace(path)
            sync(self.folder)
        return said

    def readings(self) -> Iterator[SplitResult]:
        """Yield the results of earlier processes; incomplete ones are removed."""
        with writing(self.folder):
            self.parts.mkdir(exist_ok=True)
            for part in sorted(self.parts.iterdir()):
                try:
                    found = () if part.name.startswith(".") else SplitResult.all_of(part)
                except (OSError, ValueError, KeyError, TypeError):
                    found = ()  # damaged: it is read once more
                if not found:
                    shutil.rmtree(part, ignore_errors=True)
                yield from found

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Create an empty folder for the duration of the context."""
        folder = self.folder / "scratch"
        with writing(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def remove(self) -> None:
        """Remove the work folder: it is committed, or empty."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def leave(self) -> None:
        """Release the lock. Finished results stay, for a repeated ingest."""
        if self.folder.name.startswith(PREFIX + _PASSING) or not _holds_parts(self.parts):
            self.remove()
        self._lock.close()


@contextmanager
def open_workdir(folder: Path, clock: Callable[[], float] = time.time) -> Iterator[Work]:
    """Open the work in `folder`, new or continued; old work folders beside it are removed.

    Raises UsageError if another process uses it, StoreError if it cannot be written.
    """
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder)
        _sweep(folder, clock() - KEPT)
        (folder / _PARTS).mkdir(exist_ok=True)
        for path in (folder, folder.parent):
            sync(path)
    work = Work(folder, lock)
    try:
        yield work
    finally:
        work.leave()


def _lock(folder: Path) -> BinaryIO:
    while True:
        with contextlib.suppress(FileNotFoundError):  # it was removed before it was locked
            folder.mkdir(mode=0o700, exist_ok=True)
            lock = (folder / _LOCK).open("a+b")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(_refusal(lock)) from None
            if os.fstat(lock.fileno()).st_nlink:
                lock.truncate(0)
                lock.write(str(os.getpid()).encode())
                lock.flush()
                return lock
            lock.close()


def _refusal(lock: BinaryIO) -> str:
    with lock:
        lock.seek(0)
        process = lock.read().decode("ascii", "replace") or "another"
    return f"process {process} is ingesting the same sources into this store: wait until it ends"


def _sweep(own: Path, before: float) -> None:
    """Remove unlocked work folders beside `own` that are old or cannot be continued."""
    for folder in own.parent.glob(f"{PREFIX}*"):
        if folder == own:
            continue
        try:
            passing = folder.name.startswith(PREFIX + _PASSING)
            there = [path for path in (folder, folder / _PARTS) if path.exists()]
            newest = max((path.stat().st_mtime for path in there), default=0.0)
            if not passing and newest > before:
                continue
            with contextlib.suppress(OSError):
                folder.rmdir()  # its process ended before it had a lock
            with (folder / _LOCK).open("r+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # locked, already removed, or owned by another user


def _holds_parts(parts: Path) -> bool:
    with contextlib.suppress(OSError):
        return any(not part.name.startswith(".") for part in parts.iterdir())
    return False
