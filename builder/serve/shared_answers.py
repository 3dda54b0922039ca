"""Answers equal requests that are in progress at the same time by one of them.

Harvesters that begin together ask for the same pages. One of them has the page made, and the others
wait for it. They take no place of those that serve.concurrent limits. A page that may change is
made once more for those that came while it was made.
"""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from functools import partial

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
        begun, own = self._service.timer(), Future[HttpResponse]()
        for began_later in (False, True):
            with self._lock:
                flight = self._flights.setdefault(key, own)
            if flight is own:
                break
            # A file can be read once, and what takes long may never end.
            left = service.PATIENCE - (self._service.timer() - begun)
            if not wait([flight], left).done or not isinstance(flight.result().body, bytes):
                return self._answer(call)
            # What may change was read after the request came (functions.reading.as_of, rule 4).
            if began_later or "immutable" in flight.result().headers.get("Cache-Control", ""):
                self._service.log(call, flight.result(), begun)
                return flight.result()
        try:
            finish = partial(own.set_result, self._answer(call))
        except BaseException as error:  # noqa: BLE001 - raised by `result`, here and there
            finish = partial(own.set_exception, error)
        with self._lock:
            del self._flights[key]
        finish()
        return own.result()
