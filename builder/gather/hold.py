"""The lock on gathering: one process of a machine gathers for a store, in its own folder.

The request of a run is written down here before the run is opened, so a run that was cut off can be
recognised. The next process ends such a run, so that other runs do not wait for it.
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from builder.errors import UsageError
from builder.intake.intake import writing
from builder.obi.history import LOG, OpenedRun, is_open, standing
from builder.obi.run import Outside, abandon
from functions.snapshot.store import Writer

_LOCK, _ASKED, _SCRATCH = ".lock", "asked", "scratch"


@dataclass(frozen=True, slots=True)
class Hold:
    """The folder of the process that holds the lock."""

    folder: Path

    @property
    def scratch(self) -> Path:
        """A folder for temporary files; it is emptied when the lock is taken."""
        return self.folder / _SCRATCH

    def next_run_id(self) -> str:
        """Return a unique request for the next run of this machine, and write it down."""
        token = f"gather {secrets.token_hex(16)}"
        with writing(self.folder):
            (self.folder / _ASKED).write_text(token)
        return token

    def end_run(self) -> None:
        """Delete the request of the last run, because that run has ended."""
        (self.folder / _ASKED).unlink(missing_ok=True)

    def end_cut_off(self, store: Writer, outside: Outside) -> None:
        """Abandon the run that this machine opened last, if it was cut off."""
        path = self.folder / _ASKED
        token = path.read_text() if path.exists() else None
        for tist, members in standing(store).items():
            if token and is_open(members) and LOG not in members:
                opened = OpenedRun.read(store, tist)
                if opened.asked == token:
                    abandon(store, tist, "it was cut off", outside)
                    outside.say(f"abandoned the interrupted run {opened.name()}")


@contextmanager
def hold_store(home: Path, address: str) -> Iterator[Hold]:
    """Hold the lock on gathering for the store at `address`; its folder lies in `home`.

    Raises UsageError if another process holds it, StoreError if nothing can be written.
    """
    folder = home / f"gather-{hashlib.sha256(os.fsencode(address)).hexdigest()[:16]}"
    with writing(folder):
        lock = _lock(folder, address)
    with lock:
        hold = Hold(folder)
        shutil.rmtree(hold.scratch, ignore_errors=True)
        with writing(folder):
            hold.scratch.mkdir()
        try:
            yield hold
        finally:
            shutil.rmtree(hold.scratch, ignore_errors=True)
            if not (folder / _ASKED).exists():
                shutil.rmtree(folder, ignore_errors=True)


def _lock(folder: Path, address: str) -> BinaryIO:
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # deleted before it was locked
            lock = (folder / _LOCK).open("a+b")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                raise UsageError(
                    f"another process is gathering for {address}: wait until it ends"
                ) from None
            if os.fstat(lock.fileno()).st_nlink:
                return lock
            lock.close()
