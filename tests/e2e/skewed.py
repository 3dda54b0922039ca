"""`sheaf` as a process of its own whose clock is wrong.

python -m tests.e2e.skewed CLOCK ARGUMENT... - CLOCK is a file with the seconds by which the clock
is ahead, which may change while the process runs. SOAK_REMEMBERED=SECONDS lets snapshots be retired
sooner after they were superseded.
"""

import argparse
import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from builder.commands.cli import main
from builder.store.context import Context, from_environment
from functions.snapshot import pointer


@dataclass(frozen=True)
class SkewedClock:
    """A clock that reads from a file how far it is ahead; workers of a server take it along."""

    path: str

    def __call__(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=float(Path(self.path).read_text()))


def make_context(clock: SkewedClock, arguments: argparse.Namespace) -> Context:
    """Return the context of a command that goes by the clock."""
    return Context(arguments, from_environment(arguments).environment, clock)


if __name__ == "__main__":
    pointer.REMEMBERED = timedelta(seconds=float(os.environ["SOAK_REMEMBERED"]))
    raise SystemExit(main(sys.argv[2:], partial(make_context, SkewedClock(sys.argv[1]))))
