"""Session: carries out many requests in parallel; each has exactly one outcome.

Requests for the same dataset are carried out one after the other, by a keyed lock.
"""

import threading
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from builder.sources.datasets.item import IngestOutcome, IngestRequest
from builder.threads import ThreadCrew

_LOCK_WAIT = 0.2


@dataclass(slots=True)
class FilesetSession:
    """Carries out requests by `process`, which raises no Exception, in that many threads.

    `stop` ends running requests.

    Requests are taken from the iterable one by one, as threads become free. Only one thread at a
    time asks it, and it must end soon after `stop` is set. `idle` is called now and then while the
    caller waits for outcomes.
    """

    process: Callable[[IngestRequest], IngestOutcome]
    threads: int
    stop: threading.Event
    idle: Callable[[], None] = lambda: None
    rest: list[IngestOutcome] = field(init=False, default_factory=list)
    """Outcomes that were ready when the session was closed early, and not yet yielded."""
    _asking: threading.Lock = field(init=False, default_factory=threading.Lock)

    def outcomes(self, requests: Iterable[IngestRequest]) -> Generator[IngestOutcome, None, None]:
        """Yield outcomes as they arrive. Raises what `requests` raises, after the threads end.

        If the caller closes the generator early, all threads end; see `rest`.
        """
        source = iter(requests)
        crew: ThreadCrew[IngestOutcome] = ThreadCrew("fileset", self.stop)
        self.rest = crew.rest

        def work() -> Iterator[IngestOutcome]:
            while True:
                with self._asking:
                    request = None if self.stop.is_set() else next(source, None)
                if request is None:
                    return
                yield self.process(request)

        yield from crew.results(work, self.threads, self.idle)


@dataclass(frozen=True, slots=True)
class KeyedLock:
    """A lock for each key. Safe to use from threads."""

    _taken: set[Hashable] = field(init=False, default_factory=set)
    _changed: threading.Condition = field(init=False, default_factory=threading.Condition)

    @contextmanager
    def of(self, what: Hashable, check: Callable[[], None]) -> Iterator[None]:
        """Hold a key's lock during the block; `check` is called while waiting and may raise."""
        with self._changed:
            while what in self._taken:
                check()
                self._changed.wait(_LOCK_WAIT)
            self._taken.add(what)
        try:
            yield
        finally:
            with self._changed:
                self._taken.discard(what)
                self._changed.notify_all()
