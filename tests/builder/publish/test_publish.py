"""Publishing: what is new, changed or as it was; positions, datestamps and listings."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from builder.intake import intake
from builder.publish.publish import NothingToPublish
from builder.sources.events import Fault
from functions.oai.repository import PublishedRecord, RecordSelection
from functions.snapshot import layout
from functions.snapshot.errors import VERSION, ConfigurationError, DamagedStore, StoreError
from functions.snapshot.manifest import Manifest, Span
from tests.builder.conftest import World, capture

pytestmark = pytest.mark.shared(2)


def listed(world: World, manifest: Manifest, spec: str | None = None) -> list[PublishedRecord]:
    """Return the whole listing in one page, after checking its size."""
    repository = world.opened[0] if world.opened else world.repository()
    selection = RecordSelection(("capture",), Span(1, manifest.last_position), spec)
    records = repository.page(manifest, selection, 1_000_000, headers=False)
    assert len(records) == repository.size(manifest, selection)
    return list(records)


def published(world: World, **settings: str) -> Manifest:
    manifest = world.publish(**settings).manifest
    assert manifest is not None
    return manifest


def test_every_capture_is_listed_once_in_natural_order(world: World) -> None:
    world.ingest([capture(n) for n in reversed(range(100))])
    manifest = published(world)
    records = listed(world, manifest)
    assert [r.position for r in records] == list(range(1, 101))
    keys = [r.fields["url_surtkey"] for r in records]
    assert keys == sorted(keys)
    assert {r.datestamp for r in records} == {manifest.effective}
    assert list(world.store.keys(layout.INTAKE)) == []


def test_the_datestamp_is_the_instant_of_effect_which_lies_ahead(world: World) -> None:
    world.ingest([capture(1)])
    began = world.clock.now
    manifest = published(world)
    assert manifest.effective > began
    assert manifest.effective <= world.clock.now  # publish returns when it is in effect
    assert manifest.sequences[-1].effective == manifest.effective


def test_ingesting_the_same_again_changes_nothing(world: World) -> None:
    world.ingest([capture(n) for n in range(50)])
    before = published(world)
    world.ingest([capture(n) for n in range(50)])
    built = world.publish()
    assert (built.manifest, built.new, built.changed, built.unchanged) == (None, 0, 0, 50)
    assert world.repository().pointer().newest().snapshot == before.snapshot  # type: ignore[union-attr]
    assert list(world.store.keys(layout.INTAKE)) == []


def test_new_items_get_new_positions_and_old_ones_stay(world: World) -> None:
    world.ingest([capture(n) for n in range(10)])
    first = listed(world, published(world))
    world.ingest([capture(n) for n in range(15)])
    manifest = published(world)
    records = listed(world, manifest)
    assert records[:10] == first
    assert [r.position for r in records[10:]] == list(range(11, 16))
    assert {r.datestamp for r in records[10:]} == {manifest.effective}
    assert manifest.effective > first[0].datestamp


def test_a_changed_item_moves_to_a_new_position_and_leaves_the_old(world: World) -> None:
    world.ingest([capture(n) for n in range(10)])
    published(world)
    world.ingest([capture(3, title="Corrected"), capture(4)])
    built = world.publish()
    assert (built.new, built.changed, built.unchanged, built.records) == (0, 1, 1, 10)
    assert built.manifest is not None
    records = listed(world, built.manifest)
    assert len({r.identifier for r in records}) == len(records) == 10
    (moved,) = [r for r in records if r.position == 11]
    assert moved.fields["title"] == "Corrected"
    found = world.repository().record(built.manifest, moved.identifier)
    assert found == moved
    for spec in ("mime:image:png", "domain:cz:example:h3", "mime", "domain"):
        assert [r.position for r in listed(world, built.manifest, spec)][-1] == 11


def test_another_collection_is_a_change_and_parents_stay_unnamed(world: World) -> None:
    world.ingest([capture(1), capture(2)], ("collection:serials",))
    published(world)
    world.ingest([capture(1)], ("collection:serials:harvest_november07",))
    manifest = published(world)
    by_position = {r.position: r.sets for r in listed(world, manifest)}
    # Three is the collection itself, whose captures are as many as they were.
    assert "collection:serials:harvest_november07" in by_position[4]
    assert "collection:serials" not in by_position[4]
    assert [r.position for r in listed(world, manifest, "collection:serials")] == [2, 4]
    assert len(listed(world, manifest, "collection:serials:harvest_november07")) == 1


def test_a_copy_elsewhere_is_no_change_but_fills_what_is_missing(world: World) -> None:
    world.ingest([capture(1), capture(2, title=None)])
    published(world)
    twin = {"warc_filename": "twin.warc.gz", "warc_record_offset": 7}
    world.ingest([capture(1, **twin), capture(2, **twin)])
    built = world.publish()
    assert (built.new, built.changed, built.unchanged) == (0, 1, 1)
    assert built.manifest is not None
    filled = listed(world, built.manifest)[-1].fields
    assert filled["title"] == "Page 2"
    assert filled["warc_filename"] == "a.warc.gz"
    world.ingest([capture(1), capture(2, title=None)])  # the first copies once more
    assert world.publish().changed == 0


def test_copies_in_one_intake_become_one_item_whatever_their_order(
    make_world: Callable[[str], World],
) -> None:
    copies = [
        capture(1, warc_filename="b.arc.gz", title=None, content_truncated="length"),
        capture(1, warc_filename="a.warc.gz"),
    ]
    found = []
    for name, some in (("one", copies), ("other", copies[::-1])):
        world = make_world(name)
        world.ingest(some, ("collection:x",))
        (record,) = listed(world, published(world))
        found.append(record)
        assert record.fields["warc_filename"] == "a.warc.gz"
        assert record.fields["content_truncated"] == "length"
    assert found[0] == found[1]


def test_the_same_input_gives_the_same_bytes(make_world: Callable[[str], World]) -> None:
    stores = []
    for name, order in (("one", 1), ("other", -1)):
        world = make_world(name)
        world.ingest([capture(n) for n in range(300)][::order])
        published(world)
        stores.append({key: world.store.read(key) for key in world.store.keys("")})
    assert stores[0] == stores[1]


def test_unchanged_files_are_shared_between_snapshots(world: World) -> None:
    world.ingest([capture(n) for n in range(50)])
    published(world)
    before = {key: world.store.read(key) for key in world.store.keys("")}
    world.ingest([capture(n) for n in range(60)])
    published(world)
    after = {key: world.store.read(key) for key in world.store.keys("")}
    changed = {k for k in before if before[k] != after.get(k)}
    assert changed == {layout.POINTER, layout.WITNESS}


def test_faults_are_rows_and_come_once(world: World) -> None:
    fault = Fault("a.warc.gz", 10, "payload-short", None, "declared 5, found 3", "kept")
    world.ingest([capture(1)], faults=(fault,))
    first = published(world)
    assert first.rows("faults") == 1
    world.ingest([capture(1)], faults=(fault, Fault("b", None, "empty-file")), digest="e")
    second = published(world)
    assert second.rows("faults") == 2
    assert second.rows("sources") == 2
    assert second.sequences == first.sequences  # no datestamp moves for a fault


def test_nothing_at_all_is_a_fault_of_the_user(world: World) -> None:
    with pytest.raises(NothingToPublish, match="sheaf ingest"):
        world.publish()


def test_another_namespace_is_refused(world: World) -> None:
    world.ingest([capture(1)])
    published(world)
    world.ingest([capture(2)])
    with pytest.raises(ConfigurationError, match="identifiers must not change"):
        world.publish(namespace="other.example.org")


def test_an_archive_without_captures_can_be_published(world: World) -> None:
    world.ingest([], faults=(Fault("x", None, "empty-file"),))
    manifest = published(world)
    assert manifest.kinds() == {}
    assert listed(world, manifest) == []


def test_a_publish_that_loses_the_race_starts_over_from_the_winner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.ingest([capture(1)])
    published(world)
    world.ingest([capture(2)])
    commit = intake.files
    raced: list[int] = []

    def rival(*arguments: object) -> list[str]:
        """Publish another capture from a second process's place, once, in the midst of it."""
        if not raced:
            raced.append(1)
            other = World(world.root, world.clock, runs=50)
            other.ingest([capture(3)])
            monkeypatch.setattr(intake, "files", commit)
            other.publish()
        return commit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(intake, "files", rival)
    world.publish()
    newest = world.repository().pointer().newest()
    assert newest is not None
    urls = {
        r.fields["url"][-2:] for r in listed(world, world.repository().manifest(newest.snapshot))
    }
    assert urls == {"/1", "/2", "/3"}


