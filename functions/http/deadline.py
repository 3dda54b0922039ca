"""Deadline: ends the work for a request whose answer is no longer awaited.

The work runs in a thread of its own, which is stopped at the deadline. It may then never release
its locks and connections, and a call into another language (a database, a socket) ends only by
itself. So after DeadlineError the caller must discard everything that the thread used.
"""

import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class DeadlineError(Exception):
    """The deadline passed before there was an answer."""


class Stopped(SystemExit):
    """Ends a thread silently, after its answer is no longer awaited."""


def answer_within(seconds: float | None, work: Callable[[], T]) -> T:
    """Return or raise the outcome of `work` within `seconds` (None: no limit).

    The work runs in the caller's context (contextvars). Raises DeadlineError after `seconds`.
    """
    if seconds is None:
        return work()
    worker = _Worker(partial(copy_context().run, work))
    worker.thread.start()
    worker.thread.join(seconds)
    return worker.result()


class _Worker(Generic[T]):
    """A call in a daemon thread, which does not keep the process alive."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.thread = threading.Thread(target=self._run, name="sheaf-answer", daemon=True)
        self._work = work
        self._found: list[T] = []
        self._failure: BaseException | None = None

    def result(self) -> T:
        """Return the result or raise the failure; if there is neither yet, stop the thread."""
        if self._found:
            return self._found[0]
        if self._failure is None:
            # Raise Stopped in a thread before its next Python step; other calls finish first.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self.thread.ident or 0), ctypes.py_object(Stopped)
            )
            raise DeadlineError
        raise self._failure

    def _run(self) -> None:
        try:
            self._found.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._failure = error
