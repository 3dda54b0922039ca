"""Session: carries out many requests in parallel; each has exactly one outcome.

Requests for the same dataset are carried out one after the other, by a keyed lock.
"""

import threading
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from builder.filesets.item import IngestOutcome, IngestRequest
from builder.threads import ThreadCrew

_LOCK_WAIT = 0.2


class Process(Protocol):
    """Carries out a request, as builder.filesets.ingest.Ingest does."""

    def __call__(self, request: IngestRequest, *, dry: bool = False) -> IngestOutcome:
        """Return the outcome; it raises no Exception."""
        ...


@dataclass(slots=True)
class FilesetSession:
    """Carries out requests by `process` in that many threads. `stop` ends running requests.

    Requests are taken from the iterable one by one, as threads become free. Only one thread at a
    time asks it, and it must end soon after `stop` is set. `idle` is called now and then while the
    caller waits for outcomes.
    """

    process: Process
    threads: int
    stop: threading.Event
    dry: bool = False
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
        yield from crew.results(lambda: self._work(source), self.threads, self.idle)

    def _work(self, source: Iterator[IngestRequest]) -> Iterator[IngestOutcome]:
        while (request := self._next(source)) is not None:
            yield self.process(request, dry=self.dry)

    def _next(self, source: Iterator[IngestRequest]) -> IngestRequest | None:
        """Return the next request; None at the end, or once `stop` is set."""
        with self._asking:
            return None if self.stop.is_set() else next(source, None)


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
