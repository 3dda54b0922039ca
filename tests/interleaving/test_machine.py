"""No harvester misses a change, whatever happens: random runs of everything at once.

HYPOTHESIS_PROFILE=long runs many more of them.
"""

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from builder.publish.selection import Selection
from builder.snapshot import set_listings
from functions.snapshot import instant, layout
from functions.snapshot.errors import StoreUnavailable
from functions.snapshot.store import Writer
from tests.interleaving.change import AnyChange, Expiration, Publication, Restoration, Withdrawal
from tests.interleaving.harvester import Harvester
from tests.interleaving.hours import SKEW
from tests.interleaving.item import COLLECTIONS, COUNT, DIGESTS, MIMES, NAMES, SETS, Given
from tests.interleaving.operation import STOPS, Operation
from tests.interleaving.reader import Reader
from tests.interleaving.stores import Maker, buckets, folder
from tests.interleaving.world import World
from tests.protocol import machine_runs

_OPERATIONS = 3  # that may be going on at once

skews = st.sampled_from([0.0, SKEW, -SKEW]) | st.floats(-SKEW, SKEW)
stops = st.sampled_from(STOPS)
ends = stops | st.just("end")
moves = st.sampled_from([None, None, None, "sleep", "outage"]) | stops
counts = st.integers(1, 4)
few = st.integers(0, 5)
pauses = st.sampled_from([0.0, 0.3, 1.0, 2.0, 3.5, 9.0])
givens = st.builds(
    Given,
    st.integers(0, COUNT - 1),
    st.integers(0, 2),
    st.sampled_from(MIMES),
    st.lists(st.sampled_from(COLLECTIONS), max_size=2, unique=True).map(tuple),
)
batches = st.lists(givens, min_size=1, max_size=COUNT, unique_by=lambda one: one.number)
selections = st.one_of(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True).map(
        lambda names: Selection(identifiers=tuple(names))
    ),
    st.sampled_from(SETS).map(lambda spec: Selection(set=spec)),
    st.tuples(st.sampled_from(DIGESTS), st.none() | st.sampled_from(SETS)).map(
        lambda pair: Selection(digest=pair[0], set=pair[1])
    ),
)
changes: st.SearchStrategy[AnyChange] = st.one_of(
    st.just(Publication()),
    st.just(Publication()),
    st.builds(Withdrawal, selections),
    st.builds(Withdrawal, selections, st.just(True)),
    st.builds(Restoration, selections),
    st.builds(
        Expiration,
        st.integers(1, 3),
        st.sampled_from([0, 60, 86400]).map(lambda s: timedelta(seconds=s)),
    ),
)


