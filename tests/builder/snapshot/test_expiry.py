"""Expiring: what goes, what stays, and what a publish or another expiry beside it may rely on."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.snapshot import expiry as module
from builder.snapshot import orphans
from builder.snapshot.commit import settle
from builder.snapshot.expiry import ORPHAN_AGE, Expired, complete, expire, retire, snapshots
from builder.store.folder import FolderStore
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, MissingObject
from functions.snapshot.pointer import Expiry, Pointer
from functions.store.catalog import Catalogue
from tests.builder.conftest import Clock, World, capture
from tests.builder.interrupted import Interrupted
from tests.builder.publish.test_hazards import Killed, urls
from tests.builder.publish.test_store_copy import looked_through
from tests.extent import ALL, EVERY

pytestmark = pytest.mark.shared(3)

DAY = timedelta(days=1)
Publisher = Callable[[World, int], None]


@pytest.fixture(scope="module")
def daily(tmp_path_factory: pytest.TempPathFactory) -> list[World]:
    """Give stores of none to five publishes, a day apart, which nobody is to change."""
    world = World(tmp_path_factory.mktemp("daily") / "store")
    found = []
    for number in range(6):
        copy = World(world.root.with_name(f"{number}") / "store", Clock(world.clock.now), number)
        if number:
            shutil.copytree(world.root, copy.root)
        found.append(copy)
        world.add([capture(number)])
        world.clock.sleep(DAY.total_seconds())
    world.close()
    return found


@pytest.fixture
def published(daily: list[World]) -> Publisher:
    """Give what makes an empty world one that was published so many times, a day apart.

    The newest has been in effect for a day.
    """

    def copied(world: World, count: int) -> None:
        shutil.copytree(daily[count].root, world.root)
        world.clock.now, world.runs = daily[count].clock.now, count

    return copied


def pointer(world: World) -> Pointer:
    return Catalogue(world.store).pointer()


def sound(world: World) -> bool:
    return looked_through(world, world.store).findings == ()


def aged(world: World, age: timedelta, prefix: str = "") -> None:
    """Let every object be as old as that by the world's clock."""
    when = (world.clock.now - age).timestamp()
    for key in world.store.keys(prefix):
        os.utime(world.root / key, (when, when))


class Watched(FolderStore):
    """A store that calls back before each removal and each change of the pointer."""

    def __init__(self, root: Path, then: Callable[[str], None]) -> None:
        super().__init__(root)
        self.then = then

    def remove(self, *keys: str) -> None:
        for key in keys:
            self.then(key)
            super().remove(key)

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        self.then(key)
        return super().replace(key, data, tag)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("keep", "older", "kept"),
    [
        (1, timedelta(0), [5]),
        (3, timedelta(0), [3, 4, 5]),
        (9, timedelta(0), [1, 2, 3, 4, 5]),
        (1, timedelta(days=2, hours=1), [3, 4, 5]),
        (4, timedelta(days=2, hours=1), [2, 3, 4, 5]),
        (1, timedelta(days=90), [1, 2, 3, 4, 5]),
    ],
)
def test_what_is_kept(
    world: World, published: Publisher, keep: int, older: timedelta, kept: list[int]
) -> None:
    """Publishes are a day apart: the second snapshot was followed by the third three days ago."""
    published(world, 5)
    done = world.expire(keep, older)
    assert list(done.kept) == snapshots(world.store) == kept
    assert list(done.retired) == [n for n in range(1, 6) if n not in kept]
    assert all(pointer(world).is_retired(n) == (n not in kept) for n in range(1, 6))
    assert urls(world) == {str(n) for n in range(5)}
    assert sound(world)
    assert world.expire(keep, older).retired == ()


def test_what_the_pointer_names_stays(world: World) -> None:
    """For a minute a reader whose clock is behind may use the one before."""
    assert world.expire() == Expired((), (), 0)
    for number in range(3):
        world.add([capture(number)])
    assert world.expire().retired == ()
    assert retire(world.store, world.runtime(), {1, 2}).retired == ()
    world.clock.sleep(61)
    assert world.expire().retired == (1, 2)


def test_only_what_no_kept_snapshot_names_is_removed(world: World, published: Publisher) -> None:
    published(world, 4)
    before = set(world.store.keys(""))
    catalogue = Catalogue(world.store)
    needed = {
        f.key
        for t in (3, 4)
        for m in [catalogue.manifest(t)]
        for table in m.tables
        for f in catalogue.files(m, table)
    }
    done = world.expire(keep=2)
    gone = before - set(world.store.keys(""))
    assert len(gone) == done.objects + 4  # with each snapshot go its views.sql and its mark
    assert not gone & needed
    assert {layout.manifest_key(1), layout.views_key(2)} <= gone


