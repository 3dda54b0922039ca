"""Rivals, crashes and expiry over a bucket: what test_hazards shows of a folder."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from builder import withdraw
from builder.publish import publish
from builder.selection import Selection
from builder.store import FolderStore
from functions.oai.repository import Selection as Listed
from functions.snapshot import layout
from functions.snapshot.errors import StoreUnavailable
from functions.snapshot.manifest import Span
from tests.bucket import Bucket
from tests.proxy import Answer, Lost, Proxy, Seen, proxied

from ..extent import EVERY
from .conftest import World, capture
from .test_hazards import SETTINGS, Killed, Touchy, outside, urls

Make = Callable[..., Bucket]


class Bucketed(World):
    """A world whose store is a bucket."""

    bucket: Bucket

    @property
    def store(self) -> FolderStore:
        return cast(FolderStore, self.bucket)


@pytest.fixture
def world(tmp_path: Path, make_bucket: Make) -> Iterator[Bucketed]:
    world = Bucketed(tmp_path / "scratch" / "unused")
    world.root.parent.mkdir()
    world.bucket = make_bucket()
    yield world
    world.close()


@pytest.fixture
def proxy(moto_server: str) -> Iterator[Proxy]:
    with proxied(moto_server) as one:
        yield one


@pytest.mark.parametrize("at", range(1, 28) if EVERY else [2, 12, 20, 24, 27])
def test_a_rival_may_publish_at_any_moment(world: Bucketed, at: int) -> None:
    world.ingest([capture(1)])
    world.publish()
    world.ingest([capture(2)])

    def rival() -> None:
        other = Bucketed(world.root, world.clock, runs=50)
        other.bucket = world.bucket.through(world.bucket.endpoint)
        other.ingest([capture(3)])
        other.publish()

    store = Touchy(world.store, at, rival)
    publish(cast(FolderStore, store), SETTINGS, outside(world.clock))
    assert store.left <= 0
    publish(world.store, SETTINGS, outside(world.clock))
    assert urls(world) == {"1", "2", "3"}
    assert list(world.store.keys(layout.INTAKE)) == []


def _die() -> None:
    raise Killed


@pytest.mark.parametrize("at", range(1, 29) if EVERY else [10, 20, 24, 26, 28])
def test_a_publish_may_end_at_any_call(world: Bucketed, at: int) -> None:
    world.ingest([capture(1)])
    world.publish()
    world.ingest([capture(2), capture(1, title="changed")])
    with pytest.raises(Killed):
        publish(cast(FolderStore, Touchy(world.store, at, _die)), SETTINGS, outside(world.clock))
    assert urls(world) in ({"1"}, {"1", "2"})
    publish(world.store, SETTINGS, outside(world.clock))
    assert urls(world) == {"1", "2"}
    assert list(world.store.keys(layout.INTAKE)) == []


@pytest.mark.parametrize("nth", range(5))
def test_the_answer_of_any_conditional_write_may_be_lost(
    world: Bucketed, proxy: Proxy, nth: int
) -> None:
    """Views, manifest, the pointer, the snapshot's mark, and the pointer once it is settled."""
    world.ingest([capture(1)])
    world.publish()
    world.ingest([capture(2)])
    world.bucket = world.bucket.through(proxy.url)
    met: list[Seen] = []

    def lose(seen: Seen) -> Any:
        if seen.conditional and not seen.key.endswith("/.conditional"):
            met.append(seen)
            return Lost() if len(met) == nth + 1 else None
        return None

    proxy.fault = lose
    built = world.publish()
    assert built.manifest is not None
    assert built.manifest.snapshot == 2
    assert len(met) == 6
    pointer = world.repository().pointer()
    assert [entry.snapshot for entry in pointer.entries] == [1, 2]
    assert pointer.settled
    assert urls(world) == {"1", "2"}


def test_a_server_that_goes_away_leaves_the_old_snapshot(world: Bucketed, proxy: Proxy) -> None:
    world.ingest([capture(1)])
    world.publish()
    world.ingest([capture(2)])
    direct = world.bucket
    proxy.fault = lambda seen: Answer(503) if seen.key.endswith("manifest.json") else None
    world.bucket = direct.through(proxy.url, retry_seconds=0.5)
    with pytest.raises(StoreUnavailable):
        world.publish()
    world.bucket = direct
    assert urls(world) == {"1"}
    world.publish()
    assert urls(world) == {"1", "2"}


def test_what_is_retired_is_removed_and_what_is_needed_stays(world: Bucketed) -> None:
    for number in range(1, 5):
        world.ingest([capture(number), capture(0, title=f"Version {number}")])
        world.publish()
        world.clock.sleep(100)
    (name,) = withdraw.withdraw(
        world.store, SETTINGS, outside(world.clock), Selection(url_prefix="http://h2."), "why"
    ).identifiers
    world.clock.sleep(100)
    before = set(world.store.keys(""))
    expired = world.expire()
    assert expired.snapshots == (1, 2, 3, 4)
    assert expired.kept == (5,)
    after = set(world.store.keys(""))
    assert len(before - after) >= expired.objects > 8
    assert not after - before
    repository = world.repository()
    manifest = repository.manifest(5)
    found = repository.page(
        manifest, Listed(("capture",), Span(1, manifest.last_position)), 99, headers=True
    )
    assert len(found) == 5
    assert [r.identifier for r in found if r.deleted] == [name]
