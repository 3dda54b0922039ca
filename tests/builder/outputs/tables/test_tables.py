"""`publish.tables`: engines see the rows of each snapshot, whatever was published."""

import json
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings

from builder.outputs.follow import expire
from builder.outputs.tables import update
from builder.outputs.tables.index import INDEX
from builder.outputs.tables.table import IcebergTable
from builder.publish.selection import Selection
from functions.snapshot import layout
from functions.snapshot.errors import StoreError
from tests.builder.conftest import World, capture
from tests.builder.outputs.dumps.history import Operation, apply, die_at, histories, identify
from tests.builder.outputs.tables.reader import IcebergReader, order, view_rows
from tests.extent import examples

pytestmark = pytest.mark.shared(2)

ON = {"SHEAF_PUBLISH_TABLES": "true"}
NAMES = ("records", "captures", "sets", "sources", "publishes", "snapshots")


def begin(world: World, count: int = 12) -> World:
    world.add([capture(n, title="a") for n in range(count)], ("collection:a",), **ON)
    return world


def compare(world: World) -> set[int]:
    """Compare all snapshots of all tables with the views; return the numbers."""
    found = set()
    for name in NAMES:
        reader = IcebergReader(world.store, name)
        for number in reader.snapshots:
            found.add(number)
            expected = order(view_rows(world.store, number, name))
            assert order(reader.rows(number)) == expected
    return found


def findings(world: World) -> dict[str, str]:
    return {finding.code: finding.object for finding in world.verify().findings}


def objects(world: World, prefix: str = "tables/") -> set[str]:
    return {*world.store.keys(prefix)}


