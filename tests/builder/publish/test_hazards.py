"""What goes wrong around a publish: rivals, crashes, odd folders, full disks."""

import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from builder.intake import intake
from builder.intake.rows import IntakeWriter
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.snapshot.transaction import ChangeResult
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.reading.repository import RecordSelection
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, StoreError
from functions.snapshot.manifest import Span
from functions.snapshot.pointer import Pointer
from functions.store.catalog import Catalogue
from tests.builder.beginning import begin
from tests.builder.conftest import NAMESPACE, Clock, World, capture
from tests.builder.interrupted import Interrupted
from tests.extent import EVERY
from tests.interleaving.killer import Killed, die

pytestmark = pytest.mark.shared(3)

CALLS = ("read", "put", "create", "tag", "replace", "remove", "keys", "local")


def urls(world: World) -> set[str]:
    records = world.listed()
    assert len({r.identifier for r in records}) == len(records)
    return {r.fields["url"].rpartition("/")[2] for r in records}


def runtime(clock: Clock) -> Runtime:
    return Runtime(clock, clock.sleep, lambda text: None, {}, 1)


SETTINGS = configuration.parse(
    f'[repository]\nnamespace = "{NAMESPACE}"\n[publish]\ntables = false\n', {}
)


def published(world: World) -> None:
    world.add([capture(1)])


# With KILL_ALL=1 each call is tried (see tests.extent), otherwise some of each stretch: the pointer
# is read, what is there is listed, the intake is fetched, files are written, then the manifest,
# the views and the pointer, and the intake is removed. The last ones are behind the end.
MORE = range(1, 70) if EVERY else (1, 4, 8, 10, 12, 19, 31, 44, 47, 50, 60)
SAME = range(1, 70) if EVERY else (1, 4, 8, 10, 12, 17, 22, 25, 30)


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("more", "at"),
    [*((True, at) for at in MORE), *((False, at) for at in SAME)],
    ids=[*(f"with-more-{at}" for at in MORE), *(f"with-the-same-{at}" for at in SAME)],
)
def test_a_rival_may_publish_at_any_moment(world: World, at: int, more: bool) -> None:
    """The rival takes the intake away, and publishes something of its own or nothing at all."""
    begin(world, "hazards", published)
    world.ingest([capture(1)] if not more else [capture(2)])

    def rival() -> None:
        other = World(world.root, world.clock, runs=50)
        if more:
            other.ingest([capture(3)])
        other.publish()

    store = Interrupted(world.store, CALLS, rival, at)
    publish(cast(FolderStore, store), SETTINGS, runtime(world.clock))
    if store.left > 0:
        rival()  # the publish was over before
    publish(world.store, SETTINGS, runtime(world.clock))
    assert urls(world) == ({"1", "2", "3"} if more else {"1"})
    assert list(world.store.keys(layout.INTAKE)) == []


def test_of_two_publishers_of_one_intake_one_reports_its_records(world: World) -> None:
    """Both write the same snapshot, in the same second."""
    begin(world, "hazards", published)
    world.ingest([capture(2), capture(3)])
    begun, said = Clock(world.clock.now), list[str]()
    rivals: list[ChangeResult] = []

    def rival() -> None:
        surroundings = replace(runtime(Clock(begun.now)), publisher="b")
        rivals.append(publish(world.store, SETTINGS, surroundings))

    surroundings = replace(runtime(world.clock), publisher="a", say=said.append)
    store = cast(FolderStore, Interrupted(world.store, "replace", rival))
    built = publish(store, SETTINGS, surroundings)
    assert [one.new for one in (*rivals, built)] == [2, 0]
    assert built.manifest is None
    assert "another publish came first; starting over from its snapshot" in said
    assert urls(world) == {"1", "2", "3"}


