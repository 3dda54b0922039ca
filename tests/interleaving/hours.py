"""Hours: the true time of a run, and the clocks of those who take part, each off by its skew."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

ALLOWANCE = 5
"""Seconds of serve.clock_allowance."""
SKEW = 2.4
"""Seconds that any clock may be off: less than half the allowance."""


class Hours:
    """The true time; it moves only when told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def clock(self, skew: float) -> Callable[[], datetime]:
        """Return a clock that is `skew` seconds ahead of the true time."""
        return lambda: self.now + timedelta(seconds=skew)
