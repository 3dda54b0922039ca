"""Work folders: what an ingest on this machine has done until it is committed.

A repeated ingest with the same arguments reuses its folder. A process locks it for as long as it
lives. Folders without a lock were abandoned; a later ingest removes them once they are old.
"""

import contextlib
import hashlib
import io
import json
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from builder.errors import UsageError
from builder.store.durable import replace_durably, sync, writing
from functions.store.folder_lock import lock_folder, lock_holder, remove_abandoned


class Measured(io.RawIOBase):
    """A forward-only file, hashed while it is read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._position = 0

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return the number of bytes."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._digest.update(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes read."""
        return self._position

    def finish(self) -> str:
        """Read the rest, and return the SHA-256 of the whole."""
        while self.read(1 << 20):
            pass
        return self._digest.hexdigest()


KEPT = 14 * 86400.0
"""Seconds for which an abandoned work folder is kept."""
WORK_PREFIX = "ingest-"
"""How the name of an ingest's work folder begins; such folders may be in `layout.TEMPORARY`."""
KNOWN_PREFIX = "known-"
"""The same of the folders of files that an ingest need not read again."""
_BEGUN = "begun.json"
_PARTS = "parts"
_PASSING = "passing-"  # work that cannot be continued


def folder_of(home: Path, fingerprint: str | None) -> Path:
    """Return the work folder of a job's fingerprint; None means that it cannot be continued."""
    if fingerprint is None:
        return home / f"{WORK_PREFIX}{_PASSING}{secrets.token_hex(8)}"
    digest = hashlib.sha256(fingerprint.encode("utf-8", "surrogateescape")).hexdigest()
    return home / f"{WORK_PREFIX}{digest[:16]}"


class Work:
    """The work folder of one ingest, locked by this process."""

    def __init__(self, folder: Path, lock: BinaryIO) -> None:
        self.folder = folder
        self.parts = folder / _PARTS
        self._lock = lock

    def begin(self, **notes: str | int) -> Mapping[str, str | int]:
        """Return the notes made when this work began; if it begins now, write them."""
        path = self.folder / _BEGUN
        with writing(self.folder), contextlib.suppress(FileNotFoundError, ValueError):
            document = json.loads(path.read_bytes())
            if isinstance(document, dict) and document.keys() == notes.keys():
                return document
        with writing(self.folder):
            replace_durably(path, json.dumps(notes).encode())
        return notes

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

    def spool(self, stream: BinaryIO) -> Path:
        """Write standard input to a file, and return its path."""
        path, measured = self.folder / "stdin", Measured(stream)
        with writing(self.folder), path.open("wb") as file:
            shutil.copyfileobj(measured, file, 1 << 20)
        # Captures of two streams must not seem to be in one file.
        return path.rename(self.folder / f"stdin-{measured.finish()[:16]}")

    def remove(self) -> None:
        """Remove the work folder: it is committed, or empty."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def leave(self) -> None:
        """Release the lock. Finished results stay, for a repeated ingest."""
        passing = self.folder.name.startswith(WORK_PREFIX + _PASSING)
        if passing or not any(self.parts.glob("*.json")):
            self.remove()
        self._lock.close()


@contextmanager
def open_workdir(folder: Path, clock: Callable[[], float] = time.time) -> Iterator[Work]:
    """Open the work in `folder`, new or continued; old work folders beside it are removed.

    Raises UsageError if another process uses it, StoreError if it cannot be written.
    """
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(folder)
        if lock is None:
            raise UsageError(
                f"process {lock_holder(folder)} is ingesting the same sources into this store: "
                "wait until it ends"
            )
        _sweep(folder, clock() - KEPT)
        (folder / _PARTS).mkdir(exist_ok=True)
        for path in (folder, folder.parent):
            sync(path)
    work = Work(folder, lock)
    try:
        yield work
    finally:
        work.leave()


def _sweep(own: Path, before: float) -> None:
    """Remove unlocked work folders beside `own` that are old or cannot be continued."""
    for folder in own.parent.glob(f"{WORK_PREFIX}*"):
        if folder == own:
            continue
        with contextlib.suppress(OSError):  # already removed
            passing = folder.name.startswith(WORK_PREFIX + _PASSING)
            there = [path for path in (folder, folder / _PARTS) if path.exists()]
            newest = max((path.stat().st_mtime for path in there), default=0.0)
            if not passing and newest > before:
                continue
            with contextlib.suppress(OSError):
                folder.rmdir()  # its process ended before it had a lock
            remove_abandoned(folder)
