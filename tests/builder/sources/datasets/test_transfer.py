"""Files are fetched in parallel; what is kept of them does not depend on timing."""

import io
import itertools
import random
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from builder import progress
from builder.progress import PartsProgress
from builder.sources.datasets import wiring
from builder.sources.datasets.item import FilesetPlatformItem, IngestRequest
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies.strategy import ArchivingStrategy
from builder.store.folder import FolderStore
from builder.threads import map_in_order
from functions.snapshot.store import Writer
from tests.builder.sources.datasets.body import Body, Generated
from tests.builder.sources.datasets.deposits import deposit
from tests.builder.sources.datasets.server import Answer, Exchange, Server, served, silent, status
from tests.builder.sources.datasets.test_s3 import HOST, item_of
from tests.builder.sources.datasets.world import World, world

BODIES: dict[str, Body] = {
    **{f"{n:02}.bin": Generated(1000 * n, n) for n in range(10)},
    "large.bin": Generated(5_000_000, 11),
    "medium.bin": Generated(400_000, 12),
}
NAMES = ("s3-fileset", "s3-fileset-bundled", "web-fileset")
START = 1_800_000_000.0


def strategy_of(
    name: str, there: World, folder: Path, connections: int = 4
) -> tuple[ArchivingStrategy, FolderStore]:
    store, given = FolderStore(folder), {"host_concurrent": connections, "tries": 1}
    return there.strategy(name, store, partial=False, **given), store


def late(answer: Answer, seconds: float) -> Answer:
    def answered(exchange: Exchange) -> None:
        exchange.wait(seconds)
        answer(exchange)

    return answered


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_is_the_same_whatever_comes_first(
    there: World, tmp_path: Path, name: str
) -> None:
    item = item_of(there.server, BODIES)
    there = replace(there, ways=replace(there.ways, client=replace(there.ways.client, wall=wall)))
    found = []
    for seed, connections in enumerate((1, 4, 4)):
        dice = random.Random(seed)
        for number, body in enumerate(BODIES.values()):
            there.server.add(f"{HOST}{number}", late(served(body), dice.uniform(0, 0.15)))
        there.server.most = 0
        asked, store = strategy_of(name, there, tmp_path / str(seed), connections)
        told = asked.process(item)
        assert [file.path for file in told.manifest] == list(BODIES)
        assert 1 < there.server.most <= 4 if connections > 1 else there.server.most == 1
        found.append((told, {key: store.read(key) for key in store.keys("")}))
    assert found[0] == found[1] == found[2]


def wall() -> float:
    return START


@pytest.mark.parametrize("name", NAMES)
def test_a_failure_ends_the_others_soon(there: World, tmp_path: Path, name: str) -> None:
    """And the first failure in order is told, whichever comes first."""
    item = item_of(there.server, BODIES)
    there.server.add(f"{HOST}2", late(status(500), 0.5))
    there.server.add(f"{HOST}3", status(503))
    there.server.add(f"{HOST}4", silent())
    asked, _ = strategy_of(name, there, tmp_path / "store")
    begun = time.monotonic()
    with pytest.raises(FilesetError, match=r"02\.bin: HTTP status 500") as e:
        asked.process(item)
    assert time.monotonic() - begun < 5
    kept = "verified" if name == "s3-fileset" else "skipped"
    statuses = [file.status for file in e.value.manifest]
    assert statuses == [kept, kept, "error-platform-download", *["skipped"] * 9]


def test_connections_are_kept_for_files_that_a_digest_verifies(
    there: World, tmp_path: Path
) -> None:
    there.server.keeps = True

    def connections(item: FilesetPlatformItem, folder: str) -> int:
        there.server.forget()
        asked, _ = strategy_of("s3-fileset", there, tmp_path / folder, 2)
        assert asked.process(item).status == "success"
        return len({one.port for one in there.server.asked()})

    item = item_of(there.server, BODIES)
    assert connections(item, "kept") <= 2
    unverified = tuple(replace(file, md5=None) for file in item.files)
    assert connections(replace(item, manifest=unverified), "new") == len(BODIES)


def test_an_idle_caller_is_told_once() -> None:
    told: list[str] = []
    free = threading.Event()

    def idle() -> None:
        told.append("idle")
        free.set()

    def call(number: int) -> int:
        assert number != 1 or free.wait(30)
        return number

    assert list(map_in_order(call, range(3), 2, 2, idle=idle)) == [0, 1, 2]
    assert told == ["idle"]


def test_a_slow_platform_shows_bytes_and_not_datasets_alone(
    server: Server, store: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", 1.0)
    bodies = {"a.bin": Generated(2_000_000), "b.bin": Generated(1_000_000, seed=2)}
    slow = served(bodies["a.bin"], drip=(0.01, 200_000))
    url = deposit(server, 11, bodies, answers={"a.bin": slow})
    out, ticks = io.StringIO(), itertools.count()
    bar = PartsProgress("datasets", 1, 0, out, lambda: next(ticks))
    watch = partial(bar.part, is_new=True)
    materials = world(server, tmp_path).materials(store, watch=watch)
    with bar:
        outcome = wiring.ingest(materials, threading.Event(), 60).process(IngestRequest(url))
        assert outcome.status == "success", outcome.detail
        bar.end_part()
        bar(0)
    shown = out.getvalue().splitlines()
    assert len(shown) > 5
    assert shown[0].startswith("0 of 1 datasets, 0 of 3 MB")
    assert shown[-1].startswith("1 of 1 datasets, 3 of 3 MB")