def test_orphans_go_when_they_are_a_day_old(world: World, published: Publisher) -> None:
    published(world, 2)
    orphans = {
        f"records/records/{'0' * 32}.parquet",
        f"snapshots/leaves/{'1' * 32}.json",
        "snapshots/7/views.sql",
        "snapshots/7/manifest.json",
        "intake/cut-off/captures-000000.parquet",
    }
    for key in orphans:
        world.store.create(key, b"{}")
    aged(world, ORPHAN_AGE - timedelta(minutes=1))
    assert world.expire(keep=9).objects == 0
    world.ingest([capture(50)])
    aged(world, ORPHAN_AGE)
    before = set(world.store.keys(""))
    assert world.expire(keep=9).objects == len(orphans)
    assert before - set(world.store.keys("")) == orphans
    world.publish()  # the finished run of intake was left alone
    assert urls(world) == {"0", "1", "50"}
    assert sound(world)


def test_an_intake_that_is_being_written_or_waits_is_left(
    world: World, published: Publisher
) -> None:
    """One file of it is young; one that is planned may wait for two weeks."""
    published(world, 1)
    slow = [f"intake/slow/{name}.parquet" for name in ("captures-000000", "faults-000000")]
    planned = [f"intake/planned/{name}.json" for name in ("plan", "part-000000")]
    for key in (*slow, *planned):
        world.store.create(key, b"{}")
    for days, gone in ((3, 0), (13, 0), (15, 2)):
        aged(world, days * DAY)
        os.utime(world.root / slow[1], (world.clock.now.timestamp(),) * 2)
        assert world.expire(keep=9).objects == gone
    assert [*world.store.keys("intake/")] == slow


