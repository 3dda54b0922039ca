"""A clock for the commands that tests run within their own process: nothing is waited for."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from builder.store.context import Context, from_environment


@dataclass
class Clock:
    """Goes as the real one does, and whoever sleeps by it moves it on instead of waiting."""

    ahead: timedelta

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    @contextmanager
    def real(self) -> Iterator[None]:
        """Go by the real time meanwhile, as other processes do that publish."""
        before, self.ahead = self.ahead, timedelta()
        yield
        self.ahead = before

    def sleep(self, seconds: float) -> None:
        self.ahead += timedelta(seconds=seconds)


CLOCK = Clock(-timedelta(hours=1))
"""The clock of this process: an hour behind, so that what is published by it is in effect at once
for other processes, which go by the real one."""


def make_context(arguments: argparse.Namespace) -> Context:
    """Return a command's context with this process's environment and clock."""
    return Context(arguments, from_environment(arguments).environment, CLOCK.now, CLOCK.sleep)
