"""Limits of one exchange: time, size and minimum rate."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from builder.http.errors import Deferred, FetchError


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one exchange, in seconds, bytes, and bytes a second.

    `first_byte` bounds the wait for the head of the response, and then each pause between bytes.
    `rate` is measured over periods of `first_byte` seconds, so a late slowdown is noticed.
    """

    connect: float = 10
    first_byte: float = 60
    total: float = math.inf
    rate: float = 500
    bytes: int = 1 << 62


@dataclass(slots=True)
class Budget:
    """The remaining time and size of one exchange. The time starts at construction.

    `stop` ends the exchange from another thread.
    """

    limits: Limits
    stop: threading.Event
    clock: Callable[[], float] = time.monotonic
    dialled: bool = field(init=False, default=False)
    """True if the exchange opened a connection of its own."""
    _end: float = field(init=False)
    _phase_end: float = field(init=False)
    _code: str = field(init=False, default="connect-timeout")
    _last: float | None = field(init=False, default=None)
    _received: int = field(init=False, default=0)
    _period: tuple[float, int] = field(init=False, default=(0.0, 0))

    def __post_init__(self) -> None:
        now = self.clock()
        self._end = now + self.limits.total
        self._phase_end = now + self.limits.connect

    def dial(self) -> None:
        """Start the time for connecting."""
        self.dialled = True
        self._code = "connect-timeout"
        self._phase_end = self.clock() + self.limits.connect

    def send(self) -> None:
        """Start the time for the request and the wait for the response."""
        self._code = "no-answer"
        self._phase_end = self.clock() + self.limits.first_byte

    def begin_body(self) -> None:
        """Start the body: the head of the response is complete."""
        self._last = self.clock()
        self._code = "too-slow"
        self._phase_end = self._last + self.limits.first_byte
        self._period = self._last, 0

    def count(self, many: int) -> None:
        """Count received bytes of the body. Raises FetchError if they are too many, or too slow."""
        self._received += many
        if self._received > self.limits.bytes:
            raise FetchError("too-large", f"more than {self.limits.bytes:,} bytes")
        now = self.clock()
        since, came = now - self._period[0], self._received - self._period[1]
        if self._last is not None and since > self.limits.first_byte:
            if came < self.limits.rate * since:
                raise FetchError("too-slow", f"{came:,} bytes in {since:,.0f} s")
            self._period = now, self._received
        self._last = now
        self._phase_end = now + self.limits.first_byte
        self.remaining()

    def resume(self) -> None:
        """Wait for the server again; the time since `count` was the caller's."""
        now = self.clock()
        if self._last is not None:
            self._period = self._period[0] + now - self._last, self._period[1]
        self._phase_end = now + self.limits.first_byte

    def remaining(self) -> float:
        """Return the seconds that the next step may take. Raises FetchError, Deferred."""
        if self.stop.is_set():
            raise Deferred("ended")
        now = self.clock()
        if now >= self._end:
            raise FetchError("too-long", f"more than {self.limits.total:g} s")
        if now >= self._phase_end:
            raise FetchError(self._code)
        return min(self._end, self._phase_end) - now
