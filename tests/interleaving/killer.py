"""The end of a process at one of its changes of a folder, as other processes would find it."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.extent import EVERY

_VISIBLE = ("os.rename", "os.link", "os.remove")
_CLEARING = ("os.mkdir", "os.rmdir")


class Killed(BaseException):
    """Stands for the end of a process."""


def die() -> None:
    raise Killed


@dataclass
class Killer:
    """Kills at the nth change of a folder, which is about to be made.

    Changes are what other processes can see: a file takes its place, or goes; with `every`, also
    that a temporary file is made or removed. A wait counts as well: nothing may be lost in it.
    With `really` the process itself is killed; else Killed is raised, by whatever it changes later
    as well, so that nothing is cleared up.
    """

    folder: str
    at: int
    every: bool = EVERY
    really: bool = False
    changes: list[str] = field(default_factory=list)
    """What was changed, in order: written or removed, and where."""
    dead: bool = False

    @property
    def count(self) -> int:
        return len(self.changes)

    def watch(self) -> None:
        """Begin. It lasts as long as the process, or up to the next killer of it."""
        if not _ARMED:
            sys.addaudithook(_audit)  # which nothing takes away again
        _ARMED[:] = [self]

    def step(self, change: str) -> None:
        """Count one more change."""
        if not self.dead:
            self.changes.append(change)
            self.dead = self.count == self.at
        if self.dead and self.really:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.dead:
            raise Killed

    def audit(self, event: str, arguments: tuple[object, ...]) -> None:
        """Look at an event of Python's."""
        if event in _VISIBLE:
            path = _path(arguments[0 if event == "os.remove" else 1])
        elif (
            event == "open" and isinstance(flags := arguments[2], int) and flags & os.O_CREAT
        ) or (self.dead and event in _CLEARING):
            path = _path(arguments[0])
        else:
            return
        if not path.startswith(self.folder) or path.endswith(f"{os.sep}.lock"):
            return
        if f"{os.sep}.tmp{os.sep}" not in path or self.every or self.dead:
            self.step(f"{event} {path[len(self.folder) + 1 :]}")


_ARMED: list[Killer] = []


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    for killer in _ARMED:
        killer.audit(event, arguments)


@contextmanager
def killing(folder: Path, at: int) -> Iterator[Killer]:
    """End the block at change `at` of a folder, if there are as many; 0: it is only watched."""
    killer = Killer(str(folder), at)
    killer.watch()
    try:
        yield killer
    except Killed:
        pass
    finally:
        _ARMED[:] = [Killer("\0", 0)]


def _path(argument: Any) -> str:
    return "" if isinstance(argument, int) else os.fsdecode(argument)
