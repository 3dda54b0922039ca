"""A pointer that was written too late, or of which nobody knows whether it was in time."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from builder.publish.publish import publish
from builder.publish.reinstate import reinstate
from builder.publish.selection import Selection
from builder.publish.withdraw import withdraw
from builder.snapshot.transaction import NothingSelectedError
from builder.store.folder import FolderStore
from functions.snapshot import instant, layout
from functions.snapshot.pointer import Pointer
from functions.store.catalog import Catalogue
from tests.builder.beginning import begin
from tests.builder.conftest import World, capture
from tests.builder.publish.test_hazards import Killed, urls
from tests.builder.snapshot.test_expiry import aged
from tests.functions.oai.client import Client

pytestmark = pytest.mark.shared(2)


class Slow(FolderStore):
    """A store that calls back after each write of the pointer, with how many there were."""

    def __init__(self, root: Path, then: Callable[[int], None]) -> None:
        super().__init__(root)
        self.then = then
        self.writes = 0

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        found = super().replace(key, data, tag)
        if key == layout.POINTER:
            self.writes += 1
            self.then(self.writes)
        return found


def pointer(world: World) -> Pointer:
    return Catalogue(world.store).pointer()


def stamps(world: World) -> dict[str, datetime]:
    """Return each item's datestamp, by the end of its URL."""
    records = world.listed()
    return {r.fields["url"].rpartition("/")[2]: r.datestamp for r in records if not r.deleted}


def left(world: World, seconds: float) -> datetime:
    """Publish item 2 behind item 1, and end so long after the pointer was written.

    Returns the instant of its end: until then a reader may have answered without item 2.
    """

    def fill(world: World) -> None:
        world.ingest([capture(1)])
        world.publish()
        world.clock.sleep(100)
        world.ingest([capture(2)])

        def die(writes: int) -> None:
            world.clock.sleep(seconds)
            raise Killed

        with pytest.raises(Killed):
            publish(Slow(world.root, die), world.configuration(), world.runtime())

    begin(world, ("late", seconds), fill)
    assert not pointer(world).settled
    return world.clock.now


def nothing(world: World) -> None:
    """Publish where there is nothing new: what was ingested is published already."""
    world.publish()


def more(world: World) -> None:
    world.ingest([capture(3)])
    world.publish()


def without_intake(world: World) -> None:
    for key in list(world.store.keys(layout.INTAKE)):
        world.store.remove(key)
    assert world.publish().manifest is not None


def taking_down(world: World) -> None:
    withdraw(
        world.store,
        world.configuration(),
        world.runtime(),
        Selection(url_prefix="http://h1.example.cz/"),
        "why",
    )


def restoring_nothing(world: World) -> None:
    with pytest.raises(NothingSelectedError):
        reinstate(
            world.store,
            world.configuration(),
            world.runtime(),
            Selection(url_prefix="http://h1.example.cz/"),
        )


CHANGES = [nothing, more, without_intake, taking_down, restoring_nothing]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("change", CHANGES)
def test_whoever_comes_next_stamps_a_late_pointer_s_items_anew(
    world: World, change: Callable[[World], None]
) -> None:
    ended = left(world, seconds=30)
    before = stamps(world)
    change(world)
    after = stamps(world)
    assert before["2"] < ended < after["2"]
    assert pointer(world).settled
    if "1" in after:
        assert after["1"] == before["1"]
    world.publish()
    assert stamps(world) == after  # once is enough


@pytest.mark.sampled(3)
@pytest.mark.parametrize("change", CHANGES)
def test_a_pointer_that_is_found_before_its_instant_was_in_time(
    world: World, change: Callable[[World], None]
) -> None:
    left(world, seconds=0.5)
    before = stamps(world)
    if change is without_intake:
        for key in list(world.store.keys(layout.INTAKE)):
            world.store.remove(key)
        assert world.publish().manifest is None
    else:
        change(world)
    assert pointer(world).settled
    assert stamps(world)["2"] == before["2"]


