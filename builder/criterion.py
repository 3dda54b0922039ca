"""Criteria by which an operator describes captures: what was typed becomes what the columns have.

Each function raises ValueError, saying what is wrong or was expected, for what no column can have.
"""

import re
from datetime import datetime

_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})"
    r"(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]{1,9})?)?(Z?))?)?)?"
)


def date(text: str) -> str:
    """Return a date or time of the calendar, W3CDTF in UTC, as exact as wanted."""
    match = _DATE.fullmatch(text)
    if not match:
        raise ValueError("expected a date such as 2007, 2007-11 or 2007-11-05T12:00:00Z")
    *fields, zone = match.groups()
    if zone == "":
        raise ValueError(f"a time is in UTC and ends with Z: expected {text}Z")
    numbers = [int(field) for field in fields if field]
    try:
        datetime(*(numbers + [1, 1][len(numbers) - 1 :]))  # type: ignore[arg-type]
    except ValueError:
        raise ValueError("no calendar has this date, or no day this time") from None
    return text


def is_reversed(start: str, end: str) -> bool:
    """Tell whether a range ends before it begins, as far as the less exact date says."""
    first, last = start.rstrip("Z"), end.rstrip("Z")
    return first[: len(last)] > last[: len(first)]
