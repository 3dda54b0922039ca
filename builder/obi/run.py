"""Runs: what is written to the obi store, one run at a time, and never changed afterwards.

Content is written first, then the documents and the log, and commit.json last. Before that, readers
see nothing of the run. An object that exists with the same bytes counts as written.
"""

import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from builder.obi import content, key, log_table
from builder.obi.claim import (
    ObiRuntime,
    Purpose,
    abandon,
    announce,
    claim_run,
    commit_run,
    complete_run,
    has_ended,
)
from builder.obi.content import Redirect, Row
from builder.obi.history import DOCUMENTS, LOG, Committed, OpenedRun, history, is_open, standing
from builder.store import durable
from builder.store.durable import writing
from functions.snapshot.errors import Conflict, DamagedStore, MissingObject, StoreError
from functions.snapshot.store import Writer

__all__ = ["Committed", "ObiRun", "ObiRuntime", "Purpose", "abandon", "claim", "history"]

_POLL = 1.0  # seconds


def claim(
    store: Writer,
    purpose: Purpose,
    runtime: ObiRuntime,
    *,
    tist: int | None = None,
    wait: float = 1200,
) -> "ObiRun":
    """Return a run with a time of its own: `tist`, or now, or one second after the last run.

    An open run that was asked for the same continues. `wait` is the seconds to wait for its turn.
    A run before it whose process has ended is abandoned.
    Raises StoreError for a time that it cannot have and for a wrong clock. The same error is raised
    for a disk that cannot hold the store.
    """
    return ObiRun(store, claim_run(store, purpose, runtime, tist), runtime, wait)


class ObiRun:
    """A run that was opened. While it is neither committed nor abandoned, a lease shows that.

    Its methods raise StoreError, and Conflict if another process wrote different bytes for it.
    """

    def __init__(self, store: Writer, opened: OpenedRun, runtime: ObiRuntime, wait: float) -> None:
        self.tist = opened.tist
        self._store = store
        self._opened = opened
        self._runtime = runtime
        self._wait = wait
        self._before: tuple[Committed, ...] | None = None
        # A run that is dropped on an error ends its lease, too: others need not wait for it.
        self._end = weakref.finalize(self, announce(store, opened, runtime))

    def turn(self) -> tuple[Committed, ...]:
        """Wait until every run before it has ended, and return the runs that count, ascending."""
        if self._before is None:
            self._await()
            runs = history(self._store)
            if runs and runs[-1].tist > self.tist:
                self.abandon(f"the run {runs[-1].tist} was committed first")
                raise Conflict(
                    f"the run {self._opened.name()} was too late for its time; run the command "
                    "again"
                )
            self._before = tuple(run for run in runs if run.tist < self.tist)
        return self._before

    def put_file(self, identifier: str, path: Path) -> str:
        """Write an object of any size from a file of this machine, and return its key."""
        where = key.key(self.tist, identifier)
        self._create_file(where, path)
        return where

    def put_pack(self, sha256: str, path: Path) -> None:
        """Write a pack, unless the store has it: a name stands for the same bytes."""
        with suppress(Conflict):
            self._store.create_file(key.pack(sha256), path)

    def copy_object(self, tist: int, identifier: str, sha256: str, path: Path) -> bool:
        """Copy an object of another run to a file; False if it does not exist, or differs."""
        where = key.key(tist, identifier)
        try:
            with writing(path.parent), path.open("wb") as out:
                for chunk in content.read_parts(self._store, where, sha256):
                    out.write(chunk)
        except (MissingObject, DamagedStore):
            path.unlink(missing_ok=True)
            return False
        return True

    def size(self, identifier: str) -> int | None:
        """Return the size in bytes of an object that the run has written, None if it has not."""
        return self._store.size(key.key(self.tist, identifier))

    def redirect(self, origin: str, target: str, status: int, target_key: str | None) -> str:
        """Record that a URL led to another, and return the key of the record."""
        record = Redirect(origin=origin, target=target, status=status, target_key=target_key)
        where = key.redirect(self.tist, origin)
        data = record.document(self.tist)
        try:
            self._store.create(where, data)
        except Conflict:
            self._check(where, self._store.read(where) == data)
        return where

    def commit(self, rows: Iterable[Row]) -> Committed:
        """Write a log of rows in any order, and make the run count.

        Raises StoreError if the run was abandoned meanwhile.
        """
        self.turn()
        with tempfile.TemporaryDirectory(prefix="sheaf-run-") as name:
            folder = Path(name)
            with writing(folder):
                written = log_table.write_log(folder / LOG, rows)
            return self.commit_files(folder, written, None)

    def commit_files(
        self, folder: Path, log: log_table.WrittenLog, documents: log_table.WrittenLog | None
    ) -> Committed:
        """Store the log and the documents (None: no documents) of a folder, and commit the run.

        They were written by builder.obi.log_table under the names of their objects. Raises as
        `commit` does.
        """
        prefix = key.run(self.tist)
        if documents is not None:
            self._create_file(prefix + DOCUMENTS, folder / DOCUMENTS)
        self._create_file(prefix + LOG, folder / LOG)
        now = self._runtime.clock()
        digest = documents.digest if documents else None
        done = commit_run(self._store, self._opened, log, digest, self.turn(), now)
        self._end()
        return done

    def abandon(self, why: str) -> None:
        """Abandon the run: nothing of it counts. Raises StoreError if it is committed."""
        abandon(self._store, self.tist, why, self._runtime)
        self._end()

    def _await(self) -> None:
        end = self._runtime.clock() + timedelta(seconds=self._wait)
        is_announced = False
        while before := list(self._open()):
            opened = OpenedRun.read(self._store, before[0])
            named = opened.name()
            if has_ended(self._store, opened, self._runtime):
                abandon(self._store, opened.tist, "its process has ended", self._runtime)
                self._runtime.say(f"abandoned the run {named}: its process has ended")
                continue
            if self._runtime.clock() >= end:
                raise StoreError(
                    f"the run {named} is still open, and later runs wait for it: let it end, or "
                    f"abandon it with `sheaf obi --abandon {opened.tist}`"
                )
            if not is_announced:
                self._runtime.say(
                    f"waiting for the run {named}; if its process was killed, `sheaf obi --abandon "
                    f"{opened.tist}` ends it now"
                )
                is_announced = True
            self._runtime.sleep(_POLL)

    def _open(self) -> Iterator[int]:
        """Yield the open runs before this one, and complete those that lack only their commit."""
        for tist, members in standing(self._store).items():
            if tist < self.tist and is_open(members):
                if LOG in members:
                    complete_run(self._store, tist, self._runtime.clock())
                else:
                    yield tist

    def _create_file(self, where: str, path: Path) -> None:
        try:
            self._store.create_file(where, path)
        except Conflict:
            own, stored = durable.digest_file(path), durable.digest_object(self._store, where)[0]
            self._check(where, stored == own)

    def _check(self, where: str, same: bool) -> None:
        if not same:
            raise Conflict(
                f"{where} exists with other bytes, written when the run {self._opened.name()} "
                f"began; abandon it with `sheaf obi --abandon {self.tist}`, then run the command "
                "again"
            )
