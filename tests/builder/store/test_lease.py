"""Leases: one holder at a time, of whichever machine, and none for ever."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builder.store.folder import FolderStore
from builder.store.lease import Leases
from functions.snapshot.errors import StoreUnavailable
from functions.snapshot.store import Writer
from tests.bucket import Bucket

KEY = "filesets/leases/a.json"


@pytest.fixture(params=["folder", "bucket"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, make_bucket: Callable[..., Bucket]
) -> Writer:
    return FolderStore(tmp_path / "store") if request.param == "folder" else make_bucket()


class Clock:
    """A clock that stands still, unless it is waited for."""

    now = 1_800_000_000.0

    def wall(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def go_on() -> None:
    pass


def test_one_holds_it_at_a_time(store: Writer) -> None:
    held = threading.Lock()

    def work(_: int) -> None:
        leases = Leases(store, lambda: 0.0, lambda seconds: threading.Event().wait(0.02))
        with leases.hold(KEY, go_on):
            assert held.acquire(blocking=False)
            threading.Event().wait(0.05)
            held.release()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert list(store.keys("")) == []


def test_what_a_killed_process_held_expires_and_whoever_waits_for_it_says_so_once(
    store: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    leases = Leases(store, clock.wall, clock.sleep, seconds=60)
    abandoned = leases.hold(KEY, go_on)
    abandoned.__enter__()  # and it is never left
    begun = clock.now
    with leases.hold(KEY, go_on):
        assert 60 <= clock.now - begun <= 62
    most = "if it was killed, for at most 60 s"
    assert caplog.messages == [f"waiting for another process, which holds {KEY}; {most}"]


def test_a_holder_that_works_long_keeps_it(store: Writer) -> None:
    clock = Clock()
    leases = Leases(store, clock.wall, clock.sleep, seconds=0.3)
    with leases.hold(KEY, go_on):
        first = store.read(KEY)
        clock.now += 0.2
        for _ in range(200):
            if store.read(KEY) != first:
                break
            threading.Event().wait(0.02)
        assert store.read(KEY) != first


@pytest.mark.parametrize("data", [b"", b"[]", b'{"until": "x"}', b'{"until": 9e99}'])
def test_what_is_no_lease_is_taken(store: Writer, data: bytes) -> None:
    store.create(KEY, data)
    clock = Clock()
    with Leases(store, clock.wall, clock.sleep).hold(KEY, go_on):
        assert clock.now == Clock.now


def test_who_waits_may_give_up(store: Writer) -> None:
    def stop() -> None:
        raise InterruptedError

    clock = Clock()
    leases = Leases(store, clock.wall, clock.sleep)
    with leases.hold(KEY, go_on), pytest.raises(InterruptedError), leases.hold(KEY, stop):
        pass
    assert list(store.keys("")) == []


def test_a_renewal_whose_answer_is_lost_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path / "store")
    clock, wrote, write = Clock(), list[float](), store.replace

    def replace(key: str, data: bytes, tag: str | None) -> str:
        found = write(key, data, tag)
        wrote.append(json.loads(data)["until"])
        if len(wrote) == 2:
            raise StoreUnavailable("the answer is lost")
        return found

    monkeypatch.setattr(store, "replace", replace)
    leases = Leases(store, clock.wall, clock.sleep, seconds=0.1)
    with leases.hold(KEY, go_on):
        for _ in range(500):
            clock.now += 0.01
            if len(wrote) > 3:
                break
            threading.Event().wait(0.01)
        assert len(wrote) > 3
    assert list(store.keys("")) == []
