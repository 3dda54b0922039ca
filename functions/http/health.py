"""Health: whether the store can be read now, and which snapshot is in effect.

Load balancers and monitors ask for it. The store is read for the answer, because a cached one would
say nothing of it. The answer is JSON, with 503 if harvesters cannot be served. It takes no turn of
those that `serve.concurrent` limits, so a busy server is not called a dead one.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from functions.http.http_message import UNKEPT, Reply
from functions.reading.as_of import AsOf
from functions.snapshot import instant
from functions.snapshot.errors import NothingPublished, StoreError

PATH = "/health"
_SECONDS = 5.0
"""How long the store may take to be read: a balancer asks again after ten or so."""


class HealthCheck:
    """Reads the pointer for all who ask at the same time (AsOf.begin). Thread-safe."""

    def __init__(self, present: AsOf, clock: Callable[[], datetime]) -> None:
        self._present, self._clock = present, clock

    def report(self) -> dict[str, Any]:
        """Return `status`, and of the snapshot in effect its number and its age in seconds."""
        try:
            entry = self._present.begin()[0].result(_SECONDS).entry
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
