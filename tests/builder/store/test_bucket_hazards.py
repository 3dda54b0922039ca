"""Rivals, crashes and expiry over a bucket: what test_hazards shows of a folder."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreUnavailable
from tests.bucket import Bucket
from tests.builder.conftest import World, capture
from tests.builder.publish.test_hazards import urls
from tests.proxy import Answer, Lost, Proxy, Seen

pytestmark = pytest.mark.shared(2)

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


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A folder store in which the first capture is published."""
    world = World(tmp_path_factory.mktemp("first") / "store")
    world.ingest([capture(1)])
    world.publish()
    return world


@pytest.fixture
def begun(first: World, world: Bucketed) -> Bucketed:
    """The same in a bucket."""
    # Make the empty bucket what the folder is.
    for key in first.store.keys(""):
        world.bucket.create(key, first.store.read(key))
    world.clock.now, world.runs = first.clock.now, first.runs
    return world


def test_the_answers_of_conditional_writes_may_be_lost(begun: Bucketed, proxy: Proxy) -> None:
    """Data files, leaves, views, manifest, pointer, witness, mark, pointer again, the run's mark.

    Each is sent again, and found to be there: whoever took it for a rival's would write others.
    """
    begun.ingest([capture(2)])
    begun.bucket = begun.bucket.through(proxy.url)
    met: list[str] = []

    def lose(seen: Seen) -> Any:
        if seen.conditional and not seen.key.endswith("/.conditional"):
            met.append(seen.key)
            return Lost() if len(met) % 2 else None
        return None

    proxy.fault = lose
    built = begun.publish()
    assert built.manifest is not None
    assert built.manifest.snapshot == 2
    assert len([key for key in met if "/records/" not in key and "/leaves/" not in key]) == 14
    assert met[::2] == met[1::2]
    pointer = begun.repository().pointer()
    assert [entry.snapshot for entry in pointer.entries] == [1, 2]
    assert pointer.settled
    assert urls(begun) == {"1", "2"}


def test_a_server_that_goes_away_leaves_the_old_snapshot(begun: Bucketed, proxy: Proxy) -> None:
    begun.ingest([capture(2)])
    direct = begun.bucket
    proxy.fault = lambda seen: Answer(503) if seen.key.endswith("manifest.json") else None
    begun.bucket = direct.through(proxy.url, retry_seconds=0.5)
    with pytest.raises(StoreUnavailable):
        begun.publish()
    begun.bucket = direct
    assert urls(begun) == {"1"}
    begun.publish()
    assert urls(begun) == {"1", "2"}
