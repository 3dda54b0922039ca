"""Faults of requests to S3, drawn from the seed."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.proxy import Answer, Lost, Seen, Slow, Trickle, Truncated
from tests.proxy import Fault as ProxyFault
from tests.soak.report import Report

_RATE = 0.03
"""Share of requests that meet a fault."""
_BURST = 4
"""Requests in a row that meet it, at most."""
KINDS: dict[str, Callable[[Random], ProxyFault]] = {
    "503 SlowDown": lambda random: Answer(503, "SlowDown", "Please reduce your request rate."),
    "500 InternalError": lambda random: Answer(500, "InternalError", "We had an error."),
    "answer lost": lambda random: Lost(),
    "answer cut": lambda random: Truncated(),
    "slow answer": lambda random: Slow(random.uniform(0.2, 2.0)),
    "slow body": lambda random: Trickle(random.uniform(0.2, 2.0)),
}


@dataclass
class FaultyRequests:
    """Chooses the fault of each request; `ended` lets all later ones pass."""

    random: Random
    report: Report
    ended: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._kind, self._left = "", 0

    def __call__(self, seen: Seen) -> ProxyFault | None:
        """Return the fault of a request, or None."""
        with self._lock:
            if self.ended:
                return None
            if not self._left and self.random.random() < _RATE / _BURST * 2:
                self._kind = self.random.choice(list(KINDS))
                self._left = self.random.randint(1, _BURST)
            if not self._left:
                return None
            self._left -= 1
            self.report.add("s3", self._kind)
            return KINDS[self._kind](self.random)
