"""Answers equal requests that are in progress at the same time by one of them.

Harvesters that begin together ask for the same pages. One of them has the page made, and the others
wait for it. They take no place of those that serve.concurrent limits.
"""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait

from functions.http import service
from functions.http.http_message import OAI_PATH, Call, HttpResponse


class SharedAnswers:
    """Answers by `answer`, which writes into the log of the service `own`. Thread-safe."""

    def __init__(self, answer: Callable[[Call], HttpResponse], own: service.Service) -> None:
        self._answer, self._service = answer, own
        self._flights: dict[Hashable, Future[HttpResponse]] = {}
        self._lock = threading.Lock()

    def __call__(self, call: Call) -> HttpResponse:
        """Answer a request, by the answer to an equal one if that is being made."""
        if call.method != "GET" or call.path != OAI_PATH:
            return self._answer(call)
        # No other header changes what the protocol answers.
        key = (call.base, call.query, *map(call.headers.get, ("accept-encoding", "if-none-match")))
        own: Future[HttpResponse] = Future()
        with self._lock:
            flight = self._flights.setdefault(key, own)
        if flight is not own:
            begun = self._service.timer()
            # A file can be read once, and what takes long may never end.
            done = wait([flight], service.PATIENCE).done
            if not done or not isinstance(flight.result().body, bytes):
                return self._answer(call)
            self._service.log(call, flight.result(), begun)
            return flight.result()
        try:
            own.set_result(self._answer(call))
        except BaseException as error:  # noqa: BLE001 - raised by `result`, here and there
            own.set_exception(error)
        with self._lock:
            del self._flights[key]
        return own.result()
