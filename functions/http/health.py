"""Health: whether the store can be read now, and which snapshot is in effect.

Load balancers and monitors ask for it. The store is read for the answer, because a cached one would
say nothing of it. The answer is JSON, with 503 if harvesters cannot be served. It takes no turn of
those that `serve.concurrent` limits, so a busy server is not called a dead one.
"""

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

from functions.http.http_message import UNKEPT, Reply
from functions.reading.as_of import AsOf, PointerReading
from functions.snapshot import instant
from functions.snapshot.errors import NothingPublished, StoreError

PATH = "/health"
_SECONDS = 5.0
"""How long the store may take to be read: a balancer asks again after ten or so."""


class HealthCheck:
    """Reads the pointer for all who ask at the same time. Thread-safe.

    A store that hangs has one thread waiting for it, however often health is asked for.
    """

    def __init__(self, present: AsOf, clock: Callable[[], datetime]) -> None:
        self._present, self._clock = present, clock
        self._lock = threading.Lock()
        self._flight: Future[PointerReading] | None = None

    def report(self) -> dict[str, Any]:
        """Return `status`, and of the snapshot in effect its number and its age in seconds."""
        try:
            entry = self._begin().result(_SECONDS).entry
        except NothingPublished:
            return {"status": "nothing is published"}
        except (StoreError, TimeoutError):
            return {"status": "the store cannot be read"}
        age = self._clock().astimezone(UTC) - entry.effective
        return {
            "status": "ok",
            "snapshot": entry.snapshot,
            "effective": instant.to_text(entry.effective),
            "age_seconds": int(age.total_seconds()),
        }

    def answer(self) -> Reply:
        """Return the report as JSON."""
        report = self.report()
        status = 200 if "snapshot" in report else 503
        body = json.dumps(report).encode() + b"\n"
        return Reply(status, "application/json", body, {"Cache-Control": UNKEPT})

    def _begin(self) -> Future[PointerReading]:
        """Return the reading in progress, a new one if there is none."""
        with self._lock:
            if self._flight is None or self._flight.done():
                self._flight = Future()
                arguments = (self._flight,)
                threading.Thread(target=self._read, args=arguments, daemon=True).start()
            return self._flight

    def _read(self, flight: Future[PointerReading]) -> None:
        try:
            flight.set_result(self._present.reading(fresh=True))
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            flight.set_exception(error)
