"""Deadlines: an answer that is not ready in time is waited for no longer, whatever it hangs in.

It is made in a thread of its own. That thread is stopped, but what it holds at that moment it may
hold for good, and a call of another language (a database's, a socket's) ends when it ends. So who
is told that time is up has to let go of all that the thread has worked with, and make it anew.
"""

import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class Late(Exception):
    """Time was up before there was an answer."""


class Stopped(SystemExit):
    """Ends a thread whose answer nobody waits for any more, in silence."""


def within(seconds: float | None, work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise what it raises, within `seconds` (None: take any time).

    It is done in the caller's context (contextvars). Raises Late where it is not to be had.
    """
    if seconds is None:
        return work()
    worker = _Worker(partial(copy_context().run, work))
    worker.thread.start()
    worker.thread.join(seconds)
    return worker.result()


class _Worker(Generic[T]):
    """A call in a thread, which does not keep the process from its end."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.thread = threading.Thread(target=self._run, name="sheaf-answer", daemon=True)
        self._work = work
        self._found: list[T] = []
        self._failure: BaseException | None = None

    def result(self) -> T:
        """Return the result, or raise in place of it; where there is none yet, stop the thread."""
        if self._found:
            return self._found[0]
        if self._failure is None:
            _stop(self.thread)
            raise Late
        raise self._failure

    def _run(self) -> None:
        try:
            self._found.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._failure = error


def _stop(thread: threading.Thread) -> None:
    """Raise Stopped in a thread, between two steps of Python; in any other call, behind it."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Stopped)
    )
