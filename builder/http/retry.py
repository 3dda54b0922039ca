"""Waits: what servers say of times, in headers."""

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

_EPOCH = 1_000_000_000
"""What is less is a number of seconds, and no time of day."""


def moment(text: str | None) -> int | None:
    """Return an HTTP date in seconds since 1970, None where it is none."""
    try:
        found = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def seconds(retry_after: str | None, now: float) -> float | None:
    """Return the seconds of a Retry-After, which are some, or a date; None where it is neither."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    found = moment(text)
    return None if found is None else max(0.0, found - now)


def asked(headers: Mapping[str, str], status: int, now: float) -> float | None:
    """Return for how many seconds a server that refused asks to be left alone, None if it does not.

    Some tell by X-RateLimit-Reset when there is leave again, in seconds from now or since 1970.
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
    """Tell whether a server says that no request is left of those that it allows for a time.

    Some refuse with 403 then, as if it were for good.
    """
    return headers.get("x-ratelimit-remaining", "").strip() == "0"
