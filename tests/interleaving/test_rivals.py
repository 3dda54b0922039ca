"""Rivals: operations that meet at one moment that matters, each a case that once went wrong."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest

from builder.publish.selection import Selection
from tests.interleaving.change import AnyChange, Expiration, Publication, Withdrawal
from tests.interleaving.item import NAMES, Given
from tests.interleaving.stores import folder
from tests.interleaving.world import World

DAYS = 2 * 86400
EXPIRATION = Expiration(1, timedelta(0))


@pytest.fixture
def world() -> Iterator[World]:
    """A store with one snapshot."""
    world = World(folder, Counter())
    world.ingest([Given(number) for number in range(8)])
    world.finish(world.begin(Publication(), 0))
    world.wait(120)
    yield world
    world.close()


def expired_before_it_moves_the_pointer(world: World, seconds: float) -> None:
    """Publish, and let an expiry come so long after the publish stopped there."""
    still = world.begin(Publication(), 0)
    world.advance(still, "replace")
    world.wait(seconds)
    world.finish(world.begin(EXPIRATION, 0))
    world.finish(still)
    world.chronicle.whole()


def test_an_expiry_does_not_take_what_a_publish_found_there_of_one_that_died(world: World) -> None:
    """The pointer is the same before the expiry and after it: no snapshot was retired."""
    world.ingest([Given(3, version=1)])
    died = world.begin(Publication(), 0)
    world.advance(died, "replace")
    world.die(died)
    world.wait(DAYS)
    expired_before_it_moves_the_pointer(world, 0)
    assert world.chronicle.newest > 1


def test_a_publish_that_stood_still_for_days_does_not_name_what_an_expiry_removed(
    world: World,
) -> None:
    world.ingest([Given(3, version=1)])
    expired_before_it_moves_the_pointer(world, DAYS)
    assert world.chronicle.newest > 1


def test_a_publish_that_stood_still_and_has_but_a_manifest_of_its_own_does_not_either(
    world: World,
) -> None:
    """What came too late for its instant gets another, with the data files that there are."""
    world.ingest([Given(3, version=1)])
    late = world.begin(Publication(), 0)
    world.advance(late, "replaced")
    world.die(late)
    world.wait(60)
    expired_before_it_moves_the_pointer(world, DAYS)
    assert world.chronicle.pointer.settled
    assert world.chronicle.newest > 2


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stop", ["put", "create"])
@pytest.mark.parametrize(
    "change", [Publication(), Withdrawal(Selection(identifiers=NAMES[:2]))], ids=["more", "fewer"]
)
def test_what_was_built_on_a_snapshot_that_is_gone_starts_over(
    world: World, change: AnyChange, stop: str
) -> None:
    """A rival publishes, and an expiry removes what the change was reading."""
    world.ingest([Given(number, version=1) for number in range(8)])
    slow = world.begin(change, 0)
    world.advance(slow, stop)
    world.ingest([Given(number, version=2) for number in range(8)])
    world.finish(world.begin(Publication(), 0))
    world.wait(120)
    world.finish(world.begin(EXPIRATION, 0))
    world.finish(slow)
    assert slow.refusal is None
    world.chronicle.whole()