def test_an_expiry_may_end_anywhere_and_is_completed(world: World, published: Publisher) -> None:
    """By another expiry or by a publish, once its lease has ended.

    Every second or ninth removal or write is tried (see tests.extent).
    """
    published(world, 3)
    start = world.clock.now
    for at in range(1, 100, 1 if EVERY else 2 if ALL else 9):
        other = World(world.root.parent / f"at-{at}" / "store", Clock(start))
        shutil.copytree(world.root, other.root)
        left = [at]

        def die(key: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

        try:
            expire(Watched(other.root, die), other.runtime())
        except Killed:
            assert urls(other) == {"0", "1", "2"}
        else:
            assert at > 10
            break
        finally:
            other.close()
        begun = pointer(other).expiry is not None
        if at % 3:
            other.expire()
        else:
            other.add([capture(9)])
        # Where it had begun, its lease was waited for.
        assert (other.clock.now - start > timedelta(seconds=100)) == begun
        assert pointer(other).expiry is None
        if begun or at % 3:
            assert [n for n in snapshots(other.store) if n < 3] == []
        assert sound(other)


def test_a_lease_is_prolonged_and_taken_over(
    world: World, published: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each removal takes forty seconds; then one takes so long that another completes it."""
    monkeypatch.setattr(module, "_BATCH", 1)
    published(world, 4)
    leases = set()

    def slow(key: str) -> None:
        found = pointer(world).expiry
        if key != layout.POINTER:
            assert found is not None
            assert found.until > world.clock.now
            leases.add(found.until)
            world.clock.sleep(40)

    expire(Watched(world.root, slow), world.runtime(), keep=3)
    assert len(leases) > 2
    taken: list[Pointer] = []

    def slower(key: str) -> None:
        if key != layout.POINTER and not taken:
            world.clock.sleep(300)
            taken.append(complete(world.store, world.runtime())[0])

    expire(Watched(world.root, slower), world.runtime(), keep=2)
    assert taken[0].expiry is None
    assert pointer(world) == taken[0]
    assert sound(world)


def test_a_store_that_is_read_for_long_keeps_its_lease(
    world: World, published: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A publish that waits must not take it over: it would read as long."""
    monkeypatch.setattr(orphans, "_AT_ONCE", 1)
    published(world, 5)
    waited: list[bool] = []

    class Slow(FolderStore):
        def read(self, key: str) -> bytes:
            held = pointer(world).expiry
            if held is not None and key != layout.POINTER:
                waited.append(held.until > world.clock.now)
                world.clock.sleep(50)
            return super().read(key)

    assert expire(Slow(world.root), world.runtime(), keep=2).retired == (1, 2, 3)
    assert len(waited) > 4
    assert all(waited)


def test_an_expiry_that_somebody_has_begun_is_waited_for(
    world: World, published: Publisher
) -> None:
    published(world, 3)
    tag = world.store.tag(layout.POINTER)
    until = world.clock.now + timedelta(seconds=50)
    begun = replace(pointer(world), expiry=Expiry((1,), until))
    world.store.replace(layout.POINTER, begun.to_json(), tag)
    said: list[str] = []
    runtime = Runtime(world.clock, world.clock.sleep, said.append, {}, 1)
    found, _ = complete(world.store, runtime)
    assert world.clock.now >= until
    assert "waiting" in said[0]
    assert len(said) == 1
    assert found.is_retired(1)
    assert snapshots(world.store) == [2, 3]


def test_a_publish_settles_the_pointer_while_an_expiry_goes_on(
    world: World, published: Publisher
) -> None:
    """Neither gives up, and nobody has to wait for a lease."""
    published(world, 3)
    tag = world.store.tag(layout.POINTER)
    unsettled = replace(pointer(world), settled=False)
    tag = world.store.replace(layout.POINTER, unsettled.to_json(), tag)
    began = world.clock.now

    def settling(key: str) -> None:
        if key != layout.POINTER and not pointer(world).settled:
            settle(world.store, unsettled, tag)

    assert expire(Watched(world.root, settling), world.runtime()).retired == (1, 2)
    assert world.clock.now - began < timedelta(seconds=10)
    assert pointer(world).settled
    assert pointer(world).expiry is None
    assert sound(world)


def test_two_expiries_at_once_are_one_after_the_other(world: World, published: Publisher) -> None:
    published(world, 4)
    others: list[Expired] = []

    def rival(key: str) -> None:
        if not others:
            others.append(Expired((), (), 0))
            others.append(world.expire(keep=2))

    done = expire(Watched(world.root, rival), world.runtime(), keep=1)
    assert others[1].retired == (1, 2)
    assert done.retired == (3,)
    assert pointer(world).retired == ((1, 3),)
    assert sound(world)


def test_a_snapshot_that_another_expiry_removes_meanwhile_is_no_damage(
    world: World, published: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(world, 4)
    listed = module.snapshots
    raced: list[int] = []

    def slow(store: FolderStore) -> list[int]:
        found = listed(store)
        if not raced:
            raced.append(1)
            world.expire(keep=2)
        return found

    monkeypatch.setattr(module, "snapshots", slow)
    assert world.expire(keep=1, older=timedelta(hours=1)).retired == (3,)


def test_a_damaged_store_is_told_before_anything_is_removed(
    world: World, published: Publisher
) -> None:
    published(world, 3)
    (leaf, *_) = Catalogue(world.store).manifest(3).tables["records"]
    kept = world.store.read(leaf.key)
    (world.root / leaf.key).unlink()
    before = set(world.store.keys(""))
    with pytest.raises(MissingObject, match=leaf.key):
        world.expire()
    assert set(world.store.keys("")) == before
    assert pointer(world).expiry is None
    (world.root / leaf.key).write_bytes(kept)
    assert world.expire().retired == (1, 2)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("at", ["views.sql", "manifest.json", layout.POINTER])
@pytest.mark.parametrize("age", [timedelta(hours=1), 2 * DAY], ids=["young", "old"])
def test_an_expiry_in_the_midst_of_a_publish(
    world: World, published: Publisher, at: str, age: timedelta
) -> None:
    """Young files stay; where a publish is slower than a day, it finds its files gone, and begins
    again. Either way the result is whole, and no snapshot is to retire: the pointer would be
    as before.
    """
    published(world, 1)
    world.ingest([capture(7)])
    lost: list[str] = []

    def meddle() -> None:
        mine = {k for k in world.store.keys("") if k.startswith(("records/", "snapshots/"))}
        aged(world, age)
        before = set(world.store.keys(""))
        world.expire()
        lost.extend(before - set(world.store.keys("")))
        assert set(lost) <= mine

    said: list[str] = []
    runtime = Runtime(world.clock, world.clock.sleep, said.append, {"list": "1"}, 1)
    store = Interrupted(world.store, ("create", "replace"), meddle, key=at)
    built = publish(store, world.configuration(), runtime)
    assert bool(lost) == (age > DAY)
    assert any("starting over" in text for text in said) == (age > DAY)
    assert built.manifest is not None
    assert urls(world) == {"0", "7"}
    assert sound(world)


def test_an_expiry_that_finds_the_store_changed_every_time_says_so(
    world: World, published: Publisher
) -> None:
    published(world, 2)
    changes: list[Pointer] = []

    def rival(key: str) -> None:
        assert key == layout.POINTER
        changes.append(replace(pointer(world), copied=world.clock.now - DAY * len(changes)))
        world.store.replace(key, changes[-1].to_json(), world.store.tag(key))

    with pytest.raises(Conflict, match="run the command again"):
        expire(Watched(world.root, rival), world.runtime())
    assert len(changes) == 8
    assert pointer(world) == changes[-1]


def test_the_age_of_an_orphan_is_that_of_its_object(world: World, published: Publisher) -> None:
    """Files of the real world's time: a clock that is years behind removes none."""
    published(world, 1)
    world.store.create(f"records/records/{'0' * 32}.parquet", b"")
    (entry,) = world.store.entries(f"records/records/{'0' * 32}")
    assert abs(entry.modified - datetime.now(UTC)) < timedelta(minutes=1)
    assert world.expire(keep=9).objects == 0
