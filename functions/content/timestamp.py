"""Timestamps of capture indexes: dates in 14 digits, UTC."""

from datetime import UTC, datetime

_FORM = "%Y%m%d%H%M%S"


def to_instant(stamp: int) -> datetime:
    """Return the instant of a timestamp; an invalid time, such as a leap second, is the day's last.

    If the day is also invalid, this is the earliest datetime.
    """
    day, time = f"{stamp:014}"[:8], f"{stamp:014}"[8:]
    for text in (day + time, f"{day}235959"):
        try:
            return datetime.strptime(text, _FORM).replace(tzinfo=UTC)
        except ValueError:
            continue
    return datetime.min.replace(tzinfo=UTC)


def of(instant: datetime) -> int:
    """Return the timestamp of an aware datetime; fractions of a second are dropped."""
    return int(instant.astimezone(UTC).strftime(_FORM).rjust(14, "0"))