def test_a_long_wait_is_announced_before_it_with_its_reason(world: World) -> None:
    """Another publisher had a clock that was nearly two hours ahead."""
    begin(world, "hazards", published)
    ahead = Clock(world.clock.now + timedelta(minutes=115))
    world.ingest([capture(2)])
    publish(world.store, SETTINGS, runtime(ahead))
    world.ingest([capture(3)])
    told: list[str] = []
    publish(world.store, SETTINGS, replace(runtime(ahead), say=told.append))
    assert not [text for text in told if "waits" in text]  # by that clock it comes soon after
    world.ingest([capture(4)])
    sleeps: list[tuple[float, int]] = []

    def sleep(seconds: float) -> None:
        sleeps.append((seconds, len(told)))
        world.clock.sleep(seconds)

    publish(world.store, SETTINGS, replace(runtime(world.clock), say=told.append, sleep=sleep))
    (notice,) = [text for text in told if "waits" in text]
    ((seconds, before),) = [(s, n) for s, n in sleeps if s > 60]
    assert told.index(notice) < before
    assert 6_800 < seconds < 7_000
    assert "until 2026-01-01T01:5" in notice
    assert "115 minutes" in notice
    assert "docs/operations/operate.md" in notice
    assert urls(world) == {"1", "2", "3", "4"}


def test_an_instant_that_passed_before_the_pointer_is_not_kept(world: World) -> None:
    """The clock leaps while the views are written, before the pointer is."""
    world.ingest([capture(1)])
    leaps: Iterator[float] = iter([30.0, 0.0, 0.0])

    class Slow(FolderStore):
        def create(self, key: str, data: bytes) -> None:
            super().create(key, data)
            if key.endswith("views.sql"):
                world.clock.sleep(next(leaps))

    began = world.clock.now
    manifest = publish(Slow(world.root), SETTINGS, runtime(world.clock)).manifest
    assert manifest is not None
    assert (manifest.effective - began).total_seconds() > 30
    assert manifest.snapshot == 2
    assert manifest.skipped == (1,)
    pointer = Catalogue(world.store).pointer()
    assert [e.snapshot for e in pointer.entries] == [2]
    assert not (world.root / layout.manifest_key(1)).exists()


def test_a_removal_that_was_cut_short_is_completed(world: World) -> None:
    for count in range(1, 3):
        world.add([capture(1)])
        world.ingest([capture(1)])
        (run,) = intake.runs(world.store)
        with pytest.raises(Killed):
            intake.discard(
                cast(FolderStore, Interrupted(world.store, CALLS, die, count + 1)), [run]
            )
        assert len(list(intake.runs(world.store))) == 1  # not forgotten
        assert world.publish().changed == 0
        assert list(world.store.keys(layout.INTAKE)) == []


def test_an_intake_that_cannot_be_removed_is_told_and_published(world: World) -> None:
    world.ingest([capture(1)])
    said: list[str] = []

    class Stuck(FolderStore):
        def remove(self, *keys: str) -> None:
            raise StoreError(f"{keys} is stuck")

    surroundings = Runtime(world.clock, world.clock.sleep, said.append, {}, 1)
    assert publish(Stuck(world.root), SETTINGS, surroundings).new == 1
    assert "stuck" in said[-1]
    publish(world.store, SETTINGS, runtime(world.clock))
    assert list(world.store.keys(layout.INTAKE)) == []


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (1, "the disk is full"),
        (2, "the disk is full"),
        (0, r"captures-000000\.parquet was removed .* ingest again"),
    ],
    ids=["part", "summary", "expired"],
)
def test_an_ingest_that_fails_takes_back_what_it_moved(tmp_path: Path, at: int, said: str) -> None:
    """Else a full disk would stay as full, until its parts are orphans.

    One that an expiry takes for dead says so: its summary would name captures that nobody finds.
    """

    class Full(FolderStore):
        left = at

        def _temporary(self, key: str) -> Any:
            self.left -= 1
            if self.left == 0:
                raise StoreError("the disk is full")
            return super()._temporary(key)

        def put(self, key: str, source: Any) -> None:
            super().put(key, source)
            if not at:
                self.remove(key)

    folder = tmp_path / "run"
    folder.mkdir()
    part = IntakeWriter(folder, "000000")
    part.capture(capture(1), ())
    part.close()
    store = Full(tmp_path / "store")
    with pytest.raises(StoreError, match=said):
        intake.commit(store, intake.IntakeRun("run", ()), folder)
    assert list(store.keys("")) == []
    if not at:
        return
    intake.commit(store, intake.IntakeRun("run", ()), folder)
    assert [run.name for run in intake.runs(store)] == ["run"]


