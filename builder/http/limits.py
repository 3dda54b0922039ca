"""Limits of one exchange, in time, size and rate, and the wait before it is tried again.

The wait is the client's own back-off, or what the server asks for in a header field.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Protocol

from builder.http.errors import Deferred, FetchError
from builder.text import visible

PASSING_STATUSES = frozenset({408, 421, 425, 429, 502, 503, 504})
"""Statuses of servers that may respond differently another time."""
ANNOUNCED = 4.0
"""Seconds of a wait from which on it is announced."""
_EPOCH = 1_000_000_000
"""A smaller number is a number of seconds, and not a time."""
_LOG = logging.getLogger("sheaf")


class Stop(Protocol):
    """Ends work from another thread; threading.Event is one."""

    def is_set(self) -> bool:
        """Return whether the work must end."""
        ...


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

    `stop` ends the exchange from another thread, and so does `own`.
    """

    limits: Limits
    stop: Stop
    clock: Callable[[], float] = time.monotonic
    own: Stop | None = None
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
        if self.stop.is_set() or (self.own is not None and self.own.is_set()):
            raise Deferred("ended")
        now = self.clock()
        if now >= self._end:
            raise FetchError("too-long", f"more than {max(self.limits.total, 0.01):,.7g} s")
        if now >= self._phase_end:
            raise FetchError(self._code)
        return min(self._end, self._phase_end) - now


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a request is retried, and the seconds to wait before: the first time, and at most.

    `longest` bounds the wait that a server may ask for.
    """

    retries: int = 5
    first: float = 1.0
    longest: float = 600.0
    most: float = 60.0

    def is_too_long(self, wish: float | None) -> bool:
        """Return whether a server asks for a longer wait than is allowed."""
        return wish is not None and wish > self.longest

    def wait(self, tried: int, wish: float | None = None) -> float:
        """Return the seconds to wait after `tried` attempts; `wish` is the server's wish.

        A wish may lie in the past, so the wait is never shorter than the first one.
        """
        if wish is not None:
            return min(max(wish, self.first), self.longest)
        return backoff(self.first, tried, self.most)


def announce_wait(place: str, why: str, seconds: float) -> None:
    """Tell which address is waited for, why and for how long, unless it is short."""
    if seconds >= ANNOUNCED:
        _LOG.warning(
            "%s: %s: asking again in %s s", visible(place), visible(why), f"{seconds:,.0f}"
        )


def backoff(first: float, failures: int, most: float) -> float:
    """Return the wait after this many failures in a row: each is twice the one before."""
    return min(first * 2.0 ** min(failures - 1, 20), most)


def parse_http_date(text: str | None) -> int | None:
    """Return an HTTP date in seconds since 1970; None for an invalid one."""
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def parse_retry_after(retry_after: str | None, now: float) -> float | None:
    """Return the seconds of a Retry-After (RFC 9110, 10.2.3); None for an invalid one."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    moment = parse_http_date(text)
    return None if moment is None else max(0.0, moment - now)


def find_wish(headers: Mapping[str, str], status: int, now: float) -> float | None:
    """Return the seconds that a refusing server asks to wait; None if it does not ask.

    Some servers send X-RateLimit-Reset, in seconds from now or since 1970.
    """
    # A date is by the server's own clock, which its Date header tells.
    theirs = parse_http_date(headers.get("date"))
    seconds = parse_retry_after(headers.get("retry-after"), now if theirs is None else theirs)
    if seconds is not None or not (status == 429 or (status == 403 and is_used_up(headers))):
        return seconds
    reset = headers.get("x-ratelimit-reset", "").strip().partition(".")[0]
    if not (reset.isascii() and reset.isdigit()):
        return None
    value = float(reset[:15])
    if value >= _EPOCH * 100:  # some count milliseconds
        value /= 1000
    return max(0.0, value - now) if value >= _EPOCH else value


def is_used_up(headers: Mapping[str, str]) -> bool:
    """Return whether a server says that its rate limit is used up.

    Some servers refuse with 403 then, as if it were permanent.
    """
    return headers.get("x-ratelimit-remaining", "").strip() == "0"
