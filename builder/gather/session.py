"""A gathering session: runs batches until no file is due or the limit is reached.

One process of a machine gathers for a store: it holds a lock, in its own folder. The request of a
run is written down there before the run is opened, so a run that was cut off can be recognised.
The next process ends such a run, so that other runs do not wait for it.
"""

import contextlib
import hashlib
import os
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from builder.errors import UsageError
from builder.gather.batch import Batch, Pace
from builder.gather.choice import FileChoice
from builder.gather.fetch_file import FileFetcher
from builder.gather.state import DueFile, FileStates, HostWork
from builder.intake.intake import writing
from builder.obi.content import (
    CHANGE,
    DELETION,
    FailureRow,
    Incidence,
    Redirect,
    Row,
    SeenRow,
    Version,
)
from builder.obi.history import OpenedRun, is_open, log_format, standing
from builder.obi.run import Committed, ObiRun, ObiRuntime, Purpose, abandon, claim, history
from builder.text import visible
from functions.snapshot.errors import SheafError
from functions.snapshot.store import Writer
from functions.store.folder_lock import lock_folder

_ASKED, _SCRATCH = "asked", "scratch"


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

    def end_cut_off(self, store: Writer, runtime: ObiRuntime) -> None:
        """Abandon the run that this machine opened last, if it was cut off."""
        path = self.folder / _ASKED
        token = path.read_text() if path.exists() else None
        for tist, members in standing(store).items():
            if token and is_open(members) and log_format(members) is None:
                opened = OpenedRun.read(store, tist)
                if opened.asked == token:
                    abandon(store, tist, "it was cut off", runtime)
                    runtime.say(f"abandoned the interrupted run {opened.name()}")


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
        try:
            yield hold
        finally:
            shutil.rmtree(hold.scratch, ignore_errors=True)
            if not (folder / _ASKED).exists():
                shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class GatherJob:
    """What to gather: the choice, at most `limit` files, and the size of a batch.

    `source` is the choice as the operator wrote it. A batch starts requests for `seconds`, and
    fetches at most `files`. `megabytes` bounds the memory of the database.
    """

    choice: FileChoice
    source: str
    limit: int | None
    seconds: float
    files: int
    threads: int
    megabytes: int = 1024
    pdf_text: bool = False


@dataclass(slots=True)
class GatherReport:
    """The results of a session: `counts` by kind, and `failures` by code.

    `left` files of `left_hosts` are still due. `put_off` files wait, because they failed before.
    """

    runs: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    left: int = 0
    left_hosts: int = 0
    put_off: int = 0

    def add(self, run: Committed, rows: Iterable[Row]) -> None:
        """Count the rows of a run."""
        self.runs.append(run.tist)
        for row in rows:
            if isinstance(row, Version):
                self.bytes += row.bytes
            elif isinstance(row, Incidence):
                self.counts[_count_name(row)] += 1
            elif isinstance(row, FailureRow):
                self.failures[row.code] += 1
            elif isinstance(row, SeenRow):
                self.counts["seen"] += 1
            elif isinstance(row, Redirect):
                self.counts["redirects"] += 1

    def note_rest(self, hosts: Iterable[HostWork]) -> None:
        """Count what the session leaves."""
        for host in hosts:
            self.left += host.due
            self.left_hosts += bool(host.due)
            self.put_off += host.put_off


def _count_name(row: Incidence) -> str:
    if row.what in {CHANGE, DELETION}:
        return f"{row.what}s"
    return "reappearances" if row.again else "appearances"


@dataclass(slots=True)
class GatherSession:
    """Gathers into a store; the caller holds its lock.

    `advance` is called with the number of results since its last call. After a KeyboardInterrupt,
    the batch is committed. The caller then raises `interrupted` after the report.
    """

    store: Writer
    hold: Hold
    runtime: ObiRuntime
    fetcher: FileFetcher
    order: GatherJob
    advance: Callable[[int], None] = lambda many: None
    account: GatherReport = field(init=False, default_factory=GatherReport)
    interrupted: KeyboardInterrupt | None = field(init=False, default=None)
    _state: FileStates | None = field(init=False, default=None)
    _put_off: dict[str, int] = field(init=False, default_factory=dict)
    _begun: int = field(init=False, default=0)
    _done: int = field(init=False, default=0)

    def due(self) -> int:
        """Return the number of due files, at most the limit.

        Raises DamagedStore, and UsageError if nothing matches the choice.
        """
        self.hold.end_cut_off(self.store, self.runtime)
        runs = history(self.store)
        self._begun = max(self._now(), runs[-1].tist + 1 if runs else 0)
        state, choice = self._load_states(runs), self.order.choice
        if (choice.handle or choice.pattern) and not state.matches(choice):
            raise UsageError(f"--only {visible(self.order.source)}: no template or URL matches")
        due = sum(host.due for host in state.work(choice, self._now(), self._begun))
        return due if self.order.limit is None else min(due, self.order.limit)

    def gather(self) -> GatherReport:
        """Fetch all due files. Call `due` first."""
        try:
            while self._batch():
                pass
            self.account.note_rest(self._work())
        finally:
            if self._state is not None:
                self._state.close()
                self._state = None
        return self.account

    def _work(self) -> list[HostWork]:
        if self.interrupted or self._state is None:
            return []
        return self._state.work(self.order.choice, self._now(), self._begun)

    def _batch(self) -> bool:
        """Run one more batch; False if it was the last, or no file was due."""
        until = time.monotonic() + self.order.seconds
        state = self._load_states(history(self.store))
        wanted = self._next(state, until)
        if not wanted:
            return False
        run = claim(self.store, self._purpose(), self.runtime)
        try:
            now = self._load_states(run.turn())
            if now is not state:  # another machine gathered in between
                wanted = self._next(now, until)
            committed = self._fetch_run(run, now, wanted, until)
        except BaseException:
            with contextlib.suppress(SheafError):  # the next process of this machine will end it
                run.abandon("it was interrupted or failed")
                self.hold.end_run()
            raise
        self.hold.end_run()
        if committed is None:
            return False
        self.account.add(*committed)
        return self.interrupted is None

    def _fetch_run(
        self, run: ObiRun, state: FileStates, wanted: list[DueFile], until: float
    ) -> tuple[Committed, list[Row]] | None:
        """Fetch within a run and commit it; None if there is nothing to commit."""
        pace = Pace(until, self.order.threads, self.order.pdf_text)
        batch = Batch(run, state, self.fetcher, pace, self._put_off, self.advance)
        try:
            self._done += batch.fetch(wanted)
        except KeyboardInterrupt as interrupt:
            self.interrupted = interrupt
        committed = batch.commit()
        if committed is not None:
            state.extend(*committed)
        return committed

    def _next(self, state: FileStates, until: float) -> list[DueFile]:
        most = self.order.files
        if self.order.limit is not None:
            most = min(most, self.order.limit - self._done)
        resting = self.fetcher.client.hosts.resting(until)
        return state.next(self.order.choice, self._now(), self._begun, most, resting)

    def _purpose(self) -> Purpose:
        return Purpose("gather", self.order.source, self.hold.next_run_id())

    def _now(self) -> int:
        return int(self.runtime.clock().timestamp())

    def _load_states(self, runs: tuple[Committed, ...]) -> FileStates:
        """Return the state after the runs; replay it again if other machines gathered since."""
        if self._state is not None and self._state.runs == runs:
            return self._state
        if self._state is not None:
            self._state.close()
        folder = self.hold.scratch / "state"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self._state = FileStates.load(self.store, runs, folder, self.order.megabytes)
        return self._state
