"""Deadline: ends the work for a request whose answer is no longer awaited.

The work runs in a thread of its own, which is stopped at the deadline. It may then never release
its locks and connections, and a call into another language (a database, a socket) ends only by
itself. So after DeadlineError the caller must discard everything that the thread used.
"""

import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


class DeadlineError(Exception):
    """The deadline passed before there was an answer."""


class Stopped(SystemExit):
    """Ends a thread silently, after its answer is no longer awaited."""


def answer_within(seconds: float, work: Callable[[], T]) -> T:
    """Return or raise the outcome of `work` within `seconds`.

    The work runs in the caller's context (contextvars). Raises DeadlineError after `seconds`.
    """
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            failures.append(error)

    # A daemon thread does not keep the process alive.
    thread = threading.Thread(
        target=copy_context().run, args=(run,), name="sheaf-answer", daemon=True
    )
    thread.start()
    thread.join(seconds)
    if results:
        return results[0]
    if failures:
        raise failures[0]
    # Raise Stopped in the thread before its next Python step; other calls finish first.
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Stopped)
    )
    raise DeadlineError
