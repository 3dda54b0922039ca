"""A process that carries out commands in processes of their own, which can be killed.

Each is forked when it is asked for, of this process that has imported everything: so a hundred of
them take seconds. What it prints are their numbers, and how each ended.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[4]


@dataclass
class Forker:
    """Begins commands; one at a time."""

    process: "subprocess.Popen[str]"
    pid: int = 0

    def begin(self, *arguments: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(a) for a in arguments]) + "\n")
        self.process.stdin.flush()
        self.pid = int(self.process.stdout.readline())

    def kill(self) -> None:
        """Kill what is at work; what was reaped as it was asked for is gone by itself."""
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def ended(self) -> int:
        """Return the exit code once it has ended, negative for the signal that ended it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        self.pid = 0  # it is somebody else's from now on
        return code


@contextmanager
def forker() -> Iterator[Forker]:
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            yield Forker(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def serve() -> None:
    """Read commands, and print the number of each; a line of nothing waits for the last one."""
    from builder.commands import cli
    from builder.commands.make import harvest
    from builder.http import connections

    assert cli.main
    assert harvest.run
    connections.tls_context()  # what each would read anew
    pid = 0
    for line in sys.stdin:
        if line.strip():
            pid = os.fork()
            if pid == 0:
                from builder.commands.cli import main

                os.setsid()
                quiet = os.open(os.devnull, os.O_RDWR)
                for handle in (0, 1, 2):
                    os.dup2(quiet, handle)
                os._exit(main(json.loads(line)))
            print(pid, flush=True)
        else:
            _, status = os.waitpid(pid, 0)
            print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
