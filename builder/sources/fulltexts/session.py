"""A gathering session: runs batches until no file is due or the limit is reached.

After a kill, the next session of the machine continues the open run from its journal.
"""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from builder.errors import UsageError
from builder.http.url import origin_of
from builder.obi.content import Row, SeenRow
from builder.obi.history import OpenedRun
from builder.obi.run import Committed, ObiRun, ObiRuntime, Purpose, claim, history
from builder.sources.fulltexts.batch import Batch
from builder.sources.fulltexts.choice import FileChoice, host_of
from builder.sources.fulltexts.fetch_file import FileFetcher
from builder.sources.fulltexts.gather_report import GatherReport
from builder.sources.fulltexts.hold import Hold
from builder.sources.fulltexts.sitemaps import SitemapReader
from builder.sources.fulltexts.state import DueFile, FileStates, HostEstimate, HostWork, estimate
from builder.text import visible
from builder.threads import map_in_order
from functions.snapshot.errors import SheafError
from functions.snapshot.store import Writer

_MANY = 20  # due files of a host for which its sitemaps are read
_ORIGINS, _AHEAD = 64, 4  # whose sitemaps a batch reads, and of which it holds entries at once
_UNCHANGED = 50_000  # files that a batch takes for unchanged


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
    job: GatherJob
    advance: Callable[[int], None] = lambda many: None
    report: GatherReport = field(init=False, default_factory=GatherReport)
    interrupted: KeyboardInterrupt | None = field(init=False, default=None)
    _state: FileStates | None = field(init=False, default=None)
    _put_off: dict[str, int] = field(init=False, default_factory=dict)
    _begun: int = field(init=False, default=0)
    _done: int = field(init=False, default=0)
    _sitemaps: set[str] = field(init=False, default_factory=set)
    _cut_off: OpenedRun | None = field(init=False, default=None)

    def due(self) -> int:
        """Return the number of due files, at most the limit.

        Raises DamagedStore, and UsageError if nothing matches the choice.
        """
        self._cut_off = self.hold.find_cut_off(self.store, self.runtime)
        runs = history(self.store)
        self._begun = max(self._now(), runs[-1].tist + 1 if runs else 0)
        if self._cut_off is not None:
            self._begun = min(self._begun, self._cut_off.tist)
            self.runtime.say(f"continuing the interrupted run {self._cut_off.name()}")
        state, choice = self._load_states(runs), self.job.choice
        if (choice.handle or choice.pattern) and not state.matches(choice):
            raise UsageError(f"--only {visible(self.job.source)}: no template or URL matches")
        self.report.note_plan(self._estimate(state.work(choice, self._now(), self._begun)))
        due = self.report.planned
        return due if self.job.limit is None else min(due, self.job.limit)

    def gather(self) -> GatherReport:
        """Fetch all due files. Call `due` first."""
        try:
            while self._batch():
                pass
            hosts: list[HostWork] = []
            if self._state is not None and not self.interrupted:
                hosts = self._state.work(self.job.choice, self._now(), self._begun)
            self.report.note_rest(self._estimate(hosts))
        finally:
            if self._state is not None:
                self._state.close()
                self._state = None
        return self.report

    def _batch(self) -> bool:
        """Run one more batch; False if it was the last, or no file was due."""
        until = time.monotonic() + self.job.seconds
        cut_off, self._cut_off = self._cut_off, None
        if cut_off is None and not self._next(self._load_states(history(self.store)), until):
            return False
        token = self.hold.next_run_id() if cut_off is None else cut_off.asked
        run = claim(self.store, Purpose("gather", self.job.source, token), self.runtime)
        try:
            state = self._load_states(run.turn())
            committed = self._fetch_run(run, state, cut_off, until)
        except BaseException:
            with contextlib.suppress(SheafError):  # the next process of this machine continues it
                run.abandon("it was interrupted or failed")
                self.hold.end_run()
            raise
        self.hold.end_run()
        if committed is not None:
            self.report.add(*committed)
        return self.interrupted is None and (committed is not None or cut_off is not None)

    def _fetch_run(
        self, run: ObiRun, state: FileStates, cut_off: OpenedRun | None, until: float
    ) -> tuple[Committed, list[Row]] | None:
        """Fetch within a run and commit it; None if there is nothing to commit.

        An old run that was cut off fetches no further files, because they would get its time.
        """
        batch = Batch(
            *(run, state, self.fetcher, self.hold.journal, until, self.job.threads),
            *(self._put_off, self.advance),
        )
        requested = batch.recorded.requested.items()  # before the run was cut off
        begun, unchanged = [DueFile(u, host_of(u), pdf) for u, pdf in requested], list[SeenRow]()
        wanted = {file.url: file for file in begun}
        if cut_off is None or self._now() < cut_off.tist + self.job.seconds:
            self._done += len(begun)
            more = self._next(state, until)
            self._done -= len(begun)
            unchanged = self._read_sitemaps(state, more, until)
            skipped = {row.id for row in unchanged}
            wanted |= {file.url: file for file in more if file.url not in skipped}
        failure: SheafError | None = None
        try:
            self._done += batch.fetch(list(wanted.values()))
        except KeyboardInterrupt as interrupt:
            self.interrupted = interrupt
        except SheafError as error:
            failure = error
        committed = batch.commit(unchanged)
        self.advance(len(unchanged))
        if committed is not None:
            state.extend(*committed)
        if failure is not None:
            raise failure
        return committed

    def _next(self, state: FileStates, until: float) -> list[DueFile]:
        most = self.job.files
        if self.job.limit is not None:
            most = min(most, self.job.limit - self._done)
        hosts = self.fetcher.client.hosts
        files = state.next(self.job.choice, self._now(), self._begun, most, hosts.resting(until))
        for file in files:
            if file.pause:
                hosts.slow_down(file.host, file.pause)
        return files

    def _read_sitemaps(
        self, state: FileStates, wanted: Iterable[DueFile], until: float
    ) -> list[SeenRow]:
        """Return rows of due files that did not change, as the sitemaps of their hosts say."""
        choice, now = self.job.choice, self._now()
        many = {h.host for h in state.work(choice, now, self._begun) if h.sure >= _MANY}
        origins = {origin_of(file.url) for file in wanted if file.host in many} - self._sitemaps
        reader = SitemapReader(self.fetcher.client, self.fetcher.limits, until, self.fetcher.obey)
        chosen = sorted(origins)[:_ORIGINS]
        self._sitemaps |= set(chosen)
        for sitemaps in map_in_order(reader.read, chosen, self.job.threads, _AHEAD):
            for sitemap in sitemaps:
                state.add_sitemap(sitemap)
        return state.list_unchanged(choice, now, self._begun, _UNCHANGED) if many else []

    def _estimate(self, hosts: Iterable[HostWork]) -> list[HostEstimate]:
        return estimate(hosts, self.fetcher.client.hosts.interval)

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
        self._state = FileStates.load(self.store, runs, folder, self.job.megabytes)
        return self._state
