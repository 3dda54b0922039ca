"""Hold: the lock on gathering for a store, and the folder of the process that has it.

One process of a machine gathers for a store. The request of a run is written down in the folder
before the run is opened, so a run that was cut off can be recognised. The next process continues it
from its journal.
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from builder.errors import UsageError
from builder.obi.claim import complete_run
from builder.obi.history import LOG, OpenedRun, is_open, standing
from builder.obi.run import ObiRuntime, history
from builder.sources.fulltexts.journal import ResponseJournal
from builder.store.durable import writing
from functions.snapshot.store import Writer
from functions.store.folder_lock import lock_folder

_ASKED, _SCRATCH = "asked", "scratch"
_LONGEST = 86_400
"""Seconds for which the responses of a run that was abandoned count."""


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

    @property
    def journal(self) -> ResponseJournal:
        """The journal of the run."""
        return ResponseJournal(self.folder)

    def end_run(self) -> None:
        """Delete the request of the last run and its journal, because that run has ended."""
        self.journal.clear()
        (self.folder / _ASKED).unlink(missing_ok=True)

    def find_cut_off(self, store: Writer, runtime: ObiRuntime) -> OpenedRun | None:
        """Return the open run that this machine opened last, if it was cut off.

        A run that lacks only its commit is completed, and needs nothing more.
        """
        path = self.folder / _ASKED
        token = path.read_text() if path.exists() else ""
        for tist, members in standing(store).items():
            if token and is_open(members):
                opened = OpenedRun.read(store, tist)
                if opened.asked == token and LOG not in members:
                    return opened
                if opened.asked == token:
                    complete_run(store, tist, runtime.clock())
        tist = self.journal.read().tist
        is_old = runtime.clock().timestamp() > tist + _LONGEST
        if is_old or any(run.tist == tist for run in history(store)):
            self.end_run()  # it was cut off after its commit, or so long ago that files changed
        else:  # the responses of a run that was abandoned are for the next one
            (self.folder / _ASKED).unlink(missing_ok=True)
        return None


@contextmanager
def hold_store(home: Path, address: str) -> Iterator[Hold]:
    """Hold the lock on gathering for the store at `address`; its folder lies in `home`.

    Raises UsageError if another process holds it, StoreError if nothing can be written.
    """
    folder = home / f"gather-{hashlib.sha256(os.fsencode(address)).hexdigest()[:16]}"
    with writing(folder):
        lock = lock_folder(folder)
    if lock is None:
        raise UsageError(f"another process is gathering for {address}: wait until it ends")
    with lock:
        hold = Hold(folder)
        shutil.rmtree(hold.scratch, ignore_errors=True)
        with writing(folder):
            hold.scratch.mkdir()
            hold.journal.files.mkdir(exist_ok=True)
        try:
            yield hold
        finally:
            shutil.rmtree(hold.scratch, ignore_errors=True)
            if not (folder / _ASKED).exists() and not hold.journal.read().results:
                shutil.rmtree(folder, ignore_errors=True)
