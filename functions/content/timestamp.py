"""Stamps: dates in 14 digits, as indexes of captures write them; UTC."""

from datetime import UTC, datetime

_FORM = "%Y%m%d%H%M%S"


def to_instant(stamp: int) -> datetime:
    """Return the instant of a stamp; of a time that no clock has, as a leap second, the day's last.

    Of one that has no day either it is the first instant that there is.
    """
    day, time = f"{stamp:014}"[:8], f"{stamp:014}"[8:]
    for text in (day + time, f"{day}235959"):
        try:
            return datetime.strptime(text, _FORM).replace(tzinfo=UTC)
        except ValueError:
            continue
    return datetime.min.replace(tzinfo=UTC)


def of(instant: datetime) -> int:
    """Return the stamp of an instant, which has a zone; fractions of a second are dropped."""
    return int(instant.astimezone(UTC).strftime(_FORM).rjust(14, "0"))
