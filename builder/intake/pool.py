"""Process pool for readers. Its workers end with the parent process."""

import atexit
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain, islice
from queue import Empty
from typing import Any, TypeVar

from functions.snapshot.errors import StoreError

T = TypeVar("T")
R = TypeVar("R")
Advance = Callable[[int, int], None]
"""Called with bytes read and captures found since the last call."""

_ENDS = (signal.SIGTERM, signal.SIGINT)

_reports: Any = None  # in a worker process: the queue of its progress reports


def map_tasks(
    work: Callable[[T, Advance], R], tasks: Iterable[T], jobs: int, advance: Advance
) -> Iterator[R]:
    """Apply `work` to each task in up to `jobs` processes, and yield the results in order.

    `work` must be a function of a module. Its second argument is a callback; the numbers passed to
    it reach `advance`. Tasks may be made while earlier ones are worked on.
    """
    rest = iter(tasks)
    first = list(islice(rest, 2 if jobs > 1 else 0))
    tasks = chain(first, rest)
    if len(first) < 2:
        for task in tasks:
            yield work(task, advance)
        return
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    with defer_interrupts():  # Python warns of a semaphore that is half made
        reports = context.Queue()
        reports.cancel_join_thread()  # what is left in it when the work ends early is not needed
        pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(reports,))
    futures: deque[Future[R]] = deque()
    try:
        for task in tasks:
            with defer_interrupts():  # inherited by the workers: their parent ends them
                futures.append(pool.submit(_work, work, task))
            futures[-1].add_done_callback(lambda _: reports.put((0, 0)))  # so that nobody waits
            while not reports.empty():
                advance(*reports.get())
        while futures:
            while not futures[0].done() or not reports.empty():
                try:
                    advance(*reports.get(timeout=0.2))
                except Empty:
                    continue
            yield futures.popleft().result()
    except BrokenProcessPool as error:
        raise StoreError(
            "a reading process was killed, perhaps because memory ran out: run the command again "
            "with fewer --jobs; it resumes"
        ) from error
    except BaseException:
        for worker in set(multiprocessing.active_children()) - before:
            worker.kill()  # incomplete parts do not count, so there is nothing to wait for
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Defer SIGINT and SIGTERM until the context ends.

    Both are blocked, and new threads and processes inherit this for good. Another thread, such as a
    database's, may still receive one; Python then runs the handler in the main thread.
    """
    heard: list[int] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    is_main = threading.current_thread() is threading.main_thread()
    handlers = [(n, signal.signal(n, lambda end, _: heard.append(end))) for n in _ENDS if is_main]
    try:
        yield
    finally:
        try:
            for end, handler in handlers:
                signal.signal(end, handler)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number in heard[:1]:
            signal.raise_signal(number)


def _begin(reports: Any) -> None:
    global _reports
    _reports = reports
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # All work is done by then. DuckDB's binding would print a long list of objects of this thread.
    atexit.register(os._exit, 0)


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, even by a SIGKILL."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(work: Callable[[T, Advance], R], task: T) -> R:
    return work(task, lambda *report: _reports.put(report))