def test_a_pointer_that_was_in_time_but_is_found_later_is_taken_for_late(world: World) -> None:
    """Nobody can know any more."""
    ended = left(world, seconds=0.5)
    world.clock.sleep(100)
    world.publish()
    assert stamps(world)["2"] > ended + timedelta(seconds=100)
    assert pointer(world).settled


def test_an_expiry_does_not_forget_that_the_pointer_may_be_late(world: World) -> None:
    ended = left(world, seconds=100)
    assert world.expire().retired == (1,)
    assert not pointer(world).settled
    world.publish()
    assert stamps(world)["2"] > ended


def test_an_open_list_goes_on_with_what_gets_another_instant(world: World) -> None:
    """Its last page is dated after that instant, from which its harvester may ask on."""
    left(world, seconds=30)
    client = Client(world.repository(), world.clock, pages_records=1)  # type: ignore[arg-type]
    pages = client.pages(metadataPrefix="oai_dc")
    (begun,) = next(pages).headers
    world.publish()
    world.clock.sleep(60)
    rest = list(pages)
    assert [len({header for page in rest for header in page.headers} | {begun})] == [2]
    dates = [date for page in rest for date in page.text("datestamp")]
    assert instant.from_text(dates[-1]) == stamps(world)["2"]
    assert len(dates) == 2  # item 2 with its first instant, and with the one that it has now


@pytest.mark.sampled(2)
@pytest.mark.parametrize("more_", [True, False], ids=["with-more", "with-the-same"])
def test_a_rival_wins_between_the_two_writes_of_a_late_pointer(world: World, more_: bool) -> None:
    """The rival stamps the items anew; the loser finds them published and does nothing."""
    world.ingest([capture(1)])
    world.publish()
    world.ingest([capture(2)])
    late: list[datetime] = []

    def rival(writes: int) -> None:
        if writes == 1:
            world.clock.sleep(30)
            late.append(world.clock.now)
            other = World(world.root, world.clock, runs=50)
            if more_:
                other.ingest([capture(3)])
            other.publish()

    store = Slow(world.root, rival)
    publish(store, world.configuration(), world.runtime())
    assert urls(world) == ({"1", "2", "3"} if more_ else {"1", "2"})
    assert stamps(world)["2"] > late[0]
    assert pointer(world).settled
    assert len(world.newest().sequences) == (3 if more_ else 2)
    assert list(world.store.keys(layout.INTAKE)) == []
    assert [e.snapshot for e in pointer(world).entries] == sorted(
        e.snapshot for e in pointer(world).entries
    )


def test_a_publisher_that_is_late_again_and_again_takes_longer_leads(world: World) -> None:
    world.ingest([capture(1)])
    delays = iter([0.0, 3.0, 5.0, 9.0, 0.0, 0.0])
    store = Slow(world.root, lambda writes: world.clock.sleep(next(delays)))
    built = publish(store, world.configuration(), world.runtime())
    assert built.manifest is not None
    assert store.writes == 6  # the empty one, three late ones, one in time, and it is settled
    assert built.manifest.snapshot == 4
    assert built.manifest.effective <= world.clock.now
    assert stamps(world) == {"1": built.manifest.effective}


def test_a_manifest_that_an_expiry_removed_is_never_named(world: World) -> None:
    """A process sleeps for two days just before it stamps a late pointer's snapshot anew.

    It wrote no data files of its own, so its manifest is all there is to miss.
    """
    left(world, seconds=30)
    for key in list(world.store.keys(layout.INTAKE)):
        world.store.remove(key)

    class Sleeping(FolderStore):
        asleep = True

        def replace(self, key: str, data: bytes, tag: str | None) -> str:
            if self.asleep:
                self.asleep = False
                aged(world, timedelta(days=2), "snapshots/3/")
                assert world.expire(keep=9).objects == 2
            return super().replace(key, data, tag)

    publish(Sleeping(world.root), world.configuration(), world.runtime())
    assert world.newest().effective == stamps(world)["2"]  # it is there
    assert pointer(world).settled
    assert urls(world) == {"1", "2"}
