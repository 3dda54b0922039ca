"""Threads that work for one caller, who takes their results one by one."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")

_TICK = 0.2  # seconds
_PAUSE = 0.5  # seconds
_REQUESTS = 16


def map_in_order(
    call: Callable[[S], T],
    items: Iterable[S],
    threads: int,
    ahead: int,
    stop: threading.Event | None = None,
    idle: Callable[[], None] | None = None,
) -> Generator[T, None, None]:
    """Yield the result of each call, in the order of `items`, which are taken one by one.

    At most `ahead` results wait or are computed at a time. Calls that have not begun are cancelled
    when the generator ends in any way. `stop` is set then, before the others are waited for. `idle`
    is called once if the next result takes longer than half a second.
    """
    pending: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for item in items:
            pending.append(pool.submit(call, item))
            if len(pending) == ahead:
                yield _result(pending.popleft(), idle)
        while pending:
            yield _result(pending.popleft(), idle)
    finally:
        if stop is not None:
            stop.set()
        pool.shutdown(cancel_futures=True)


def _result(future: Future[T], idle: Callable[[], None] | None) -> T:
    if idle is not None and not future.done() and not wait([future], _PAUSE).done:
        idle()
    return future.result()


def map_requests(call: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """Return the result of each call, in order. Calls wait for a store; some run in parallel."""
    if len(items) < 2:
        return [call(item) for item in items]
    return list(map_in_order(call, items, _REQUESTS, 2 * _REQUESTS))


class ThreadCrew(Generic[T]):
    """Threads whose results are taken in the order in which they arrive.

    `rest` holds the results that had arrived, but were not yielded, when `results` was closed.
    """

    def __init__(self, name: str, stop: threading.Event) -> None:
        """Setting `stop` must end the work of all threads soon."""
        self._name = name
        self._stop = stop
        self.rest: list[T] = []

    def results(
        self, work: Callable[[], Iterable[T]], threads: int, idle: Callable[[], None] = lambda: None
    ) -> Generator[T, None, None]:
        """Call `work` in each thread, and yield the results of all as they arrive.

        A thread waits while as many results as threads are waiting. `idle` is called now and then
        while none arrives. Raises the first error of a thread. When the generator ends in any way,
        `stop` is set if a thread has not ended its work, and all are waited for.
        """
        arrived: queue.Queue[list[T] | BaseException | None] = queue.Queue(max(threads, 1))
        crew = [
            threading.Thread(target=_run, args=(work, arrived), name=f"{self._name}-{number}")
            for number in range(threads)
        ]
        left = threads  # threads that have not ended
        try:
            for thread in crew:
                thread.start()
            while left:
                try:
                    arrival = arrived.get(timeout=_TICK)
                except queue.Empty:
                    idle()
                    continue
                if arrival is None:
                    left -= 1
                elif isinstance(arrival, BaseException):
                    raise arrival
                else:
                    yield arrival[0]
        finally:
            if left:
                self._stop.set()
            for thread in crew:
                while thread.is_alive():
                    self._drain(arrived)
                    thread.join(0.05)
            self._drain(arrived)

    def _drain(self, arrived: "queue.Queue[list[T] | BaseException | None]") -> None:
        while not arrived.empty():
            arrival = arrived.get_nowait()
            if isinstance(arrival, list):
                self.rest += arrival


def _run(
    work: Callable[[], Iterable[T]], arrived: "queue.Queue[list[T] | BaseException | None]"
) -> None:
    try:
        for result in work():
            arrived.put([result])
    except BaseException as error:  # noqa: BLE001 - raised where it is waited for
        arrived.put(error)
    else:
        arrived.put(None)
