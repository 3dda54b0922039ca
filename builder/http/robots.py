"""Rules of robots.txt (RFC 9309), kept for each origin. The only file that imports protego."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from protego import Protego

from builder.http.errors import FetchError

LARGEST = 512_000
"""Bytes of a robots.txt that are read; the rest is ignored."""
_KEPT = 86_400.0
_KEPT_FAILURE = 1_800.0


@dataclass(frozen=True, slots=True)
class RobotRules:
    """The rules of one robots.txt."""

    parsed: Protego

    def allow(self, url: str, agent: str) -> bool:
        """Return whether the agent, by its product's name, may request the URL."""
        return self.parsed.can_fetch(url, agent)

    def delay(self, agent: str) -> float:
        """Return the seconds to leave between two requests; 0 if no delay is demanded."""
        return self.parsed.crawl_delay(agent) or 0.0


def parse(status: int, body: bytes) -> RobotRules:
    """Return the rules of a response. Raises FetchError if the server failed: nothing is allowed.

    A status of 4xx other than 429 means that there is no such file, and allows everything.
    """
    if status == 200:
        return RobotRules(Protego.parse(body[:LARGEST].decode("utf-8", "replace").lstrip("\ufeff")))
    if status == 429 or status >= 500:
        raise FetchError("robots-unreachable", f"HTTP status {status}", status)
    return RobotRules(Protego.parse(""))


@dataclass(slots=True)
class _Known:
    lock: threading.Lock = field(default_factory=threading.Lock)
    until: float = 0.0
    rules: RobotRules | None = None
    failure: FetchError | None = None


@dataclass(slots=True)
class Robots:
    """The rules of each origin (scheme, host, port), kept for a day. Safe to use from threads."""

    clock: Callable[[], float] = time.monotonic
    _known: dict[str, _Known] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def rules(self, origin: str, read: Callable[[], RobotRules]) -> RobotRules:
        """Return the rules of an origin, from `read` if they are not known. Raises FetchError.

        A failure of the server is remembered for half an hour.
        """
        with self._lock:
            known = self._known.setdefault(origin, _Known())
        with known.lock:
            if known.until > self.clock():
                if known.failure is not None:
                    raise known.failure.copy()
                assert known.rules is not None
                return known.rules
            known.rules = known.failure = None
            try:
                known.rules = read()
            except FetchError as failure:
                if failure.code == "robots-unreachable":
                    known.failure, known.until = failure.copy(), self.clock() + _KEPT_FAILURE
                raise
            known.until = self.clock() + _KEPT
            return known.rules