def test_damaged_intake_is_told(world: World) -> None:
    world.ingest([capture(1)])
    for key in list(world.store.keys(layout.INTAKE)):
        if key.endswith(".parquet"):
            path = world.root / key
            kept = path.read_bytes()
            path.write_bytes(kept[:50])
            with pytest.raises(StoreError):
                world.publish()
            path.unlink()
            with pytest.raises(DamagedStore, match=f"{key} is gone: restore it, or remove"):
                world.publish()
            path.write_bytes(kept)
    assert world.publish().new == 1


@pytest.mark.parametrize("lost", ["captures-*.parquet", "run.json", "*.json*", "[!r]*"])
def test_a_publish_removes_what_an_interrupted_one_left_of_its_intake(
    world: World, lost: str
) -> None:
    world.ingest([capture(1)])
    (run,) = (world.root / layout.INTAKE).iterdir()
    left = {path.name: path.read_bytes() for path in run.iterdir() if not path.match(lost)}
    world.publish()
    run.mkdir(parents=True)
    for name, data in {**left, layout.RUN_PUBLISHED: b""}.items():
        (run / name).write_bytes(data)
    assert world.add([capture(2)]).new == 1
    assert list(world.store.keys(layout.INTAKE)) == []


def test_a_store_may_lie_in_any_folder(tmp_path: Path) -> None:
    folder = tmp_path / "year=2007" / "url=x" / "position=5" / "a[b]*?'c"
    folder.mkdir(parents=True)
    world = World(folder / "store")
    world.add([capture(n) for n in range(6)])
    world.add([capture(6)])
    assert urls(world) == {str(n) for n in range(7)}
    world.close()


def test_a_publish_of_which_nothing_is_left_costs_no_read(world: World) -> None:
    world.add([capture(n) for n in range(50)])
    manifest = world.add([capture(n, title="all changed") for n in range(50)]).manifest
    assert manifest is not None
    (first, second) = world.store.keys("records/records/")
    repository = world.repository()
    before = {k: world.store.read(k) for k in (first, second)}
    (dead,) = (k for k, b in before.items() if b"all changed" not in b)
    (world.root / dead).unlink()
    for spec in (None, "mime", "domain:cz:example:h3"):
        selection = RecordSelection(("capture",), Span(1, manifest.last_position), spec)
        assert repository.page(manifest, selection, 99, headers=False)


def test_a_full_scratch_disk_is_told_as_such(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.RawIOBase):
        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

        def writable(self) -> bool:
            return True

    from builder.store.parquet import writer

    real = writer.pq.ParquetWriter
    world.ingest([capture(1)])
    monkeypatch.setattr(
        writer.pq, "ParquetWriter", lambda path, *a, **k: real(pa.PythonFile(Full()), *a, **k)
    )
    with pytest.raises(StoreError, match="scratch files is full"):
        world.publish()
    monkeypatch.undo()
    assert world.publish().new == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("left", [None, Pointer()], ids=["missing", "empty"])
def test_a_store_that_lost_its_pointer_is_not_begun_anew(
    world: World, left: Pointer | None
) -> None:
    def fill(world: World) -> None:
        for number in range(3):
            world.add([capture(number)])

    begin(world, "hazards: three", fill)
    path = world.root / layout.POINTER
    whole = path.read_bytes()
    world.ingest([capture(9)])
    path.unlink()
    if left is not None:
        path.write_bytes(left.to_json())
    with pytest.raises(DamagedStore, match=r"snapshots up to 3, but no|names no snapshot, but 3"):
        world.publish()
    assert left is not None or not path.exists()
    path.write_bytes(whole)
    built = world.publish()
    assert (built.new, built.records) == (1, 4)
