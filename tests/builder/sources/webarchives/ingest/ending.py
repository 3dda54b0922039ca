"""The command in a process of its own, which a signal ends in the midst of an ingest.

What is read in one go is small here, so that little makes a long ingest.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from builder.sources.webarchives.ingest import splits

STATUS = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 143}
"""How a command ends that was ended so."""

_RANGE = 1 << 18  # bytes


def begun(
    times: int,
    number: int,
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
) -> "subprocess.Popen[str]":
    """Begin a command that is sent the signal when so many ranges were read.

    By then no more than one further has been begun, so that there is always something left, however
    late the signal comes.
    """
    return subprocess.Popen(
        [sys.executable, "-m", __name__, str(times), str(int(number)), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def _arm(times: int, number: int) -> None:
    from builder.intake import pool

    given, passed = pool.map_tasks, count(1)

    def giving(work: Any, tasks: Sequence[Any], *others: Any) -> Iterator[Any]:
        for one in given(work, tasks[: times + 1], *others):
            yield one
            if next(passed) == times:
                os.kill(os.getpid(), number)

    pool.map_tasks = giving  # type: ignore[assignment]


def main(times: str, number: str, *arguments: str) -> int:
    """Carry the command out up to where it is to end; return its exit status."""
    splits.LEAST = _RANGE  # before anybody takes it over
    _arm(int(times), int(number))
    from builder.commands.cli import main

    return main(arguments)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
