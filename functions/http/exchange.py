"""An exchange of request and answer: its deadline, and its line in the access log.

A line holds no client address and no resumption token. Client input cannot break a line: JSON
escapes control characters, and here also all characters that are not ASCII.

The work runs in a thread of its own. At the deadline that thread is stopped, but it may never
release what it holds at that moment. A call into another language (a database, a socket) ends only
by itself. So after DeadlineError the caller must discard everything that the thread used.
"""

import ctypes
import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, TypeVar

from functions.http.http_message import Call, FormError
from functions.store.s3_request import Tally

_LOG = logging.getLogger("sheaf")

_ARGUMENTS = ("verb", "metadataPrefix", "set", "from", "until", "identifier")
_LONGEST = 300
"""Maximum length of a value in characters; longer values are cut."""
T = TypeVar("T")


class AccessLog:
    """Writes entries by `write`, which takes a line without its end and may raise."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._broken = False

    def add(self, entry: Mapping[str, Any]) -> None:
        """Write an entry. If that fails, the entry is lost and one error is logged."""
        try:
            self._write(json.dumps(entry, separators=(",", ":")))
            self._broken = False
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer is there to be sent
            if not self._broken:
                _LOG.error("the access log cannot be written: %s", error)
            self._broken = True


def log_entry(
    when: datetime,
    call: Call,
    reply: Mapping[str, Any],
    told: Mapping[str, Any],
    seconds: float,
    cost: Tally | None = None,
) -> dict[str, Any]:
    """Return the entry of a call that arrived at `when` and was answered by `reply`.

    `told` are the fields of the answer itself. `cost` counts its requests to a bucket (None: no
    requests).
    """
    status = reply["statusCode"]
    return {
        "time": when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "method": call.method[:_LONGEST],
        "path": call.path[:_LONGEST],
        "status": status,
        **_arguments(call),
        **told,
        # HEAD and 304 send no body, whatever their Content-Length says.
        "bytes": int(reply["headers"].get("Content-Length", 0)) if reply["body"] else 0,
        "milliseconds": round(seconds * 1000, 1),
        "cached": status == 304,
        "store_requests": cost.requests if cost else 0,
        "store_bytes": cost.bytes if cost else 0,
    }


def _arguments(call: Call) -> dict[str, str]:
    """Return the arguments of the call, unchecked."""
    try:
        pairs = call.pairs()
    except FormError:
        return {}
    given = dict(reversed(pairs))  # of a repeated argument, the first value
    return {name: given[name][:_LONGEST] for name in _ARGUMENTS if name in given}


class DeadlineError(Exception):
    """The deadline passed before there was an answer."""


class Stopped(SystemExit):
    """Ends a thread silently, after its answer is no longer awaited."""


def answer_within(seconds: float | None, work: Callable[[], T]) -> T:
    """Return or raise the outcome of `work` within `seconds` (None: no limit).

    The work runs in the caller's context (contextvars). Raises Late after `seconds`.
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
            _stop(self.thread)
            raise DeadlineError
        raise self._failure

    def _run(self) -> None:
        try:
            self._found.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._failure = error


def _stop(thread: threading.Thread) -> None:
    """Raise Stopped in a thread before its next Python step; other calls finish first."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Stopped)
    )
