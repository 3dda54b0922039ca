"""A pool of processes that read side by side, and end with the one that began them."""

import atexit
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from queue import Empty
from typing import Any, TypeVar

from builder.ingest.split_reader import Advance, SplitResult, Task, carry_out
from functions.snapshot.errors import StoreError

T = TypeVar("T")
R = TypeVar("R")

_ENDS = (signal.SIGTERM, signal.SIGINT)

_reports: Any = None  # in a worker process: where it reports its progress


def carried_out(tasks: Sequence[Task], jobs: int, advance: Advance) -> Iterator[list[SplitResult]]:
    """Carry the tasks out, up to `jobs` of them side by side; yield what each gave, in order."""
    return map_tasks(_read, tasks, jobs, advance)


def map_tasks(
    work: Callable[[T, Advance], R], tasks: Sequence[T], jobs: int, advance: Advance
) -> Iterator[R]:
    """Do the work on each task, up to `jobs` of them side by side; yield what it gave, in order.

    `work` is a function of a module. It calls what it is given besides with numbers, which
    `advance` gets.
    """
    if jobs > 1 and len(tasks) > 1:
        yield from _side_by_side(work, tasks, min(jobs, len(tasks)), advance)
    else:
        for task in tasks:
            yield work(task, advance)


def _side_by_side(
    work: Callable[[T, Advance], R], tasks: Sequence[T], jobs: int, advance: Advance
) -> Iterator[R]:
    context = multiprocessing.get_context("spawn")
    reports = context.Queue()
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(reports,))
    try:
        with defer_interrupts():  # which workers inherit: their parent ends them
            futures = [pool.submit(_work, work, task) for task in tasks]
        for future in futures:
            while not future.done() or not reports.empty():
                try:
                    advance(*reports.get(timeout=0.2))
                except Empty:
                    continue
            yield future.result()
    except BrokenProcessPool as error:
        raise StoreError(
            "a process that was reading was ended from outside, perhaps for want of memory: "
            "try again with fewer --jobs; what was read until now need not be read again"
        ) from error
    except BaseException:
        for worker in set(multiprocessing.active_children()) - before:
            worker.kill()  # a part that is not whole is none, so there is nothing to wait for
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Put an interrupt or a request to end off until the context ends.

    Both are blocked, and what begins meanwhile has them blocked for good. But another thread may
    take one, a database's for instance; then Python has the main thread hear of it all the same.
    """
    heard: list[int] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    is_main = threading.current_thread() is threading.main_thread()
    held = [(n, signal.signal(n, lambda it, _: heard.append(it))) for n in _ENDS if is_main]
    try:
        yield
    finally:
        try:
            for end, handler in held:
                signal.signal(end, handler)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number in heard[:1]:
            signal.raise_signal(number)


def _begin(reports: Any) -> None:
    global _reports
    _reports = reports
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # All is done by then; but of what that thread holds DuckDB's binding would make a long list.
    atexit.register(os._exit, 0)


def _end_with_parent() -> None:
    """End this process as soon as the one that began it has, even by a SIGKILL."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _read(task: Task, advance: Advance) -> list[SplitResult]:
    return carry_out(task, advance)


def _work(work: Callable[[T, Advance], R], task: T) -> R:
    return work(task, lambda *report: _reports.put(report))