class Machine(RuleBasedStateMachine):
    """What publishers, operators, readers, harvesters and time do, in any order."""

    def __init__(self, maker: Maker, tally: Counter[str]) -> None:
        super().__init__()
        self.world = World(maker, tally)
        self.tally = tally
        self.harvesters: list[Harvester] = []
        self.limit = 1

    @initialize(
        readers=st.lists(st.tuples(skews, st.sampled_from([0, 2, 10])), min_size=3, max_size=3),
        limit=st.integers(1, 7),
        harvesters=st.lists(
            st.tuples(
                st.sampled_from(["ListRecords", "ListIdentifiers"]),
                st.none() | st.sampled_from(SETS),
            ),
            min_size=3,
            max_size=3,
        ),
        first=st.lists(st.sampled_from(MIMES), min_size=COUNT - 4, max_size=COUNT),
    )
    def begin_all(self, readers, limit, harvesters, first):
        self.limit = limit
        for skew, keep in readers:
            self.world.add_reader(skew, keep, limit)
        self.harvesters = [Harvester(verb, spec) for verb, spec in harvesters]
        self.tally["examples"] += 1
        self.world.ingest([Given(number, mime=mime) for number, mime in enumerate(first)])
        self.world.finish(self.world.begin(Publication(), 0))

    @invariant()
    def counted(self):
        self.tally["steps"] += 1

    @precondition(lambda self: len(self.world.operations) < _OPERATIONS)
    @rule(change=changes, batch=st.just([]) | batches, skew=skews, stop=ends, count=counts)
    def operate(self, change, batch, skew, stop, count):
        """Begin an operation, after an ingest or not; it goes to its end, or stops before."""
        if batch:
            self.world.ingest(batch)
        self._go_on(self.world.begin(change, skew), stop, count)

    @rule(batches=st.lists(batches, min_size=1, max_size=3), skew=skews)
    def publish(self, batches, skew):
        """Publish several times in a row: a loop of small ones is what forces compaction."""
        for batch in batches:
            self.world.ingest(batch)
            self._go_on(self.world.begin(Publication(), skew), "end", 1)

    @precondition(lambda self: self.world.operations)
    @rule(which=few, stop=ends | st.just("death"), count=counts)
    def go_on(self, which, stop, count):
        self._go_on(self._operation(which), stop, count)

    @rule(seconds=st.sampled_from([0.2, 0.7, 1.0, 1.6, 2.0, 3.0, 4.5, 20.0, 61.0, 130.0, 90_000.0]))
    def wait(self, seconds):
        self.world.wait(seconds)

    @rule(
        which=few,
        give_up=st.sampled_from([False, False, False, True]),
        readers=st.lists(few, min_size=1, max_size=4),
        pages=st.integers(1, 12),
        start=few,
        until=st.sampled_from([None, None, None, 0, 1, 2]),
        script=st.lists(st.tuples(pauses, few, moves), max_size=6),
    )
    def harvest(self, which, give_up, readers, pages, start, until, script):
        """Begin a list, or go on with the one that is open, for some pages.

        Who gives a list up forgets what came of it, and goes on from an earlier date.
        """
        harvester = self.harvesters[which % len(self.harvesters)]
        if give_up:
            harvester.walk = None
        if harvester.walk is None:
            end = None
            if until is not None:
                numbers = sorted(self.world.chronicle.snapshots)
                snapshot = self.world.chronicle.snapshots[numbers[until % len(numbers)]]
                end = instant.to_text(snapshot.effective)
            harvester.begin(start, end, self.limit)
        for number in range(pages):
            reader = readers[number % len(readers)]
            if not self._page(harvester, reader, script) or harvester.walk is None:
                break
            if script:
                with suppress(StoreUnavailable):  # nobody asks it just now
                    self._meanwhile(*script.pop(0))

    @rule(reader=few, name=st.sampled_from(NAMES))
    def look(self, reader, name):
        """Ask for a record, for the sets, and for the last page of each open list again."""
        self._reader(reader).get(self.world.chronicle, name)
        self._reader(reader).sets(self.world.chronicle)
        for number, harvester in enumerate(self.harvesters):
            if harvester.walk is not None:
                harvester.walk.again(self.world.chronicle, self._reader(reader + number))

    def teardown(self):
        try:
            if self.harvesters:
                self._end()
        finally:
            self.world.close()

    def _end(self) -> None:
        self.world.settle()
        for number, harvester in enumerate(self.harvesters):
            # The dangerous date is the latest: what it misses is asked for by nobody again.
            for start in (number + 1, 1):
                if harvester.walk is None:
                    harvester.begin(start, None, self.limit)
                self._walk(harvester, number)
            if harvester.walk is None:
                harvester.begin(1, None, self.limit)
                self._walk(harvester, number)
            harvester.check(self.world.chronicle.snapshots[self.world.chronicle.newest].rows)
        self.world.clean()

    def _walk(self, harvester: Harvester, reader: int) -> None:
        while harvester.walk is not None:
            assert self._page(harvester, reader, [])
            reader += 1

    def _page(self, harvester: Harvester, reader: int, script: list) -> bool:
        """Get a page; tell whether there was an answer."""
        assert harvester.walk is not None

        def meanwhile() -> None:
            if script:
                self._meanwhile(*script.pop(0))

        self.tally["pages"] += 1
        found = harvester.walk.go_on(self.world.chronicle, self._reader(reader), meanwhile)
        if harvester.walk.over:
            harvester.ended()
        return found

    def _go_on(self, operation: Operation, stop: str, count: int) -> None:
        if stop == "end":
            self.world.finish(operation)
        elif stop == "death":
            self.world.die(operation)
        else:
            self.world.advance(operation, stop, count)

    def _meanwhile(self, pause: float, which: int, stop: str | None) -> None:
        """Let an operation go on, or begin, and time pass, between two calls of somebody else."""
        if stop == "outage":
            raise StoreUnavailable("the store does not answer")
        if stop is not None:
            if not self.world.operations:
                self.world.ingest([Given(which, version=len(self.world.chronicle.runs) % 3)])
                self.world.begin(Publication(), 0)
            self.world.advance(self._operation(which), stop)
        self.world.wait(pause)

    def _operation(self, which: int) -> Operation:
        return self.world.operations[which % len(self.world.operations)]

    def _reader(self, which: int) -> Reader:
        return self.world.readers[which % len(self.world.readers)]


BUDGET = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "ordinary"))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small row groups and files, so that a few items fill many, and sets have copies."""
    monkeypatch.setattr(layout, "GROUP_ROWS", 4)
    monkeypatch.setattr(layout, "FILE_GROUPS", 2)
    monkeypatch.setattr(layout, "LEAF_FILES", 2)
    monkeypatch.setattr(set_listings, "SPREAD", 0.25)
    monkeypatch.setattr(set_listings, "_SLACK", 0)


def proven(maker: Maker, budget: settings) -> None:
    """Run the machine, and print what it did."""
    tally: Counter[str] = Counter()
    try:
        run_state_machine_as_test(lambda: Machine(maker, tally), settings=budget)
    finally:
        print("\n".join(f"{count:9,} {what}" for what, count in sorted(tally.items())))


def test_no_harvester_misses_a_change_in_a_folder() -> None:
    proven(folder, BUDGET)


@pytest.mark.thorough
def test_no_harvester_misses_a_change_in_a_bucket(make_bucket: Callable[[], Writer]) -> None:
    fewer = settings(BUDGET, max_examples=max(2, BUDGET.max_examples // 10))
    proven(buckets(make_bucket), fewer)


@pytest.mark.parametrize("seeds", [(351, 366), (401, 420)], ids=["settled", "alike"])
def test_recorded_runs_that_the_checks_once_refused(seeds: tuple[int, ...]) -> None:
    """A pointer settled while another change was built, and a page that two snapshots give."""
    assert all(machine_runs.record(seeds))
