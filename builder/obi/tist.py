"""Parsing of tists in options: seconds since 1970, a day or an instant, in UTC."""

import re

from builder.errors import UsageError
from functions.snapshot import instant

_SECONDS = re.compile(r"[0-9]{9,11}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
FIRST, LAST = "00:00:00", "23:59:59"
"""The seconds of a day that a day can stand for."""


def parse_option(text: str, option: str, second: str) -> int:
    """Return the time in an option; a day stands for its `second`. Raises UsageError."""
    if _SECONDS.fullmatch(text):
        return int(text)
    try:
        moment = instant.from_text(f"{text}T{second}Z" if _DAY.fullmatch(text) else text)
    except ValueError:
        raise UsageError(
            f"{option} {text}: expected a date such as 2025-01-05, an instant such as "
            "2025-01-05T12:00:00Z, or seconds since 1970"
        ) from None
    return int(moment.timestamp())
