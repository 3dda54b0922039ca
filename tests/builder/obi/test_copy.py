"""Copies: an export carries the obi store as it is, and nothing that expires ever touches it."""

import io
import itertools
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from builder.export.store_copy import CopyResult, export
from builder.obi import key
from builder.obi.replicate import ForeignRuns, ObiReplication
from builder.obi.run import Committed, claim, history
from builder.store.folder import FolderStore
from builder.verify.verify import verify
from functions.snapshot.errors import DamagedStore
from tests.bucket import fresh
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
    replaced,
)
from tests.builder.obi.test_verify import MEANS
from tests.extent import ALL

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
        world.ingest([capture(1), capture(2)])
        world.publish()

    begin(world, "runs of the obi store and two captures", fill)
    return Archive(world, time, list(history(world.store)))


@pytest.mark.thorough
@pytest.mark.parametrize("server", ["moto_server", "weed_server"])
def test_a_copy_of_a_copy_is_the_store(
    archive: Archive, tmp_path: Path, server: str, request: pytest.FixtureRequest
) -> None:
    """Folder to bucket to folder: every byte at every key, of long names and large objects too."""
    with closing(fresh(request.getfixturevalue(server))) as bucket:
        done = archive.export(archive.store, bucket)
        back = FolderStore(tmp_path / "back")
        archive.export(bucket, back)
        assert objects(back) == objects(bucket) == objects(archive.store)
        for store in (bucket, back):
            assert history(store) == tuple(archive.runs)
            assert verify(store, MEANS).findings == ()
        assert verify(back, MEANS).objects_read == 26
        again = archive.export(archive.store, bucket)
        assert (again.objects, again.bytes) == (0, 0)
        assert again.there == done.objects


def test_a_copy_is_brought_up_to_date(archive: Archive, tmp_path: Path) -> None:
    target = FolderStore(tmp_path / "copy")
    archive.export(archive.store, target)
    time = archive.time
    ingested(archive.store, time, {HANDLE: "new"})
    unfinished = claim(archive.store, GATHER, time.runtime)
    unfinished.put(LONG, b"x")
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


class Cut(Exception):
    """The copy ends here."""


class Failing(FolderStore):
    """Lets so many objects be written."""

    left = 0

    def create(self, key: str, data: bytes) -> None:
        self._step()
        super().create(key, data)

    def create_file(self, key: str, path: Path) -> None:
        self._step()
        super().create_file(key, path)

    def _create_some(self, some: object) -> list[bool]:
        self._step()
        return super()._create_some(some)  # type: ignore[arg-type]

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Cut


def test_a_copy_that_was_cut_off_shows_no_half_run(archive: Archive, tmp_path: Path) -> None:
    for steps in itertools.count(0, 1 if ALL else 3):
        folder = tmp_path / f"cut-{steps}"
        target = Failing(folder)
        target.left = steps
        try:
            ObiReplication(archive.store, target)(lambda size: None)
        except Cut:
            assert history(target) in (tuple(archive.runs[:n]) for n in range(3))
            assert not verify(FolderStore(folder), MEANS).damaged
            archive.export(archive.store, FolderStore(folder))
            assert objects(FolderStore(folder)) == objects(archive.store)
        else:
            break
    assert steps > 8


def damaged(archive: Archive) -> Iterator[tuple[str, str]]:
    """Give each object of a run that counts other bytes, and its own again."""
    for where, data in list(objects(archive.store).items()):
        if key.tist_of(where) == archive.runs[1].tist and not key.is_redirect(where):
            replaced(archive.store, where, b"~" * len(data))
            yield where, "differs from the bytes stored"
            archive.store.remove(where)
            yield where, "has no"
            archive.store.put(where, io.BytesIO(data))


def test_what_is_damaged_is_not_copied(archive: Archive, tmp_path: Path) -> None:
    for number, (where, told) in enumerate(damaged(archive)):
        target = FolderStore(tmp_path / f"copy-{number}")
        with pytest.raises(DamagedStore, match=told):
            archive.export(archive.store, target)
        assert history(target) == tuple(archive.runs[:1])
        assert target.tag(where) is None
    assert number == 5


def test_what_is_damaged_at_the_copy_is_put_back(archive: Archive, tmp_path: Path) -> None:
    target = FolderStore(tmp_path / "copy")
    archive.export(archive.store, target)
    where = key.key(archive.runs[1].tist, LONG)
    replaced(target, where, b"short")
    gone = key.key(archive.runs[0].tist, f"{HANDLE}-4")
    target.remove(gone)
    assert archive.export(archive.store, target).objects == 2
    assert objects(target) == objects(archive.store)


def test_another_store_is_not_written_over(archive: Archive, tmp_path: Path) -> None:
    other = FolderStore(tmp_path / "other")
    time = Time()
    time.clock.now = archive.time.clock.now - timedelta(days=9)
    ingested(other, time, {HANDLE: "another"})
    before = objects(other, "")
    with pytest.raises(ForeignRuns, match="choose an empty place"):
        archive.export(archive.store, other)
    assert objects(other, "") == before
    ahead = FolderStore(tmp_path / "ahead")
    archive.export(archive.store, ahead)
    ingested(ahead, archive.time, {HANDLE: "only there"})
    with pytest.raises(ForeignRuns, match="has another run"):
        archive.export(archive.store, ahead)


def test_expiry_leaves_the_obi_store_alone(archive: Archive) -> None:
    """Runs of which no snapshot shows anything, an open one, and what belongs to none."""
    run = claim(archive.store, INGEST, archive.time.runtime)
    run.put(HANDLE, b"x")
    archive.store.create("obi/123/456/7891/stray", b"x")
    archive.store.create("records/captures/" + "0" * 32 + ".parquet", b"of no snapshot")
    before = objects(archive.store)
    archive.world.ingest([capture(3)])
    archive.world.publish()
    archive.world.clock.sleep(100)
    for path in archive.world.root.rglob("*.*"):
        os.utime(path, (0, 0))
    assert archive.world.expire().retired == (1,)
    assert list(archive.store.keys("records/captures/")) == []
    assert objects(archive.store) == before