def test_a_pointer_written_too_late_gets_a_later_instant(world: World) -> None:
    """The clock leaps past the chosen instant while the pointer is being written."""
    world.ingest([capture(1)])
    store = world.store
    replace = type(store).replace
    leaps = iter([10.0, 0.0, 0.0])

    class Slow(type(store)):  # type: ignore[misc]
        def replace(self, key: str, data: bytes, tag: str | None) -> str:
            result: str = replace(self, key, data, tag)
            if key == layout.POINTER:
                world.clock.sleep(next(leaps))
            return result

    world.__class__ = type("SlowWorld", (World,), {"store": property(lambda w: Slow(w.root))})
    started = world.clock.now
    manifest = published(world)
    assert manifest.effective > started + timedelta(seconds=10)
    assert manifest.sequences[-1].effective == manifest.effective
    assert world.repository().pointer().newest().effective == manifest.effective  # type: ignore[union-attr]


def test_an_orphan_manifest_is_stepped_over(world: World) -> None:
    world.ingest([capture(1)])
    assert published(world).snapshot == 1
    world.store.create(layout.manifest_key(2), b"left by a publish that died")
    world.ingest([capture(2)])
    assert published(world).snapshot == 3


def test_damage_is_told_by_name(world: World) -> None:
    world.ingest([capture(n) for n in range(10)])
    manifest = published(world)
    (data,) = world.store.keys("records/records/")
    path = Path(world.root / data)
    path.write_bytes(path.read_bytes()[:100])
    repository = world.repository()
    with pytest.raises(StoreError, match=data):
        repository.page(manifest, RecordSelection(("capture",), Span(1, 10)), 5, headers=False)
    path.unlink()
    with pytest.raises(StoreError, match=data):
        repository.page(manifest, RecordSelection(("capture",), Span(1, 10)), 5, headers=False)
    summary = layout.manifest_key(manifest.snapshot)
    (world.root / summary).write_text(json.dumps({"schema": VERSION}))
    with pytest.raises(DamagedStore):
        world.repository().manifest(manifest.snapshot)
