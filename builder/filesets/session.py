"""A session: many requests, some at a time, each of which ends in exactly one outcome."""

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol

from builder.filesets.item import IngestOutcome, IngestRequest

_TICK = 0.2


class Process(Protocol):
    """Carries out a request; builder.filesets.ingest.Ingest has it."""

    def __call__(self, request: IngestRequest, *, dry: bool = False) -> IngestOutcome:
        """Return what came of it; no error passes."""
        ...


@dataclass(slots=True)
class FilesetSession:
    """Carries out requests by `process`, on so many threads. `stop` ends those at work.

    Requests are taken from their iterable one by one, as threads come free; it is asked by one
    thread at a time, and is to end soon once `stop` is set. `idle` is called now and then by
    whoever waits for outcomes.
    """

    process: Process
    threads: int
    stop: threading.Event
    dry: bool = False
    idle: Callable[[], None] = lambda: None
    rest: list[IngestOutcome] = field(init=False, default_factory=list)
    """What had come when it was ended early, and was not yet yielded."""
    _asking: threading.Lock = field(init=False, default_factory=threading.Lock)

    def outcomes(self, requests: Iterable[IngestRequest]) -> Generator[IngestOutcome, None, None]:
        """Yield the outcomes, as they come. What `requests` raises passes, once all have ended.

        Whoever closes it early ends all threads; see `rest`.
        """
        done: queue.Queue[IngestOutcome | BaseException | None] = queue.Queue(self.threads)
        source = iter(requests)
        crew = [
            threading.Thread(target=self._work, args=(source, done), name=f"fileset-{n}")
            for n in range(self.threads)
        ]
        with closing(_SessionEnd(self, crew, done)):
            for thread in crew:
                thread.start()
            left = len(crew)
            while left:
                try:
                    found = done.get(timeout=_TICK)
                except queue.Empty:
                    self.idle()
                    continue
                if found is None:
                    left -= 1
                elif isinstance(found, BaseException):
                    raise found
                else:
                    yield found

    def _work(
        self,
        source: Iterator[IngestRequest],
        done: "queue.Queue[IngestOutcome | BaseException | None]",
    ) -> None:
        try:
            while (request := self._next(source)) is not None:
                done.put(self.process(request, dry=self.dry))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            done.put(error)
        else:
            done.put(None)

    def _next(self, source: Iterator[IngestRequest]) -> IngestRequest | None:
        """Return one more request; None where there is none, or none is to be begun."""
        with self._asking:
            return None if self.stop.is_set() else next(source, None)


@dataclass(slots=True)
class _SessionEnd:
    """Ends the threads of a session."""

    session: FilesetSession
    crew: list[threading.Thread]
    done: "queue.Queue[IngestOutcome | BaseException | None]"

    def close(self) -> None:
        """Tell them to end, wait until they have, and take what they still had."""
        if any(thread.is_alive() for thread in self.crew):
            self.session.stop.set()
        for thread in self.crew:
            while thread.is_alive():
                self._drain()
                thread.join(0.05)
        self._drain()

    def _drain(self) -> None:
        while not self.done.empty():
            found = self.done.get_nowait()
            if isinstance(found, IngestOutcome):
                self.session.rest.append(found)
