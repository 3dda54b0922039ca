"""What a child process does to a store until it is killed."""

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from builder.ingest.ingest import IngestOptions, ingest
from builder.ingest.plan import IngestJob
from builder.ingest.splits import ArchiveFile
from builder.ingest.workdir import folder_of, open_workdir
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.snapshot.expiry import expire
from builder.snapshot.transaction import NothingSelectedError
from builder.sources.rules import DocumentRules
from builder.store.folder import FolderStore
from builder.withdraw.purge import complete_purges
from builder.withdraw.reinstate import reinstate
from builder.withdraw.selection import Selection
from builder.withdraw.withdraw import withdraw
from functions.config import configuration
from functions.snapshot import layout
from tests.builder.conftest import NAMESPACE, Clock, capture

SETTINGS = configuration.parse(
    # Objects of stores in different folders are compared, and tables name the folder.
    f'[repository]\nnamespace = "{NAMESPACE}"\n[publish]\ntables = false\n',
    {},
)
IDENTITY = "0123456789abcdef" * 2
DERIVED = ("publish", "withdraw", "purge", "reinstate")
PAPER = f"oai:{NAMESPACE}:RePEc:aaa:wpaper:1"
WITHDRAWN = f"oai:{NAMESPACE}:{capture(3).identity}"

Command = Callable[[FolderStore, Runtime], object]


def _withdraw(store: FolderStore, runtime: Runtime, *, purge: bool) -> object:
    selection = Selection(identifiers=(WITHDRAWN,))
    return withdraw(store, SETTINGS, runtime, selection, "asked for", purge=purge)


def _restore(store: FolderStore, runtime: Runtime) -> object:
    try:
        return reinstate(store, SETTINGS, runtime, Selection(identifiers=(WITHDRAWN,)))
    except NothingSelectedError:
        return None  # it is restored already, which a person is told


def _ingest(store: FolderStore, runtime: Runtime) -> object:
    """Each time as a run of another name, as two runs of the command are."""
    archive = store.root.parent / "archive.warc.gz"
    taken = len({key.split("/")[1] for key in store.keys("intake/")})
    order = IngestJob((ArchiveFile.of(archive),), (), DocumentRules())
    asked = order.fingerprint([str(archive)], str(store.root))
    with open_workdir(folder_of(store.root / layout.TEMPORARY, asked)) as held:
        return ingest(store, order, held, IngestOptions(_Unseen()), f"run-{taken}")


class _Unseen:
    """Nobody sees how an ingest goes."""

    def resume(self, read: int, captures: int, files: int) -> None:
        pass

    def advance(self, read: int, captures: int, files: int) -> None:
        pass


def _derive(store: FolderStore, runtime: Runtime, command: str) -> object:
    """Carry out a command with log, tables, dumps and records of templates, as the program does."""
    settings = configuration.parse(
        f'[repository]\nnamespace = "{NAMESPACE}"\n[publish]\ndumps = ["oai_dc"]\n'
        f'[sign]\nkey = "{store.root.parent / "sheaf.key"}"\n',
        {},
    )
    selection = Selection(identifiers=(PAPER, WITHDRAWN))
    if command == "publish":
        publish(store, settings, runtime)
        return complete_purges(store, settings, runtime)
    if command == "reinstate":
        return reinstate(store, settings, runtime, selection)
    return withdraw(store, settings, runtime, selection, "asked for", purge=command == "purge")


COMMANDS: dict[str, Command] = {
    "publish": lambda store, runtime: publish(store, SETTINGS, runtime),
    "withdraw": lambda store, runtime: _withdraw(store, runtime, purge=False),
    "purge": lambda store, runtime: _withdraw(store, runtime, purge=True),
    "restore": _restore,
    "expire": lambda store, runtime: expire(store, runtime),
    "ingest": _ingest,
    **{f"derived {name}": partial(_derive, command=name) for name in DERIVED},
}


@dataclass
class Killer:
    """Kills this process at its nth change of a folder, which is about to be made.

    Changes are what other processes can see: a file takes its place, or goes; with `every`, also
    that a temporary file is made or removed. A wait counts as well: nothing may be lost in it.
    """

    folder: str
    at: int
    every: bool
    changes: list[str] = field(default_factory=list)
    """What was changed, in order: written or removed, and where."""

    @property
    def count(self) -> int:
        return len(self.changes)

    def watch(self) -> None:
        """Begin. It lasts as long as the process."""
        sys.addaudithook(self._audit)

    def step(self, change: str) -> None:
        """Count one more change."""
        self.changes.append(change)
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in ("os.rename", "os.link"):
            path = _path(arguments[1])
        elif event == "os.remove" or (event == "open" and _makes(arguments[2])):
            path = _path(arguments[0])
            if f"{os.sep}.tmp{os.sep}" in path and not self.every:
                return
        else:
            return
        if path.startswith(self.folder) and not path.endswith(f"{os.sep}.lock"):
            self.step(f"{event} {path[len(self.folder) + 1 :]}")


def _path(argument: Any) -> str:
    return "" if isinstance(argument, int) else os.fsdecode(argument)


def _makes(flags: object) -> bool:
    return isinstance(flags, int) and bool(flags & os.O_CREAT)


def work(name: str, root: Path, start: Clock, at: int, counted: Path, every: bool) -> None:
    """Carry out a command over the store, to be killed at change `at`, if there are as many.

    Else `counted` is given the changes, a line for each.
    """
    killer = Killer(str(root), at, every)

    def sleep(seconds: float) -> None:
        killer.step("sleep")
        start.sleep(seconds)

    runtime = Runtime(start, sleep, lambda text: None, {}, 1, identity=lambda: IDENTITY)
    with tempfile.TemporaryDirectory() as scratch:
        tempfile.tempdir = scratch
        killer.watch()
        COMMANDS[name](FolderStore(root), runtime)
    counted.write_text("\n".join(killer.changes))
