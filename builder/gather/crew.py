"""Threads that fetch files side by side and pass on one result after the other."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from builder.gather.chain import Fetched, Once, follow
from builder.gather.fetch_file import FileFetcher, Known, Result
from builder.gather.state import DueFile
from builder.http.errors import Deferred, FetchError
from builder.http.redirects import check_scheme

_PUT_OFF = 3
"""Times that a URL is tried again later before its host's wish to wait counts as a failure."""


@dataclass(slots=True)
class Crew:
    """Fetches files until `until`, on the clock of the hosts.

    `known` returns the validators for a conditional request; it is called from threads. `put_off`
    counts how often each URL was put off, over all batches. Such a URL may also be the target of a
    redirect.
    """

    fetcher: FileFetcher
    known: Callable[[str], Known]
    until: float
    threads: int
    put_off: dict[str, int]
    rest: list[Fetched] = field(init=False, default_factory=list)
    """Results that had arrived, but were not yet yielded, when the generator was closed early."""
    _tasks: dict[str, deque[str]] = field(init=False, default_factory=dict)
    _again: dict[str, int] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def fetch(self, wanted: Sequence[DueFile]) -> Generator[Fetched, None, None]:
        """Yield the result of each file as it arrives, without files that must not be tried now.

        Closing the generator early ends all threads at once; see `rest`.
        """
        for one in wanted:
            self._tasks.setdefault(one.host, deque()).append(one.url)
        once = Once(self._ask)
        done: queue.Queue[Fetched | BaseException | None] = queue.Queue(self.threads)
        crew = [
            threading.Thread(target=self._work, args=(once, done), name=f"gather-{n}", daemon=True)
            for n in range(min(self.threads, len(wanted)))
        ]
        for thread in crew:
            thread.start()
        with closing(_End(self.fetcher.client.stop, crew, done, self.rest)):
            left = len(crew)
            while left:
                found = done.get()
                if found is None:
                    left -= 1
                elif isinstance(found, BaseException):
                    raise found
                else:
                    yield found

    def _work(self, once: Once, done: "queue.Queue[Fetched | BaseException | None]") -> None:
        try:
            while (task := self._next(once)) is not None:
                if isinstance(task, Fetched):
                    done.put(task)
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            done.put(error)
        else:
            done.put(None)

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
                return follow(url, once)
            except FetchError as failure:
                return Fetched(url, (), url, failure)
            except Deferred:
                self._defer(host, url)
                return True

    def _defer(self, host: str, url: str) -> None:
        """Put a URL off within this batch, but only a few times."""
        with self._lock:
            self._again[url] = self._again.get(url, 0) + 1
            if self._again[url] <= _PUT_OFF:
                self._tasks[host].append(url)

    def _ask(self, url: str) -> Result:
        result = self.fetcher.fetch(url, self.known(url), self.until)
        if isinstance(result, FetchError) and result.retry_after is not None:
            with self._lock:
                often = self.put_off.get(url, 0)
                self.put_off[url] = often + 1
            if often < _PUT_OFF:
                raise Deferred(f"{url}: the server asks to retry later")
        return result


@dataclass(slots=True)
class _End:
    """Ends the threads of a crew."""

    stop: threading.Event
    crew: Sequence[threading.Thread]
    done: "queue.Queue[Fetched | BaseException | None]"
    rest: list[Fetched]

    def close(self) -> None:
        """Stop the threads, wait until they have ended, and collect their last results."""
        if any(thread.is_alive() for thread in self.crew):
            self.stop.set()
        for thread in self.crew:
            while thread.is_alive():
                self._drain()
                thread.join(0.05)
        self._drain()

    def _drain(self) -> None:
        while not self.done.empty():
            found = self.done.get_nowait()
            if isinstance(found, Fetched):
                self.rest.append(found)
