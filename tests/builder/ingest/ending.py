"""The command in a process of its own, which a signal ends in the midst of an ingest.

What is read in one go is small here, so that little makes a long ingest: a block of an index, and a
range of an archive.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from builder.ingest import splits
from builder.ingest.cdx import text

STATUS = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 143}
"""How a command ends that was ended so."""

BLOCK, _RANGE = 1 << 17, 1 << 18  # bytes


def begun(
    point: str,
    times: int,
    number: int,
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
) -> "subprocess.Popen[str]":
    """Begin a command that is sent the signal when it has come to a point so many times.

    Points are "block", the beginning of a block of an index, and "reading", the end of what
    another process reads in one go. By then no more than one further such thing has been begun,
    so that there is always something left, however late the signal comes.
    """
    return subprocess.Popen(
        [sys.executable, "-m", __name__, point, str(times), str(int(number)), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def _armed(point: str, times: int, number: int) -> None:
    from builder.ingest import pool
    from builder.ingest.cdx import block

    passed = count(1)

    def passing() -> None:
        if next(passed) == times:
            os.kill(os.getpid(), number)

    read, given = block.read, pool.map_tasks

    def reading(*arguments: Any) -> block.Result:
        passing()
        return read(*arguments)

    def giving(work: Any, tasks: Sequence[Any], *others: Any) -> Iterator[Any]:
        for one in given(work, tasks[: times + 1], *others):
            yield one
            passing()

    if point == "block":
        block.read = reading
    else:
        pool.map_tasks = giving  # type: ignore[assignment]


def main(point: str, times: str, number: str, *arguments: str) -> int:
    """Carry the command out up to where it is to end; return its exit status."""
    text.BLOCK, splits.LEAST = BLOCK, _RANGE  # before anybody takes them over
    _armed(point, int(times), int(number))
    from builder.cli import main

    return main(arguments)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
