"""Random runs of the machine of tests/interleaving, hundreds of which are recorded in a minute.

All is real here: publishes, withdrawals, reinstatements and expiries with their data files, and
readers with their pages. What a publish costs is spared where nothing is lost by it: some runs at a
time begin with copies of one store, each with what happened to it.
"""

import random
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from builder.publish.selection import Selection
from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreUnavailable
from tests.interleaving.change import AnyChange, Expiration, Publication, Restoration, Withdrawal
from tests.interleaving.harvester import Harvester
from tests.interleaving.hours import SKEW
from tests.interleaving.item import COUNT, MIMES, NAMES, Given
from tests.interleaving.operation import STOPS
from tests.interleaving.stores import copied, folder
from tests.interleaving.world import World

_PAUSES = (0.2, 0.7, 1.0, 1.6, 2.0, 3.0, 9.0, 20.0, 61.0, 130.0, 90_000.0)
_ACTIONS = 20
_CHANGES = 2  # of a run that write data files
_SHARE = 25  # runs that begin with copies of one store


class MachineRun:
    """One run: operations, readers and a harvester in a world."""

    def __init__(self, chance: random.Random, world: World) -> None:
        self.world = world
        self._chance = chance
        self._left = _CHANGES
        limit = chance.randint(2, 5)
        for skew in (-SKEW, 0.0, SKEW):
            world.add_reader(skew, chance.choice((0, 2, 10)), limit)
        self._limit = limit
        self._harvester = Harvester(chance.choice(("ListRecords", "ListIdentifiers")), None)

    def begin_store(self) -> None:
        """Publish, withdraw and publish again."""
        numbers = self._chance.sample(range(COUNT), 10)
        self.world.ingest([Given(number) for number in numbers])
        self.world.finish(self.world.begin(Publication(), 0))
        chosen = Selection(identifiers=tuple(NAMES[number] for number in numbers[:3]))
        self.world.finish(self.world.begin(Withdrawal(chosen), self._skew()))
        self.world.wait(self._chance.choice(_PAUSES))
        self.world.ingest([Given(number, version=1) for number in numbers[2:5]])
        self.world.finish(self.world.begin(Publication(), self._skew()))
        self.world.wait(self._chance.choice(_PAUSES))

    def go(self) -> None:
        """Do random things until the run is over."""
        for _ in range(_ACTIONS):
            what = self._chance.randrange(20)
            if what < 4 and len(self.world.operations) < 3:
                self._begin()
            elif what < 11 and self.world.operations:
                self._go_on()
            elif what < 15:
                self.world.wait(self._chance.choice(_PAUSES))
            else:
                self._read()

    def _begin(self) -> None:
        change = self._choose()
        if isinstance(change, Publication):
            numbers = self._chance.sample(range(COUNT), self._chance.randint(1, 4))
            version = self._chance.randrange(3)
            self.world.ingest([Given(n, version, self._chance.choice(MIMES)) for n in numbers])
        operation = self.world.begin(change, self._skew())
        self.world.advance(operation, self._chance.choice((*STOPS, "end")), 1)

    def _choose(self) -> AnyChange:
        kind = self._chance.randrange(10) if self._left else 9
        self._left -= kind < 8
        state = self.world.chronicle.state()
        if kind < 3:
            return Publication()
        if kind < 6:
            names = self._chance.sample(sorted(state), 2)
            return Withdrawal(Selection(identifiers=tuple(names)), purge=kind == 5)
        if kind < 8:
            gone = sorted(name for name, item in state.items() if item.withdrawn) or [NAMES[0]]
            return Restoration(Selection(identifiers=(self._chance.choice(gone),)))
        return Expiration(self._chance.randint(1, 2), timedelta(0))

    def _go_on(self) -> None:
        operation = self._chance.choice(self.world.operations)
        if self._chance.random() < 0.08:
            self.world.die(operation)
        else:
            stop = self._chance.choice((*STOPS, "end", "end"))
            self.world.advance(operation, stop, self._chance.randint(1, 2))

    def _read(self) -> None:
        """Ask for a page of a list, while others may go on, or for a record."""
        world, reader = self.world, self._chance.choice(self.world.readers)
        if self._chance.random() < 0.3:
            reader.get(world.chronicle, self._chance.choice(NAMES))
            return
        harvester = self._harvester
        if harvester.walk is None:
            harvester.begin(self._chance.randrange(3), None, self._limit)
        assert harvester.walk is not None
        harvester.walk.go_on(world.chronicle, reader, self._meanwhile)
        if harvester.walk.over:
            harvester.ended()

    def _meanwhile(self) -> None:
        what = self._chance.random()
        if what < 0.05:
            raise StoreUnavailable("the store does not answer")
        if what < 0.3 and self.world.operations:
            self._go_on()
        elif what < 0.5:
            self.world.wait(self._chance.choice((0.3, 1.0, 3.5, 9.0)))

    def _skew(self) -> float:
        return self._chance.choice((-SKEW, 0.0, SKEW))


def record(seeds: Iterable[int]) -> list[list[dict[str, Any]]]:
    """Return the events of the runs of some seeds, which begin with one store."""
    some = list(seeds)
    base = World(folder, Counter())
    try:
        MachineRun(random.Random(some[0]), base).begin_store()
        assert isinstance(base.folder, FolderStore)
        return [_record(seed, base, base.folder) for seed in some]
    finally:
        base.close()


def _record(seed: int, base: World, store: FolderStore) -> list[dict[str, Any]]:
    world = World(copied(store.root), Counter())
    try:
        world.resume(base)
        MachineRun(random.Random(seed), world).go()
        return world.recording.events
    finally:
        world.close()


def split(seed: int, count: int) -> list[range]:
    """Return the seeds of `count` runs, in the shares that begin with one store."""
    return [range(s, min(s + _SHARE, seed + count)) for s in range(seed, seed + count, _SHARE)]
