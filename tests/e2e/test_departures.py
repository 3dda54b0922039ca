"""What leaves a set is told to those who harvest it: the store against the repository in memory."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.publish.reinstate import reinstate
from builder.publish.selection import Selection as Chosen
from builder.publish.withdraw import withdraw
from builder.snapshot import set_listings
from builder.snapshot.expiry import retire
from functions.reading.repository import RecordSelection, Repository
from functions.snapshot import layout, oai_name
from functions.snapshot.manifest import Manifest, Span
from tests.builder.conftest import NAMESPACE, World, capture
from tests.extent import examples
from tests.functions.reading.memory import Item, MemoryRepository

COUNT = 12
SOME = (0, 2, 3, 5, COUNT - 1)
"""Items that are asked for one by one; what all of them are, lists tell."""

SETS = ("d:a:www", "d:a:m", "d:b", "m:x", "m:y", "m:y:z")
Kinds = tuple[str, str]
"""An item's set of each of the two hierarchies."""


@pytest.fixture(autouse=True, params=[0, 4], ids=["copied", "in-place"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "GROUP_ROWS", 4)
    monkeypatch.setattr(layout, "FILE_GROUPS", 2)
    monkeypatch.setattr(layout, "LEAF_FILES", 2)
    monkeypatch.setattr(set_listings, "SPREAD", request.param)
    monkeypatch.setattr(set_listings, "_SLACK", request.param // 2)


def name(number: int) -> str:
    return oai_name.to_oai(NAMESPACE, capture(number).identity)


@dataclass
class Both:
    """A store and a repository in memory, to which the same happens."""

    world: World
    memory: MemoryRepository = field(default_factory=lambda: MemoryRepository(NAMESPACE))
    items: dict[int, Kinds] = field(default_factory=dict)
    withdrawn: set[int] = field(default_factory=set)

    def publish(self, batch: dict[int, Kinds]) -> None:
        self.world.clock.sleep(120)
        self.world.add([capture(n, sets=kinds) for n, kinds in batch.items()])
        there = {n: kinds for n, kinds in batch.items() if n not in self.withdrawn}
        self.items.update(there)
        self._remember({name(n): Item(kinds) for n, kinds in there.items()})

    def withdraw(self, *numbers: int) -> None:
        numbers = tuple(n for n in numbers if n in self.items and n not in self.withdrawn)
        if numbers:
            self.world.clock.sleep(120)
            chosen = Chosen(identifiers=tuple(map(name, numbers)))
            store, settings_ = self.world.store, self.world.configuration()
            withdraw(store, settings_, self.world.runtime(), chosen, "asked for")
            self.withdrawn.update(numbers)
            self._remember({name(n): None for n in numbers})

    def reinstate(self, *numbers: int) -> None:
        """Restore what was withdrawn; `items` says what comes back."""
        numbers = tuple(n for n in numbers if n in self.withdrawn)
        if numbers:
            self.world.clock.sleep(120)
            chosen = Chosen(identifiers=tuple(map(name, numbers)))
            reinstate(self.world.store, self.world.configuration(), self.world.runtime(), chosen)
            self.withdrawn.difference_update(numbers)
            self._remember({name(n): Item(self.items[n]) for n in numbers})

    def _remember(self, changes: dict[str, Item | None]) -> None:
        self.memory.publish(changes, self.world.clock.now)

    def alike(self) -> None:
        """Check that both give the same answers."""
        repository, found = self.world.repository(), self.newest()
        told = self.memory.manifest(max(self.memory.snapshots))
        assert len(found.sequences) == len(told.sequences)
        assert (found.sets, found.emptied) == (told.sets, told.emptied)
        assert described(repository, found) == described(self.memory, told)

    def newest(self) -> Manifest:
        repository = self.world.repository()
        newest = repository.pointer().newest()
        assert newest is not None
        return repository.manifest(newest.snapshot)


def described(repository: Repository, manifest: Manifest) -> list[object]:
    """Return all that a repository says of its sets and items, but for positions and instants."""
    span = Span(1, manifest.last_position)
    rows = repository.sets(manifest, "", 1000)
    specs = [row.spec for row in rows]
    said: list[object] = [[(row.spec, row.records, row.live) for row in rows]]
    said.append(repository.births(manifest, (*specs, "no:such")))
    last = len(manifest.sequences) + 1
    for sequence in sorted({*range(0, last, 2), last}):
        for live in (True, False):
            some = repository.sets(manifest, "", 1000, sequence, live=live)
            said.append([row.spec for row in some])
    for spec in (None, *specs):
        selection = RecordSelection(("capture",), span, spec)
        records = repository.page(manifest, selection, 1000, headers=False)
        size = repository.size(manifest, selection)
        assert size == len(records)
        assert all(bool(record.fields) <= (not record.deleted) for record in records)
        said.append((spec, sorted((r.identifier, r.deleted, r.sets) for r in records)))
    for number in SOME:
        record = repository.record(manifest, name(number))
        said.append(record and (record.deleted, record.sets))
    return said


@contextmanager
def both() -> Iterator[Both]:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "store")
        yield Both(world)
        world.close()


kinds = st.tuples(st.sampled_from(SETS[:3]), st.sampled_from(SETS[3:]))
numbers = st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=4, unique=True)
steps = st.one_of(
    st.tuples(st.just("publish"), st.dictionaries(st.integers(0, COUNT - 1), kinds, min_size=1)),
    st.tuples(st.sampled_from(["withdraw", "restore"]), numbers),
)


@pytest.mark.sampled(2)
@settings(
    max_examples=examples(3),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.dictionaries(st.integers(0, COUNT - 1), kinds, min_size=6), st.lists(steps, max_size=7))
def test_the_store_does_what_the_repository_in_memory_does(
    first: dict[int, Kinds], history: Sequence[tuple[str, object]]
) -> None:
    with both() as some:
        some.publish(first)
        for what, whom in history:
            if isinstance(whom, dict):
                some.publish(whom)
            else:
                getattr(some, what)(*whom)  # type: ignore[misc]
        some.alike()


@pytest.mark.sampled(2)
def test_what_left_is_told_through_all_that_happens_to_a_store() -> None:
    """Publishes that merge runs, a withdrawal, a restoration, and sets that are re-entered."""
    with both() as some:
        some.publish(dict.fromkeys(range(COUNT), ("d:a:www", "m:x")))
        some.publish({0: ("d:a:m", "m:x"), 1: ("d:b", "m:x")})
        some.alike()
        some.withdraw(0, 2)
        some.alike()
        some.reinstate(0)
        for number in range(COUNT // 2):
            some.publish({number: ("d:b", "m:y:z")})
        some.alike()
        assert len({leaf.span for leaf in some.newest().tables["records"]}) < 5  # of 10 publishes
        some.publish(dict.fromkeys(range(COUNT), ("d:a:www", "m:y")))
        some.world.clock.sleep(120)
        some.world.expire(keep=1)
        some.publish({5: ("d:a:www", "m:x")})
        some.alike()


@pytest.mark.sampled(2)
def test_what_comes_back_of_an_older_snapshot_has_left_what_it_was_in_since() -> None:
    with both() as some:
        some.publish(dict.fromkeys(range(COUNT), ("d:a:www", "m:x")))
        some.publish({3: ("d:b", "m:y")})
        some.withdraw(3)
        some.world.clock.sleep(120)
        assert retire(some.world.store, some.world.runtime(), {2}).retired == (2,)
        some.items[3] = ("d:a:www", "m:x")
        some.reinstate(3)
        some.alike()
