"""A batch: one run of the obi store, which fetches files for some minutes.

Threads fetch files side by side and pass on one result after the other. Each response is recorded
in a journal, and new bytes are stored, as they arrive. Their rows are committed at the end, and
count only then. A batch that is ended by Ctrl-C commits the results so far; one that was killed
goes on from its journal.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from urllib.parse import unquote, urlsplit

from builder.http.errors import Deferred, FetchError
from builder.http.secrets import match_kept, name_apart, strip_secrets
from builder.http.url import Redirects, check_scheme
from builder.obi.content import ExchangeRow, Redirect, Row, SeenRow
from builder.obi.run import Committed, ObiRun
from builder.sources.fulltexts.fetch_file import FileFetcher, Once, Validators, follow_redirects
from builder.sources.fulltexts.incidences import Before, IncidenceRules
from builder.sources.fulltexts.journal import JournalContent, ResponseJournal
from builder.sources.fulltexts.results import Fetched, FileContent, Hop, Moved, Result
from builder.sources.fulltexts.state import DueFile, FileStates
from builder.threads import ThreadCrew


@dataclass(slots=True)
class RunOutcomes:
    """The results of the run so far. Safe to use from threads.

    `wanted` are URLs that templates name, and `pdf` those that a template calls a PDF.
    """

    run: ObiRun
    state: FileStates
    results: list[Fetched] = field(init=False, default_factory=list)
    pdf: set[str] = field(init=False, default_factory=set)
    wanted: set[str] = field(init=False, default_factory=set)
    _names: dict[str, str] = field(init=False, default_factory=dict)
    _before: dict[str, Before] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def name_file(self, url: str) -> str:
        """Return the id of the file at a URL: as a template or the store has it, else no secrets.

        Redirects lead to addresses that nobody else should use, such as signed ones.
        """
        if url in self._names or url in self.wanted or (name := name_apart(url)) == url:
            return self._names.get(url, url)
        return name if self._recall(url) == Before() else url

    def name_target(self, url: str, moved: Moved) -> None:
        """Name the target of a redirect as before if what may be kept of it is as before.

        A signature differs each time. The first redirect to a target decides.
        """
        last = self.before(url).target
        with suppress(FetchError):
            target = Redirects(url).follow(moved.location, moved.status)
            name = self.name_file(target)
            if last and name not in (target, last) and match_kept(target, last):
                name = last if strip_secrets(last) == last else name
            self._names.setdefault(target, name)

    def name_result(self, fetched: Fetched) -> Fetched:
        """Return a result with the ids of its URLs."""
        hops = tuple(
            replace(
                hop,
                origin=self.name_file(hop.origin),
                target=self.name_file(hop.target),
                exchange=self._name_exchange(hop.exchange),
            )
            for hop in fetched.hops
        )
        final = fetched.final
        if isinstance(final, FileContent):
            final = replace(final, exchange=self._name_exchange(final.exchange))
        return replace(fetched, hops=hops, last=self.name_file(fetched.last), final=final)

    def _name_exchange(self, exchange: ExchangeRow | None) -> ExchangeRow | None:
        return exchange and replace(exchange, id=self.name_file(exchange.id))

    def load(self, urls: Iterable[str]) -> None:
        """Look up at once what earlier runs know of URLs."""
        states = self.state.before(urls)
        with self._lock:
            self._before |= states

    def before(self, url: str) -> Before:
        """Return what earlier runs know of a URL."""
        return self._recall(self.name_file(url))

    def _recall(self, url: str) -> Before:
        with self._lock:
            if url not in self._before:
                self._before |= self.state.before([url])
            return self._before[url]

    def is_new(self, url: str, content: FileContent) -> bool:
        """Return whether a URL now has other bytes than before."""
        return content.sha256 != self.before(url).digest

    def store(self, url: str, content: FileContent) -> None:
        """Store the bytes of a URL if they are new. The temporary file stays."""
        if self.is_new(url, content):
            self.run.put_file(self.name_file(url), content.path)

    def rows(self) -> list[Row]:
        """Return the log rows of all results; new redirects are recorded in the store."""

        def record(hop: Hop, target_key: str | None) -> str:
            return self.run.redirect(hop.origin, hop.target, hop.status, target_key)

        pdf = self.pdf.__contains__
        rules = IncidenceRules(
            self.run.tist,
            self.before,
            lambda url: pdf(url) or unquote(urlsplit(url).path).lower().endswith(".pdf"),
            record,
        )
        return rules.rows(self.results)


_PUT_OFF = 3
"""Times that a URL is tried again later before its host's wish to wait counts as a failure."""


