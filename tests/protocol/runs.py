"""Random runs of the real commit and expiry, small enough that thousands are recorded in minutes.

A publish of such a run adds a sequence of one position without data files. All else is real: the
transaction, the commit, the expiry, and readers that keep the pointer, with clocks of their own.
Three operations at most go on at once, stop before any write, and die anywhere.
"""

import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from builder.runtime import Runtime
from builder.snapshot.expiry import expire, retire, snapshots
from builder.snapshot.transaction import ChangeResult, Transaction, revise
from builder.store.folder import FolderStore
from functions.config.configuration import Configuration
from functions.reading.as_of import AsOf
from functions.snapshot.errors import NothingPublished
from functions.snapshot.manifest import UNSTAMPED, Sequence
from functions.snapshot.pointer import Pointer
from functions.store.catalog import Catalogue
from tests.interleaving.hours import ALLOWANCE, SKEW, Hours
from tests.interleaving.operation import STOPS, Operation
from tests.interleaving.stores import MEMORY, Dated
from tests.protocol.recorder import Recorded, Recording

_PAUSES = (0.2, 0.7, 1.0, 1.6, 2.0, 3.0, 20.0, 61.0, 130.0, 90_000.0)
_ACTIONS = 24


@dataclass(frozen=True)
class Publication:
    """Adds a sequence. Implements operation.Change and transaction.Change."""

    def work(self, store: Any, settings: Configuration, runtime: Runtime) -> Any:
        return revise(store, settings, runtime, self)

    def build(self, base: Transaction) -> ChangeResult:
        number = max((s.number for s in base.before.sequences), default=0) + 1
        place = base.before.last_position + 1
        more = Sequence(number, UNSTAMPED, place, place, {"capture": 1})
        after = replace(base.before, sequences=(*base.before.sequences, more))
        return ChangeResult(after, number, new=1)

    def clean_up(self) -> None:
        pass


@dataclass(frozen=True)
class Quiet(Publication):
    """Changes nothing: the pointer is settled, or what came late is published again."""

    def build(self, base: Transaction) -> ChangeResult:
        return ChangeResult(None, 0)


@dataclass(frozen=True)
class Expiration:
    """Retires old snapshots, or all but those that the pointer names."""

    all: bool

    def work(self, store: Any, settings: Configuration, runtime: Runtime) -> Any:
        if self.all:
            return retire(store, runtime, snapshots(store))
        return expire(store, runtime, 1, timedelta(0))


class Watched(Catalogue):
    """A catalogue that tells when the pointer was read."""

    look: Callable[[], None] = staticmethod(lambda: None)

    def pointer(self) -> Pointer:
        found = super().pointer()
        self.look()
        return found


class Reader:
    """A reader that keeps the pointer, and records what it reads."""

    def __init__(self, number: int, run: "Run", skew: float, keep: int) -> None:
        catalogue = Watched(run.store)
        self._number, self._recording = number, run.recording
        self._clock, self._keep = run.hours.clock(skew), timedelta(seconds=keep)
        self._present = AsOf(catalogue, self._clock, keep, ALLOWANCE)  # type: ignore[arg-type]
        catalogue.look = lambda: run.recording.look(number, self._clock())

    def read(self, *, fresh: bool) -> None:
        with suppress(NothingPublished):
            found = self._present.reading(fresh=fresh)
            keep = timedelta(0) if fresh else self._keep
            self._recording.reading(self._number, self._clock(), found, keep)


class Run:
    """One run in a store of its own."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._random = random.Random(seed)
        self.hours = Hours()
        self.recording = Recording(self.hours)
        self.store = Recorded(
            Dated(FolderStore(folder), self.hours), self.recording, self.hours.clock(0)
        )
        self._operations: list[Operation] = []
        self._readers = [
            Reader(number, self, skew, keep)
            for number, (skew, keep) in enumerate(((-SKEW, 2), (0.0, 0), (SKEW, 10)), 1)
        ]

    def go(self) -> None:
        """Do random things until the run is over."""
        self._begin(Publication())
        for _ in range(_ACTIONS):
            what = self._random.randrange(10)
            if what < 2 and len(self._operations) < 3:
                kinds = (Publication(), Publication(), Quiet(), Expiration(False), Expiration(True))
                self._begin(self._random.choice(kinds))
            elif what < 7 and self._operations:
                self._go_on(self._random.choice(self._operations))
            elif what < 9:
                self._wait(self._random.choice(_PAUSES))
            else:
                self._random.choice(self._readers).read(fresh=self._random.random() < 0.3)
        for operation in self._operations:
            operation.die()

    def _begin(self, change: Any) -> None:
        skew = self._random.choice((-SKEW, 0.0, SKEW))
        self._operations.append(
            Operation(change, self.store, self.hours, skew, lambda *_: None)  # type: ignore[arg-type]
        )

    def _go_on(self, operation: Operation) -> None:
        self.store.clock = operation.clock
        if self._random.random() < 0.08:
            operation.die()
        else:
            stop = self._random.choice((*STOPS, "end"))
            operation.advance(stop, self._random.randint(1, 2))
        self._operations = [o for o in self._operations if not o.over]

    def _wait(self, seconds: float) -> None:
        self.hours.now += timedelta(seconds=seconds)
        for operation in self._operations:
            if operation.overdue():
                operation.die()
        self._operations = [o for o in self._operations if not o.over]


def record(seed: int) -> list[dict[str, Any]]:
    """Return the events of the run of a seed."""
    place = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="sheaf-run-", dir=place) as folder:
        run = Run(seed, Path(folder) / "store")
        run.go()
        return run.recording.events