@settings(max_examples=examples(2), deadline=None)
@given(history=histories)
def test_every_snapshot_has_the_rows_of_its_views(history: list[Operation]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = begin(World(Path(folder) / "store"))
        for operation in history:
            apply(world, operation, **ON)
        kept = {int(p.parent.name) for p in world.root.glob("snapshots/*/manifest.json")}
        world.publish(**ON)  # an expiry that was not told of the tables
        assert compare(world) == kept
        assert not findings(world)
        before = objects(world, layout.RECORDS)
        world.publish(SHEAF_PUBLISH_TABLES="false")
        assert not objects(world)
        assert objects(world, layout.RECORDS) == before
        world.close()


MANY = 4_200
"""More than a row group, so that rows of the second are numbered too."""


@pytest.mark.thorough
def test_small_changes_of_large_files_write_little(world: World) -> None:
    """They are merged."""
    begin(world, MANY)
    before = objects(world)
    for n in range(3):
        changed = [capture(n * 2000 + k, title=f"b{n}") for k in range(2)]
        world.add([*changed, capture(10_000 + n)], ("collection:a",), **ON)
    for name, column in (("records", "position"), ("captures", "identifier")):
        reader = IcebergReader(world.store, name)
        assert set(reader.snapshots) == {1, 2, 3, 4}
        for number in reader.snapshots:
            expected = view_rows(world.store, number, name, [column])
            assert sorted(reader.rows(number, [column])) == sorted(expected)
    new = objects(world) - before
    assert sum(world.store.size(key) or 0 for key in new if key.endswith(".parquet")) < 20_000
    assert not findings(world)
    index = json.loads((world.root / INDEX).read_bytes())
    assert len([key for key, file in index["files"].items() if file[0]]) == 1


def test_a_withdrawal_hides_and_a_purge_forgets(world: World) -> None:
    begin(world)
    selection = Selection(identifiers=(identify(3),))
    world.withdraw(selection, "x", **ON)
    names = [row[0] for row in IcebergReader(world.store, "captures").rows()]
    assert identify(3) not in names
    assert len(names) == 11
    assert compare(world) == {1, 2}
    world.withdraw(selection, "x", purge=True, **ON)
    assert compare(world) == {2}
    assert not findings(world)
    kept = set(json.loads((world.root / INDEX).read_bytes())["snapshots"])
    assert kept == {*NAMES}
    title = capture(3, title="a").url.encode()
    assert not [key for key in objects(world) if title in (world.root / key).read_bytes()]


def test_expiry_removes_what_retired_snapshots_alone_needed(world: World) -> None:
    begin(world)
    for n in range(3):
        world.add([capture(n, title="b")], ("collection:a",), **ON)
    before = objects(world)
    world.clock.sleep(120)
    expire(world.store, world.runtime(), 2)
    assert compare(world) == {3, 4}
    assert len(objects(world)) < len(before)
    assert "orphan" not in findings(world)
    stray = world.root / "tables/sheaf.ducklake"  # which releases up to 0.2.0 wrote
    stray.write_bytes(b"x")
    expire(world.store, world.runtime(), 1)
    assert stray.exists()  # it may belong to an update in progress
    old = (world.clock() - timedelta(days=2)).timestamp()
    os.utime(stray, (old, old))
    assert findings(world) == {"orphan": "tables/sheaf.ducklake"}
    expire(world.store, world.runtime(), 1)
    assert not stray.exists()
    assert compare(world) == {4}


def test_an_expiry_that_died_before_the_index_is_unfinished(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(world)
    world.add([capture(1, title="b")], ("collection:a",), **ON)
    world.clock.sleep(120)
    with monkeypatch.context() as patch:
        die_at(patch, INDEX, 0, StoreError("killed"), "replace")
        with pytest.raises(StoreError):
            expire(world.store, world.runtime(), 1)
    assert {*findings(world)} == {"tables-behind"}
    world.add([capture(2, title="b")], ("collection:a",), **ON)
    assert not findings(world)


def test_a_store_that_was_moved_gets_tables_for_its_place(world: World, tmp_path: Path) -> None:
    begin(world)
    world.root.rename(tmp_path / "moved")
    moved = World(tmp_path / "moved", world.clock)
    assert findings(moved) == {"tables-moved": INDEX}
    moved.publish(**ON)
    assert compare(moved) == {1}
    assert not findings(moved)


def test_columns_that_another_release_describes_otherwise_are_no_damage(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = IcebergTable.fields
    with monkeypatch.context() as patch:
        patch.setattr(IcebergTable, "fields", lambda t: [{**f, "doc": "old"} for f in fields(t)])
        begin(world)
    (world.root / "tables/sets/metadata/v1.metadata.json").unlink()  # it is made anew
    world.add([capture(20, title="b")], **ON)
    assert not findings(world)
    assert compare(world) == {1, 2}


@pytest.mark.thorough
def test_tables_that_begin_late_have_all_snapshots_that_are_kept(world: World) -> None:
    world.add([capture(n) for n in range(5)])
    world.add([capture(n, title="b") for n in range(2)])
    assert not objects(world)
    world.publish(**ON)
    assert compare(world) == {1, 2}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("step", ["write_objects", "_create_metadata", "_replace"])
def test_an_interrupted_update_shows_the_last_tables_and_is_done_again(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    begin(world)
    whole = getattr(update, step)
    calls = []

    def fail(*arguments: object) -> object:
        calls.append(whole(*arguments))
        raise StoreError("the disk is full")

    world.ingest([capture(1, title="b")], ("collection:a",))
    with monkeypatch.context() as patch:
        patch.setattr(update, step, fail)
        with pytest.raises(StoreError):
            world.publish(**ON)
    assert world.newest().snapshot == 2
    assert {*findings(world)} <= {"tables-behind"}  # which harms no reader
    for name in NAMES:
        reader = IcebergReader(world.store, name)
        for number in reader.snapshots:
            assert order(reader.rows(number)) == order(view_rows(world.store, number, name))
    world.add([capture(2, title="c")], ("collection:a",), **ON)
    assert compare(world) == {1, 2, 3}
    assert not findings(world)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("tables/deletes/*.parquet", "table-altered"),
        ("tables/records/metadata/*.avro", "table-altered"),
        ("tables/captures/metadata/v2.metadata.json", "table-altered"),
        ("tables/sets/metadata/version-hint.text", "table-altered"),
        ("tables/index.json", "table-altered"),
    ],
)
def test_verify_finds_damage(world: World, pattern: str, code: str) -> None:
    begin(world)
    world.add([capture(1, title="b")], ("collection:a",), **ON)
    path = sorted(world.root.glob(pattern))[0]
    whole = path.read_bytes()
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    assert code in findings(world)
    path.unlink()
    if pattern != INDEX:
        assert "table-missing" in findings(world)
    path.write_bytes(whole)
    assert not findings(world)
