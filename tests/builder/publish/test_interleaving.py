"""Somebody else changes the store at the worst moment, or an old pointer was put back."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import duckdb
import pytest

from builder.publish.publish import publish
from builder.publish.selection import Selection
from builder.publish.store_copy import export
from builder.publish.withdraw import withdraw
from builder.snapshot.expiry import expire, snapshots
from builder.snapshot.recovery import rebuilt
from builder.store.copier import ForeignTarget
from builder.store.folder import FolderStore
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, StoreError, StoreUnavailable
from functions.snapshot.pointer import Pointer, Witness
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.beginning import begin
from tests.builder.conftest import World, capture
from tests.builder.interrupted import Interrupted
from tests.builder.publish.test_store_copy import problems as findings
from tests.builder.publish.test_withdraw import REASON, name, records
from tests.interleaving.killer import Killed, die

pytestmark = pytest.mark.shared(3)

ITEM = Selection(identifiers=(name(3),))


def interrupted(world: World, kind: str, then: Callable[[], None], at: int = 1) -> Writer:
    return cast(Writer, Interrupted(world.store, kind, then, at))


def problems(world: World, store: Writer | None = None) -> list[str]:
    """Return the damage that verify finds, and no notes of what harms nobody."""
    return [p for p in findings(world, store or world.store) if "orphan" not in p]


def showing(world: World, store: Writer) -> list[str]:
    """Return the data files, named by a snapshot or not, that hold the item's title."""
    keys = {str(store.local(key)): key for key in store.keys("records/records/")}
    sql = (
        "SELECT DISTINCT filename FROM read_parquet($files, filename = true, "
        "hive_partitioning = false) WHERE title = 'Page 3'"
    )
    with engine.connect() as connection:
        return [keys[path] for (path,) in connection.execute(sql, {"files": [*keys]}).fetchall()]


def published(world: World, *counts: int) -> None:
    """Begin with a store of one publish after the other, of so many captures (one of 40)."""

    def fill(world: World) -> None:
        first = 0
        for count in counts or (40,):
            world.add([capture(n) for n in range(first, first + count)])
            world.clock.sleep(100)
            first += count

    begin(world, ("interleaving", counts), fill)


@pytest.mark.thorough
@pytest.mark.parametrize("new", [1, 30])
def test_a_publish_that_lost_to_a_purge_leaves_nothing_that_is_kept(world: World, new: int) -> None:
    """It takes the number of a snapshot that was retired meanwhile."""
    published(world)

    def purge() -> None:
        world.withdraw(Selection(identifiers=(name(9),)))
        world.clock.sleep(5)
        assert world.withdraw(ITEM, purge=True).retired == (1, 2)

    world.ingest([capture(n) for n in range(100, 100 + new)])
    built = publish(interrupted(world, "create", purge), world.configuration(), world.runtime())
    assert built.new == new
    assert set(snapshots(world.store)) > {2, 3}
    anew = rebuilt(world.store)
    assert anew is not None
    assert anew.is_retired(2)
    world.clock.sleep(100)
    done = expire(world.store, world.runtime(), keep=30, older=timedelta(days=14))
    assert 2 not in done.kept
    world.withdraw(ITEM, purge=True)
    assert 2 not in snapshots(world.store)
    assert showing(world, world.store) == []
    assert problems(world) == []


def unavailable() -> None:
    raise StoreUnavailable("it does not answer")


def test_a_withdrawal_that_cannot_say_that_it_was_in_time_is_one_all_the_same(world: World) -> None:
    published(world)
    done = withdraw(
        interrupted(world, "replace", unavailable, at=2),
        world.configuration(),
        world.runtime(),
        Selection(url_prefix="http://h3.example.cz/"),
        REASON,
        purge=True,
    )
    assert done.built.withdrawn == len(done.identifiers) > 0
    assert done.retired == (1,)
    assert all(records(world)[n].deleted for n in done.identifiers)


def test_an_answer_that_was_lost_and_a_rival_that_went_on(world: World) -> None:
    """The pointer was moved; its mover hears Conflict, as somebody has built on it since."""
    published(world)

    class Lost(FolderStore):
        lost = False

        def replace(self, key: str, data: bytes, tag: str | None) -> str:
            found = super().replace(key, data, tag)
            if not self.lost:
                self.lost = True
                other = World(world.root, world.clock, runs=50)
                other.add([capture(200)])
                super().replace(key, data, tag)  # raises Conflict
            return found

    done = withdraw(
        Lost(world.root),
        world.configuration(),
        world.runtime(),
        Selection(url_prefix="http://h3.example.cz/"),
        REASON,
    )
    assert done.built.withdrawn == len(done.identifiers) > 0
    assert done.built.manifest == world.newest()
    assert all(records(world)[n].deleted for n in done.identifiers)
    assert not records(world)[name(200)].deleted


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("kind", "at", "after"),
    [
        (kind, at, after)
        for kind, most in {"keys": 3, "folders": 3}.items()
        for at in range(1, most + 1)
        for after in (False, True)
    ],
)
def test_an_expiry_comes_between_the_steps_of_a_purge(
    world: World, kind: str, at: int, after: bool
) -> None:
    published(world, 40, 40, 40)
    met = []
    store = Interrupted(
        world.store, kind, lambda: met.append(world.expire(keep=2)), at, after=after
    )
    withdraw(cast(Writer, store), world.configuration(), world.runtime(), ITEM, REASON, purge=True)
    assert met
    assert showing(world, world.store) == []
    assert problems(world) == []


