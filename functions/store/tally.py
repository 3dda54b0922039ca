"""Counts the requests to buckets and the bytes of their responses for one unit of work."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class Tally:
    """Number of requests, retries included, and the bytes of their responses."""

    def __init__(self) -> None:
        self.requests = 0
        self.bytes = 0
        self._lock = threading.Lock()

    def add(self, requests: int, size: int) -> None:
        """Count requests and bytes, from any thread."""
        with self._lock:
            self.requests += requests
            self.bytes += size


_CURRENT: ContextVar[Tally | None] = ContextVar("tally", default=None)


@contextmanager
def count() -> Iterator[Tally]:
    """Count the requests of this thread, and of calls passed to other threads by `carry`."""
    tally = Tally()
    token = _CURRENT.set(tally)
    try:
        yield tally
    finally:
        _CURRENT.reset(token)


def add(requests: int = 0, size: int = 0) -> None:
    """Count requests and bytes for the current unit of work, if it is counted."""
    tally = _CURRENT.get()
    if tally is not None:
        tally.add(requests, size)


def carry(call: Callable[..., T]) -> Callable[..., T]:
    """Return a call that counts for this thread's work when another thread runs it.

    Each call in another thread needs a separate `carry`.
    """
    return partial(copy_context().run, call)
