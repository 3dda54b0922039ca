"""Instants: pointers that come late, and readings that are slow or kept, each on its own."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from tests.interleaving.change import Expiration, Publication
from tests.interleaving.harvester import Harvester
from tests.interleaving.hours import SKEW
from tests.interleaving.item import NAMES, Given
from tests.interleaving.stores import folder
from tests.interleaving.world import World

PAGE = 3
LATE = 20  # seconds
VERY_LATE = 90  # more than the pointer remembers


@pytest.fixture
def world() -> Iterator[World]:
    """A store with one snapshot, and a reader that is ahead and keeps the pointer."""
    world = World(folder, Counter())
    world.ingest([Given(number) for number in range(8)])
    world.finish(world.begin(Publication(), 0))
    world.add_reader(SKEW, 10, PAGE)
    world.wait(120)
    yield world
    world.close()


def harvest(
    world: World, harvester: Harvester, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Harvest from the latest date that was told; every page is checked on the way."""
    harvester.begin(1, None, PAGE)
    while harvester.walk is not None:
        assert harvester.walk.go_on(world.chronicle, world.readers[0], meanwhile)
        if harvester.walk.over:
            harvester.ended()


def check(world: World, harvester: Harvester) -> None:
    world.settle()
    harvest(world, harvester)
    harvester.check(world.chronicle.snapshots[world.chronicle.newest].rows)


def test_what_is_published_while_the_pointer_is_read_is_not_claimed(world: World) -> None:
    harvester = Harvester("ListRecords", None)
    calls = iter(range(99))

    def publish() -> None:
        if next(calls) == 1:  # the pointer was just read
            world.ingest([Given(3, version=1)])
            world.finish(world.begin(Publication(), 0))
            world.wait(LATE)

    harvest(world, harvester, publish)
    check(world, harvester)


def test_a_kept_reading_stays_true_of_its_instant(world: World) -> None:
    harvester = Harvester("ListRecords", None)
    harvest(world, harvester)
    world.ingest([Given(3, version=1)])
    world.finish(world.begin(Publication(), 0))
    world.wait(1)
    harvester.dates.clear()
    harvest(world, harvester)
    check(world, harvester)


def supersede_late(world: World) -> None:
    """Move the pointer more than a minute late: what it named before may go at once."""
    (late,) = world.operations
    world.finish(late)
    world.finish(world.begin(Expiration(1, timedelta(0)), 0))
    assert 1 not in world.chronicle.kept()


def begin_late(world: World) -> None:
    """Publish, and let it stand still before it moves the pointer."""
    world.ingest([Given(3, version=1)])
    world.advance(world.begin(Publication(), 0), "replace")
    world.wait(VERY_LATE)


def test_a_reading_is_kept_though_its_snapshot_went_at_once(world: World) -> None:
    harvester = Harvester("ListRecords", None)
    begin_late(world)
    harvester.begin(0, None, PAGE)
    assert harvester.walk is not None
    assert harvester.walk.go_on(world.chronicle, world.readers[0], lambda: None)
    supersede_late(world)  # within the seconds for which the reader keeps what it read
    world.readers[0].get(world.chronicle, NAMES[0])
    harvest(world, harvester)
    check(world, harvester)


def test_a_request_is_answered_though_its_snapshot_goes_meanwhile(world: World) -> None:
    harvester = Harvester("ListRecords", None)
    begin_late(world)
    calls = iter(range(99))

    def supersede() -> None:
        if next(calls) == 1:  # the pointer was just read
            supersede_late(world)

    harvest(world, harvester, supersede)
    check(world, harvester)


def test_a_change_that_takes_long_while_the_pointer_is_read_is_waited_for(world: World) -> None:
    harvester = Harvester("ListRecords", None)
    harvest(world, harvester)
    world.wait(LATE)
    harvester.dates.clear()  # the first page is not the last, which needs a new reading anyway
    harvest(world, harvester, lambda: time.sleep(0.3))  # twice a reading
    check(world, harvester)