def test_a_purge_that_is_waited_for_with_a_clock_that_is_set_back(world: World) -> None:
    published(world)
    runtime, back = world.runtime(), iter([-1.0, 0.0])

    def sleep(seconds: float) -> None:
        world.clock.sleep(seconds + (next(back, 0.0) if seconds > 30 else 0.0))

    done = withdraw(
        world.store, world.configuration(), replace(runtime, sleep=sleep), ITEM, REASON, purge=True
    )
    assert done.retired == (1,)
    assert showing(world, world.store) == []


def test_what_is_ingested_while_a_publish_begins_is_not_thrown_away(world: World) -> None:
    """The publish has read a pointer in which the item is still withdrawn."""
    published(world, 10)
    world.withdraw(ITEM, purge=True)
    world.clock.sleep(100)

    def back() -> None:
        awaited = world.reinstate(ITEM).built
        assert awaited.unchanged == 1
        world.ingest([capture(3)])

    # The first listing is that of the snapshots, the second that of the intake.
    publish(interrupted(world, "keys", back, at=2), world.configuration(), world.runtime())
    assert not records(world)[name(3)].deleted


def test_a_pointer_is_settled_where_there_is_nothing_to_stamp_anew(world: World) -> None:
    published(world, 10)
    world.ingest([capture(1)], digest="another file, the same captures")
    with pytest.raises(Killed):
        publish(interrupted(world, "replace", die, at=2), world.configuration(), world.runtime())
    world.clock.sleep(100)
    assert not Catalogue(world.store).pointer().settled
    world.publish()
    assert Catalogue(world.store).pointer().settled


def three_more(world: World) -> None:
    for number in (10, 20, 30):
        world.add([capture(n) for n in range(number, number + 10)])
        world.clock.sleep(100)


def one_more(world: World) -> None:
    world.add([capture(77)])
    world.clock.sleep(100)


def three_and_expired(world: World) -> None:
    three_more(world)
    world.expire(keep=2)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("since", [one_more, three_and_expired])
def test_an_old_pointer_that_is_put_back_is_no_base(
    world: World, since: Callable[[World], None]
) -> None:
    published(world, 10)
    path = world.root / layout.POINTER
    old = path.read_bytes()
    since(world)
    right, there = path.read_bytes(), set(world.store.keys(""))
    path.write_bytes(old)
    world.ingest([capture(200)])
    for change in (world.publish, lambda: world.withdraw(ITEM), lambda: world.expire(keep=1)):
        with pytest.raises(DamagedStore, match="an old copy was restored"):
            change()
    assert there <= set(world.store.keys(""))
    path.write_bytes(right)
    assert world.publish().new == 1


