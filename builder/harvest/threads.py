"""Thread pool for harvests, with a limit of concurrent harvests for each host."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from builder.harvest.run import HarvestJob, HarvestResult
from builder.http.errors import Deferred
from functions.snapshot.errors import SheafError

_TICK = 0.2
_MOST = 32
"""Maximum number of threads, whatever the number of hosts."""


@dataclass(slots=True)
class HarvestThreads:
    """Runs harvests by `work`, which raises SheafError; `per_host` at a time from one host.

    `stop` ends the running harvests; they keep the records received.
    """

    work: Callable[[HarvestJob], HarvestResult]
    per_host: int
    stop: threading.Event
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _active: dict[str, int] = field(init=False, default_factory=dict)

    def outcomes(
        self, orders: Sequence[HarvestJob]
    ) -> Generator[HarvestResult | SheafError, None, None]:
        """Yield the result of each harvest, or its error, in the order in which they end.

        Closing the generator early stops all threads; each keeps the records received.
        """
        waiting = deque(orders)
        done: queue.Queue[HarvestResult | BaseException | None] = queue.Queue()
        crew = [
            threading.Thread(target=self._turns, args=(waiting, done), name=f"harvest-{number}")
            for number in range(min(_MOST, len(waiting)))
        ]
        for thread in crew:
            thread.start()
        try:
            left = len(crew)
            while left:
                try:
                    found = done.get(timeout=_TICK)
                except queue.Empty:
                    continue
                if found is None:
                    left -= 1
                elif isinstance(found, HarvestResult | SheafError):
                    yield found
                else:
                    raise found
        finally:
            self.stop.set()
            for thread in crew:
                thread.join()

    def _turns(
        self, waiting: deque[HarvestJob], done: "queue.Queue[HarvestResult | BaseException | None]"
    ) -> None:
        try:
            while not self.stop.is_set() and waiting:
                order = self._next(waiting)
                if order is None:
                    self.stop.wait(_TICK)
                    continue
                try:
                    done.put(self.work(order))
                except Deferred:
                    return
                except SheafError as error:
                    done.put(error)
                finally:
                    with self._lock:
                        self._active[_host(order)] -= 1
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            done.put(error)
        finally:
            done.put(None)

    def _next(self, waiting: deque[HarvestJob]) -> HarvestJob | None:
        """Take the first harvest whose host has a free slot, or None."""
        with self._lock:
            for order in waiting:
                host = _host(order)
                if self._active.get(host, 0) < self.per_host:
                    waiting.remove(order)
                    self._active[host] = self._active.get(host, 0) + 1
                    return order
        return None


def _host(order: HarvestJob) -> str:
    return urlsplit(order.base_url).hostname or ""
