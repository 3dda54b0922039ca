"""Copies: an export carries the obi store as it is, and nothing that expires ever touches it."""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from builder.obi import key
from builder.obi.run import Committed, claim, history
from builder.publish.store_copy import CopyResult, export
from builder.store.copier import ForeignTarget
from builder.store.folder import FolderStore
from tests.builder.beginning import begin
from tests.builder.conftest import World, capture, world
from tests.builder.obi.conftest import Time
from tests.builder.obi.holding import (
    GATHER,
    HANDLE,
    INGEST,
    LONG,
    Store,
    filled_in,
    ingested,
    objects,
)
from tests.builder.obi.logs import put

pytestmark = pytest.mark.shared(2)

__all__ = ["world"]


@dataclass
class Archive:
    """A published store with runs, and where its copies go."""

    world: World
    time: Time
    runs: list[Committed]

    @property
    def store(self) -> FolderStore:
        return self.world.store

    def export(self, source: Store, target: Store) -> CopyResult:
        return export(source, target, self.world.runtime())


@pytest.fixture
def archive(world: World, time: Time) -> Archive:
    time.clock = world.clock

    def fill(world: World) -> None:
        filled_in(world.root, time)
        world.add([capture(1), capture(2)])

    begin(world, "runs of the obi store and two captures", fill)
    return Archive(world, time, list(history(world.store)))


def test_a_copy_is_brought_up_to_date(archive: Archive, tmp_path: Path) -> None:
    target = FolderStore(tmp_path / "copy")
    archive.export(archive.store, target)
    time = archive.time
    ingested(archive.store, time, {HANDLE: "new"})
    unfinished = claim(archive.store, GATHER, time.runtime)
    put(unfinished, LONG, b"x")
    done = archive.export(archive.store, target)
    assert done.objects == 5  # the object, and what belongs to the run itself
    expected = {
        k: v
        for k, v in objects(archive.store).items()
        if not k.startswith(("obi/" + key.folder(unfinished.tist), key.run(unfinished.tist)))
    }
    assert objects(target) == expected
    unfinished.commit([])
    archive.export(archive.store, target)
    assert objects(target) == objects(archive.store)


def test_another_store_is_not_written_over(archive: Archive, tmp_path: Path) -> None:
    other = FolderStore(tmp_path / "other")
    time = Time()
    time.clock.now = archive.time.clock.now - timedelta(days=9)
    ingested(other, time, {HANDLE: "another"})
    before = objects(other, "")
    with pytest.raises(ForeignTarget, match="choose an empty place"):
        archive.export(archive.store, other)
    assert objects(other, "") == before
    ahead = FolderStore(tmp_path / "ahead")
    archive.export(archive.store, ahead)
    ingested(ahead, archive.time, {HANDLE: "only there"})
    with pytest.raises(ForeignTarget, match="has another run"):
        archive.export(archive.store, ahead)


def test_expiry_leaves_the_obi_store_alone(archive: Archive) -> None:
    """Runs of which no snapshot shows anything, an open one, and what belongs to none."""
    run = claim(archive.store, INGEST, archive.time.runtime)
    put(run, HANDLE, b"x")
    archive.store.create("obi/123/456/7891/stray", b"x")
    archive.store.create("records/captures/" + "0" * 32 + ".parquet", b"of no snapshot")
    before = objects(archive.store)
    archive.world.add([capture(3)])
    archive.world.clock.sleep(100)
    for path in archive.world.root.rglob("*.*"):
        os.utime(path, (0, 0))
    assert archive.world.expire().retired == (1,)
    assert list(archive.store.keys("records/captures/")) == []
    assert objects(archive.store) == before