def lost_race(world: World) -> None:
    """Leave the manifest of a publish that lost to another one, and was killed."""

    def rival() -> None:
        one_more(world)

    world.ingest([capture(n) for n in range(50, 60)])
    both = interrupted(world, "create", rival)
    with pytest.raises(Killed):
        publish(
            cast(Writer, Interrupted(both, "replace", die)), world.configuration(), world.runtime()
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("since", [three_and_expired, lost_race])
def test_a_pointer_can_be_made_anew(
    world: World, since: Callable[[World], None], tmp_path: Path
) -> None:
    assert rebuilt(world.store) is None
    published(world, 10)
    since(world)
    have = records(world)
    (world.root / layout.POINTER).unlink()
    pointer = rebuilt(world.store)
    assert pointer is not None
    (world.root / layout.POINTER).write_bytes(pointer.to_json())
    assert records(world) == have
    assert world.add([capture(200)]).new in (1, 11)  # what was killed left its intake
    assert have.items() <= records(world).items()
    assert problems(world) == []
    export(world.store, FolderStore(tmp_path / "copy"), world.runtime())


def test_a_publisher_with_a_wrong_clock_does_not_stop_the_others_in_silence(world: World) -> None:
    published(world, 10)
    right = world.clock.now
    world.clock.now = datetime(2036, 1, 1, tzinfo=UTC)
    one_more(world)
    world.clock.now = right
    world.ingest([capture(200)])
    with pytest.raises(StoreError, match="takes effect at 2036-01-01T00:00:0"):
        world.publish()
    # The way out is in docs/operations/operate.md.
    pointer = Catalogue(world.store).pointer()
    without = replace(pointer, entries=pointer.entries[:-1])
    (world.root / layout.POINTER).write_bytes(without.to_json())
    shutil.rmtree(world.root / "snapshots" / "2")
    with pytest.raises(DamagedStore, match="sheaf verify"):
        world.publish()
    right_one = Witness(pointer.store, without.newest())
    (found,) = problems(world)
    assert f"{layout.WITNESS} must be {json.dumps(json.loads(right_one.to_json()))}" in found
    (world.root / layout.WITNESS).write_bytes(right_one.to_json())
    assert world.add([capture(77)]).new == 2
    assert len(records(world)) == 12
    assert problems(world) == []


def test_damage_is_not_carried_on_under_a_new_name(world: World) -> None:
    """Bits that nothing but the digest tells from right ones."""
    published(world, 200)
    (key,) = world.store.keys("records/records/")
    altered(world.root / key)
    before = set(world.store.keys("snapshots/"))
    for number in (9, 150):
        with pytest.raises(DamagedStore, match=key):
            world.withdraw(Selection(identifiers=(name(number),)))
    assert set(world.store.keys("snapshots/")) == before


def altered(path: Path) -> None:
    """Change a byte of a Parquet file so that it can be read, and gives other rows."""
    connection, data = engine.connect(), path.read_bytes()

    def rows() -> object:
        sql = f"SELECT * FROM {engine.table('$f')}"
        return connection.execute(sql, {"f": str(path)}).fetchall()

    right = rows()
    for at in range(100, len(data), 37):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with suppress(duckdb.Error, UnicodeDecodeError):
            if rows() != right:
                connection.close()
                return
    raise AssertionError("every change is noticed")


def behind(world: World, folder: Path) -> FolderStore:
    """Publish three items, copy the store, publish the item; return the copy."""
    published(world, 3)
    copy = FolderStore(folder / "copy")
    export(world.store, copy, world.runtime())
    world.add([capture(3)])
    world.clock.sleep(100)
    return copy


@pytest.mark.thorough
def test_what_was_purged_while_it_was_exported_is_not_at_the_copy(
    world: World, tmp_path: Path
) -> None:
    copy = behind(world, tmp_path)

    class Meanwhile(FolderStore):
        done = False

        def replace(self, key: str, data: bytes, tag: str | None) -> str:
            if key.endswith("views.sql") and not self.done:  # after the data files
                self.done = True
                world.withdraw(ITEM, purge=True)
                world.clock.sleep(100)
            return super().replace(key, data, tag)

    export(world.store, Meanwhile(copy.root), world.runtime())
    assert showing(world, world.store) == []
    assert showing(world, copy) == []
    assert problems(world, copy) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("at", [1, 3], ids=["views", "pointer"])
def test_what_was_purged_after_an_export_died_is_not_at_the_copy(
    world: World, tmp_path: Path, at: int
) -> None:
    copy = behind(world, tmp_path)
    with pytest.raises(Killed):
        export(world.store, cast(Writer, Interrupted(copy, "replace", die, at)), world.runtime())
    assert showing(world, copy) != []
    world.withdraw(ITEM, purge=True)
    world.clock.sleep(100)
    export(world.store, copy, world.runtime())
    assert showing(world, copy) == []


def test_a_target_that_lost_its_pointer_is_not_set_back(world: World, tmp_path: Path) -> None:
    published(world, 3)
    copy = World(tmp_path / "copy", world.clock, runs=50)
    export(world.store, copy.store, world.runtime())
    one_more(copy)
    (copy.root / layout.POINTER).unlink()
    for settled in copy.root.glob("snapshots/*/settled"):
        with pytest.raises(ForeignTarget, match="without its pointer"):
            export(world.store, copy.store, world.runtime())
        settled.unlink()
    # The witness still says that something was published here.
    with pytest.raises(ForeignTarget, match="without its pointer"):
        export(world.store, copy.store, world.runtime())


def test_two_expiries_of_one_second_do_not_take_each_other_s_lease_for_theirs(
    world: World, tmp_path: Path
) -> None:
    """A bucket's writer whose answer was lost takes equal bytes for its own."""
    published(world, 3)
    three_more(world)
    leases = []

    class Noting(FolderStore):
        def replace(self, key: str, data: bytes, tag: str | None) -> str:
            leases.append(Pointer.from_json(data).expiry)
            return super().replace(key, data, tag)

    for name_ in ("one", "other"):
        root = Path(shutil.copytree(world.root, tmp_path / name_))
        expire(Noting(root), world.runtime(), keep=1)
    first, second = (lease for lease in leases if lease is not None)
    assert (first.snapshots, first.until) == (second.snapshots, second.until)
    assert first != second
