"""The work of an ingest: a folder of this machine with what was read, until it is committed.

What was read in one go is a part: a folder of its own, which gets its name when all in it is synced
to the disk, so a part is whole or not there. Whoever asks for the same things again finds it.
A process holds the lock of its work for as long as it lives; work that nobody holds was left, and
is removed by a later ingest once it is old.
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
"""Seconds for which work that was left is kept."""

_LOCK = ".lock"
_BEGUN = "begun.json"
_PARTS = "parts"
_PASSING = "passing-"  # work on what cannot be asked for again


def folder_of(home: Path, asked: str | None) -> Path:
    """Return where the work on what was `asked` lies; None is for what cannot be asked again."""
    if asked is None:
        return home / f"{PREFIX}{_PASSING}{secrets.token_hex(8)}"
    return home / (
        PREFIX + hashlib.sha256(asked.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    )


class Work:
    """The work on one ingest, held by this process."""

    def __init__(self, folder: Path, lock: BinaryIO) -> None:
        self.folder = folder
        self.parts = folder / _PARTS
        self._lock = lock

    def begin(self, **said: str | int) -> Mapping[str, str | int]:
        """Return what was written down when this work was begun; now, where that is now."""
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
        """Yield what earlier processes finished; what they did not finish is removed."""
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
        """Give a folder, empty, for as long as the context."""
        folder = self.folder / "scratch"
        with writing(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def remove(self) -> None:
        """Remove it all: it is committed, or there is nothing in it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def leave(self) -> None:
        """Let go of it. What was finished stays, for whoever asks for the same."""
        if self.folder.name.startswith(PREFIX + _PASSING) or not _holds_parts(self.parts):
            self.remove()
        self._lock.close()


@contextmanager
def open_workdir(folder: Path, clock: Callable[[], float] = time.time) -> Iterator[Work]:
    """Give the work that lies in `folder`, begun or gone on with; old ones beside it are removed.

    Raises UsageError if another process is at it, StoreError where nothing can be written.
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
        with contextlib.suppress(FileNotFoundError):  # swept before it was locked
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
    return f"process {process} is ingesting these very sources into this store: let it end first"


def _sweep(own: Path, before: float) -> None:
    """Remove work beside `own` that nobody holds and that is old, or can be of use to nobody."""
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
            continue  # held, removed by somebody else, or another user's


def _holds_parts(parts: Path) -> bool:
    with contextlib.suppress(OSError):
        return any(not part.name.startswith(".") for part in parts.iterdir())
    return False
