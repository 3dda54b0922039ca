"""An expiry removes only while the pointer gives it leave, however long a request takes."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import cast

import pytest

from builder.snapshot.expiry import expire
from builder.store.folder import FolderStore
from functions.snapshot import layout
from functions.snapshot.errors import StoreUnavailable
from functions.snapshot.pointer import Pointer
from tests.bucket import Bucket
from tests.builder.beginning import begin
from tests.builder.conftest import Clock, World, capture
from tests.patience import in_real_time
from tests.proxy import Answer, Slow, always, proxied

LONGEST = timedelta(seconds=50)
"""What Connection's defaults let a removal take: 20 s of new tries, and 30 s for the last one."""


class Slack(FolderStore):
    """A store that takes its time to write: so many seconds, one after the other, then none."""

    def __init__(self, world: World, seconds: list[float]) -> None:
        super().__init__(world.root)
        self.clock: Clock = world.clock
        self.seconds = seconds
        self.left: list[timedelta] = []

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        self.clock.sleep(self.seconds.pop(0) if self.seconds else 0)
        return super().replace(key, data, tag)

    def remove(self, *keys: str) -> None:
        if keys:
            expiry = Pointer.from_json(self.read(layout.POINTER)).expiry
            assert expiry is not None
            self.left.append(expiry.until - self.clock())
            self.clock.sleep(LONGEST.total_seconds())
        super().remove(*keys)


def fill(world: World) -> None:
    for number in range(3):
        world.add([capture(number), capture(9, title=f"Version {number}")])
        world.clock.sleep(100)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seconds", [[], [55, 59], [70, 100], [130, 500, 90]])
def test_there_is_time_for_every_removal(world: World, seconds: list[float]) -> None:
    begin(world, "leases", fill)
    store = Slack(world, seconds)
    assert expire(cast(FolderStore, store), world.runtime()).retired == (1, 2)
    assert len(store.left) > 2
    assert min(store.left) >= LONGEST


@in_real_time
@pytest.mark.parametrize("fault", [Answer(503, "SlowDown"), Slow(20)])
def test_a_removal_is_given_up_before_it_could_come_late(
    moto_server: str, make_bucket: Callable[..., Bucket], fault: Answer | Slow
) -> None:
    with proxied(moto_server) as proxy:
        bucket = make_bucket().through(
            proxy.url, retry_seconds=60, removal_seconds=0.5, timeout=0.5
        )
        proxy.fault = always(fault)
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"retried for 0\.5 s"):
            bucket.remove("x", "y")
        assert time.monotonic() - began < 15