@dataclass(slots=True)
class Batch:
    """The state of a batch, which ends at `until` on the client's clock.

    `put_off` counts how often each URL was put off, over all batches. Such a URL may also be the
    target of a redirect.
    """

    run: ObiRun
    state: FileStates
    fetcher: FileFetcher
    journal: ResponseJournal
    until: float
    threads: int
    put_off: dict[str, int]
    advance: Callable[[int], None]
    """Called with the number of results since the last call."""
    recorded: JournalContent = field(init=False)
    """What the journal of the run had at its begin."""
    outcomes: RunOutcomes = field(init=False)
    _tasks: dict[str, deque[str]] = field(init=False, default_factory=dict)
    _again: dict[str, int] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.recorded = self.journal.begin(self.run.tist)
        self.outcomes = RunOutcomes(self.run, self.state)

    def fetch(self, wanted: Sequence[DueFile]) -> int:
        """Fetch the files, and return the number of results.

        Raises KeyboardInterrupt; the results so far are kept, and can be committed.
        """
        self.outcomes.wanted = {file.url for file in wanted}
        self.outcomes.pdf = {file.url for file in wanted if file.pdf}
        self.outcomes.load(file.url for file in wanted)
        self._restore()
        left = [file for file in wanted if not self._is_complete(file.url)]
        for file in left:
            self._tasks.setdefault(file.host, deque()).append(file.url)
        once = Once(self._ask, self.recorded.results)
        crew: ThreadCrew[Fetched] = ThreadCrew("gather", self.fetcher.client.stop)
        threads = min(self.threads, len(left))
        try:
            with closing(crew.results(lambda: self._work(once), threads)) as outcomes:
                for fetched in outcomes:
                    self._take(fetched)
        finally:
            for fetched in crew.rest:
                self._take(fetched)
        return len(self.outcomes.results)

    def _work(self, once: Once) -> Iterator[Fetched]:
        while (task := self._next(once)) is not None:
            if isinstance(task, Fetched):
                yield task

    def _next(self, once: Once) -> Fetched | bool | None:
        """Fetch one more file; True if none was fetched now, None at the end."""
        with self._lock:
            hosts = [host for host, urls in self._tasks.items() if urls]
        with self.fetcher.client.hosts.first_free(hosts, self.until) as host:
            if host is None:
                return None
            with self._lock:
                urls = self._tasks[host]
                url = urls.popleft() if urls else None
            if url is None:
                return True
            try:
                check_scheme(url)
                return once.follow(url)
            except FetchError as failure:
                return Fetched(url, (), url, failure)
            except Deferred:
                # Put a URL off within this batch, but only a few times.
                with self._lock:
                    self._again[url] = self._again.get(url, 0) + 1
                    if self._again[url] <= _PUT_OFF:
                        self._tasks[host].append(url)
                return True

    def _ask(self, url: str, origin: str) -> Result:
        """Request a URL, record the response, and store its file. Called from threads."""
        before, validators = self.outcomes.before(url), Validators()
        if before.present:  # else its request has no conditions: the bytes must show it is back
            validators = Validators(before.etag, before.last_modified)
        result = self.fetcher.fetch(url, validators, self.until)
        if isinstance(result, FetchError) and result.retry_after is not None:
            with self._lock:
                often = self.put_off.get(url, 0)
                self.put_off[url] = often + 1
            if often < _PUT_OFF:
                raise Deferred(f"{url}: the server asks to retry later")
        self.journal.add(url, origin, origin in self.outcomes.pdf, result)
        if isinstance(result, Moved):
            self.outcomes.name_target(url, result)
        elif isinstance(result, FileContent):
            self._keep(url, result)
        return result

    def _restore(self) -> None:
        """Store the recorded files that were not stored before the run was cut off."""
        journal = self.recorded
        for url, result in list(journal.results.items()):
            if isinstance(result, Moved):
                self.outcomes.name_target(url, result)
            if not isinstance(result, FileContent) or journal.stored.get(url) == self.run.tist:
                continue
            if result.path.exists() or not self.outcomes.is_new(url, result):
                self._keep(url, result)
                continue
            name, tist = self.outcomes.name_file(url), journal.stored.get(url)
            if self.run.size(name) == result.size:
                continue
            # A run that was abandoned since may have stored it.
            if tist and self.run.copy_object(tist, name, result.sha256, result.path):
                self._keep(url, result)
            else:
                del journal.results[url]  # its bytes are gone: fetch it again

    def _is_complete(self, url: str) -> bool:
        """Return whether the journal has the result of a file, and take it then."""
        results = self.recorded.results
        if url not in results:
            return False
        try:
            self._take(follow_redirects(url, lambda target: results[target]))
        except KeyError:  # a redirect whose target is not recorded
            return False
        return True

    def commit(self, unchanged: Sequence[SeenRow] = ()) -> tuple[Committed, list[Row]] | None:
        """Commit the run, and return it with its rows. Without results, abandon it: None.

        `unchanged` are rows of files that were not requested.
        """
        if not self.outcomes.results and not unchanged:
            self.run.abandon("nothing was fetched")
            return None
        rows = self.outcomes.rows()
        ids = {row.id for row in rows if not isinstance(row, Redirect) and hasattr(row, "id")}
        rows += [row for row in unchanged if row.id not in ids]
        return self.run.commit(rows), rows

    def _take(self, fetched: Fetched) -> None:
        self.outcomes.results.append(self.outcomes.name_result(fetched))
        self.advance(1)

    def _keep(self, url: str, content: FileContent) -> None:
        """Store the bytes of a URL if they changed."""
        self.outcomes.store(url, content)
        self.journal.note_stored(url)
        content.path.unlink(missing_ok=True)
