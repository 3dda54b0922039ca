"""When to try again: the back-off, and the wishes of servers in header fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

PASSING = frozenset({408, 421, 425, 429, 502, 503, 504})
"""Statuses of servers that may respond differently another time."""
_EPOCH = 1_000_000_000
"""A smaller number is a number of seconds, and not a time."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a request is retried, and the seconds to wait before: the first time, and at most.

    `longest` bounds the wait that a server may ask for.
    """

    retries: int = 5
    first: float = 1.0
    longest: float = 600.0
    most: float = 60.0

    def wait(self, tried: int, asked: float | None = None) -> float:
        """Return the seconds to wait after `tried` attempts; `asked` is the server's wish.

        A wish may lie in the past, so the wait is never shorter than the first one.
        """
        if asked is not None:
            return min(max(asked, self.first), self.longest)
        return backoff(self.first, tried, self.most)


def backoff(first: float, failures: int, most: float) -> float:
    """Return the wait after this many failures in a row: each is twice the one before."""
    return min(first * 2.0 ** min(failures - 1, 20), most)


def moment(text: str | None) -> int | None:
    """Return an HTTP date in seconds since 1970; None for an invalid one."""
    try:
        found = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def seconds(retry_after: str | None, now: float) -> float | None:
    """Return the seconds of a Retry-After (RFC 9110, 10.2.3); None for an invalid one."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    found = moment(text)
    return None if found is None else max(0.0, found - now)


def wish(headers: Mapping[str, str], status: int, now: float) -> float | None:
    """Return the seconds that a refusing server asks to wait; None if it does not ask.

    Some servers send X-RateLimit-Reset, in seconds from now or since 1970.
    """
    found = seconds(headers.get("retry-after"), now)
    if found is not None or not (status == 429 or (status == 403 and is_used_up(headers))):
        return found
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
