"""The tally: how many requests to a bucket were made for one piece of work, and what came."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class Tally:
    """Requests, each try of one counted, and the bytes of what they were answered with."""

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
def counted() -> Iterator[Tally]:
    """Count what this thread, and calls that are carried to others, ask for meanwhile."""
    tally = Tally()
    token = _CURRENT.set(tally)
    try:
        yield tally
    finally:
        _CURRENT.reset(token)


def add(requests: int = 0, size: int = 0) -> None:
    """Count requests and bytes for whatever is being done, if that is counted."""
    tally = _CURRENT.get()
    if tally is not None:
        tally.add(requests, size)


def carried(call: Callable[..., T]) -> Callable[..., T]:
    """Return the call so that in another thread it counts for what is being done in this one.

    Each time it is made there has to be one of these for it.
    """
    return partial(copy_context().run, call)
