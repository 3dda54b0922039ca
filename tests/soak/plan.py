"""Plan of a soak test: what each actor does, step by step, and which faults meet it.

A plan depends on the seed and the actor's name alone. How far an actor comes depends on time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from tests.soak.items import Archive, Item, template

SKEW = 1.0
"""Seconds by which a clock may be wrong. Any two then differ by less than half of
`serve.clock_allowance`, which is the bound that docs/operations/operate.md states."""
_KILLS, _LIMITS = 0.3, 0.15
_SMALLEST, _LARGEST = 512, 60_000  # bytes of a file on a full disk


@dataclass(frozen=True)
class Fault:
    """What meets the first attempt of a step.

    `kill` is the moment of SIGKILL as a part of the time that this command usually takes; `limit`
    is the size in bytes that no file may exceed. `skew` is how many seconds its clock is ahead.
    """

    kill: float | None = None
    limit: int | None = None
    skew: float = 0.0


@dataclass(frozen=True)
class Step:
    """One command. After success the items are as in `items`; `archive` and `papers` are sources.

    `arguments` are those behind the command's name, except sources. A step that `goes_on` has made
    its items so only after the next one.
    """

    command: str
    fault: Fault
    arguments: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    archive: Archive | None = None
    papers: dict[int, Item] | None = None
    goes_on: bool = False


def draw_fault(random: Random) -> Fault:
    """Draw the fault of a step."""
    kill = random.uniform(0.05, 1.0) if random.random() < _KILLS else None
    limit = random.randint(_SMALLEST, _LARGEST) if random.random() < _LIMITS else None
    return Fault(kill, limit, round(random.uniform(-SKEW, SKEW), 3))


def generator(seed: int, actor: str) -> Random:
    """Return the actor's own source of random numbers."""
    return Random(f"{seed}-{actor}")


@dataclass
class WriterPlan:
    """Steps of a writer without end. Each relies on the success of those before."""

    seed: int
    name: str
    captures: dict[str, tuple[Item, Archive]] = field(default_factory=dict)
    """Each captured item and the archive that has it, by identifier."""
    papers: dict[int, Item] = field(default_factory=dict)
    """All papers that ever were, by number."""

    def __post_init__(self) -> None:
        self._random = generator(self.seed, self.name)
        self._archives: list[Archive] = []
        self._pending = False
        self._published: set[int] = set()

    @property
    def code(self) -> str:
        """Return the code of the writer's RePEc archive: three letters."""
        return f"aa{chr(ord('a') + int(self.name[-1]))}"

    def steps(self) -> Iterator[Step]:
        """Yield one step after another. The first ones are of every kind, for short tests."""
        yield self._add()
        yield self._write_papers()
        yield self._publish()
        yield from self._do(self._withdraw)
        yield from self._do(self._reinstate)
        kinds = [self._add, self._collect, self._write_papers, self._withdraw, self._reinstate]
        while True:
            yield from self._do(self._random.choice(kinds))

    def _do(self, kind: Callable[[], Step | None]) -> Iterator[Step]:
        """Yield a step of that kind, if there is one now, and the publishes around it."""
        if kind in (self._withdraw, self._reinstate) and self._pending:
            yield self._publish()
        step = kind()
        if step is None:
            return
        if step.command == "reinstate" and (again := self._ingest_again(step)):
            yield replace(step, goes_on=True)
            yield again
        else:
            yield step
        if self._pending and self._random.random() < 0.6:
            yield self._publish()

    def _step(self, command: str, *arguments: str, **more: object) -> Step:
        self._pending = command == "ingest" or (self._pending and command != "publish")
        return Step(command, draw_fault(self._random), arguments, **more)  # type: ignore[arg-type]

    def _publish(self) -> Step:
        self._published |= self.papers.keys()
        return self._step("publish")

    def _add(self) -> Step:
        archive = Archive(self.name, len(self._archives), self._random.randint(1, 5))
        self._archives.append(archive)
        items = tuple(archive.items())
        self.captures.update({item.identifier: (item, archive) for item in items})
        return self._step("ingest", items=items, archive=archive)

    def _collect(self) -> Step | None:
        """Ingest an archive again as part of a collection, which changes its items."""
        archive = self._random.choice(self._archives)
        items = [item for item, within in self.captures.values() if within == archive]
        if any(item.deleted for item in items):
            return None
        spec = f"shelf{self._random.randint(0, 9)}"
        changed = tuple(replace(i, collections=i.collections | {spec}) for i in items)
        self._remember(changed, archive)
        return self._step("ingest", "--again", "--collection", spec, items=changed, archive=archive)

    def _write_papers(self) -> Step:
        """Add, change, remove and bring back papers, but none that is withdrawn."""
        changed: list[Item] = []
        before = list(self.papers.items())
        for _ in range(self._random.randint(1, 3)):
            number = len(self.papers)
            self.papers[number] = template(self.code, number, 0)
            changed.append(self.papers[number])
        for number, old in before:
            if not old.withdrawn and self._random.random() < 0.25:
                version = int(old.title.rpartition(" ")[2]) + 1
                new = template(self.code, number, version)
                # What was never published leaves no record behind when it is removed.
                # More than ten lost at once would be held until they are confirmed.
                gone = number % 4 == 0 and number in self._published
                gone = gone and not old.removed and len(changed) < 8
                self.papers[number] = replace(old, removed=True) if gone else new
                changed.append(self.papers[number])
        there = {number: item for number, item in self.papers.items() if not item.removed}
        return self._step("ingest", items=tuple(changed), papers=there)

    def _withdraw(self) -> Step | None:
        found = self._choose(withdrawn=False)
        if found is None:
            return None
        item = replace(found, withdrawn=True)
        self._remember((item,))
        return self._step(
            "withdraw", "--identifier", item.identifier, "--reason", "soak test", items=(item,)
        )

    def _reinstate(self) -> Step | None:
        found = self._choose(withdrawn=True)
        if found is None:
            return None
        item = replace(found, withdrawn=False)
        self._remember((item,))
        return self._step("reinstate", "--identifier", item.identifier, items=(item,))

    def _ingest_again(self, step: Step) -> Step | None:
        """Bring back what no kept snapshot has any more, as the documentation asks."""
        (item,) = step.items
        if item.identifier not in self.captures:
            return None
        archive = self.captures[item.identifier][1]
        return self._step("ingest", "--again", items=(item,), archive=archive)

    def _choose(self, *, withdrawn: bool) -> Item | None:
        captures = [item for item, _ in self.captures.values()]
        among = [
            item
            for item in (*captures, *self.papers.values())
            if item.withdrawn == withdrawn and not item.removed
        ]
        return self._random.choice(among) if among else None

    def _remember(self, items: tuple[Item, ...], archive: Archive | None = None) -> None:
        for item in items:
            if item.identifier in self.captures:
                within = archive or self.captures[item.identifier][1]
                self.captures[item.identifier] = item, within
            else:
                number = int(item.identifier.rpartition(":")[2])
                self.papers[number] = item
