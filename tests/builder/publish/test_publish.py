"""Publishing: what is new, changed or as it was; positions, datestamps and listings."""

from collections.abc import Callable

import pytest

from builder.intake.captures import Capture, Fault
from builder.publish.publish import NothingToPublish
from functions.snapshot import layout
from functions.snapshot.errors import ConfigurationError
from functions.snapshot.manifest import Manifest
from tests.builder.conftest import World, capture

pytestmark = pytest.mark.shared(2)


def published(
    world: World, captures: list[Capture] | None = None, collections: tuple[str, ...] = ()
) -> Manifest:
    if captures is not None:
        world.ingest(captures, collections)
    manifest = world.publish().manifest
    assert manifest is not None
    return manifest


def test_every_capture_is_listed_once_in_natural_order(world: World) -> None:
    """Its datestamp is the instant of effect, which lies ahead."""
    began = world.clock.now
    manifest = published(world, [capture(n) for n in reversed(range(100))])
    records = world.listed()
    assert [r.position for r in records] == list(range(1, 101))
    keys = [r.fields["url_surtkey"] for r in records]
    assert keys == sorted(keys)
    assert {r.datestamp for r in records} == {manifest.effective}
    assert list(world.store.keys(layout.INTAKE)) == []
    assert manifest.effective > began
    assert manifest.effective <= world.clock.now  # publish returns when it is in effect
    assert manifest.sequences[-1].effective == manifest.effective


def test_new_items_get_new_positions_and_old_ones_stay(world: World) -> None:
    first = published(world, [capture(n) for n in range(50)])
    listed = world.listed()
    before = {key: world.store.read(key) for key in world.store.keys("")}
    built = world.add([capture(n) for n in range(50)])  # the same again changes nothing
    assert (built.manifest, built.new, built.changed, built.unchanged) == (None, 0, 0, 50)
    assert world.newest().snapshot == first.snapshot
    assert list(world.store.keys(layout.INTAKE)) == []
    manifest = published(world, [capture(n) for n in range(60)])
    records = world.listed()
    assert records[:50] == listed
    assert [r.position for r in records[50:]] == list(range(51, 61))
    assert {r.datestamp for r in records[50:]} == {manifest.effective}
    assert manifest.effective > listed[0].datestamp
    after = {key: world.store.read(key) for key in world.store.keys("")}  # files are shared
    assert {k for k in before if before[k] != after.get(k)} == {layout.POINTER, layout.WITNESS}


def test_a_changed_item_moves_to_a_new_position_and_leaves_the_old(world: World) -> None:
    world.add([capture(n) for n in range(10)])
    built = world.add([capture(3, title="Corrected"), capture(4)])
    assert (built.new, built.changed, built.unchanged, built.records) == (0, 1, 1, 10)
    assert built.manifest is not None
    records = world.listed(manifest=built.manifest)
    assert len({r.identifier for r in records}) == len(records) == 10
    (moved,) = [r for r in records if r.position == 11]
    assert moved.fields["title"] == "Corrected"
    found = world.repository().record(built.manifest, moved.identifier)
    assert found == moved
    for spec in ("mime:image:png", "domain:cz:example:h3", "mime", "domain"):
        assert [r.position for r in world.listed(manifest=built.manifest, spec=spec)][-1] == 11


def test_another_collection_is_a_change_and_parents_stay_unnamed(world: World) -> None:
    world.add([capture(1), capture(2)], ("collection:serials",))
    manifest = published(world, [capture(1)], ("collection:serials:harvest_november07",))
    by_position = {r.position: r.sets for r in world.listed(manifest=manifest)}
    # Three is the collection itself, whose captures are as many as they were.
    assert "collection:serials:harvest_november07" in by_position[4]
    assert "collection:serials" not in by_position[4]
    serials = world.listed(manifest=manifest, spec="collection:serials")
    assert [r.position for r in serials] == [2, 4]
    assert len(world.listed(manifest=manifest, spec="collection:serials:harvest_november07")) == 1


def test_a_copy_elsewhere_is_no_change_but_fills_what_is_missing(world: World) -> None:
    world.add([capture(1), capture(2, title=None)])
    twin = {"warc_filename": "twin.warc.gz", "warc_record_offset": 7}
    built = world.add([capture(1, **twin), capture(2, **twin)])
    assert (built.new, built.changed, built.unchanged) == (0, 1, 1)
    assert built.manifest is not None
    filled = world.listed(manifest=built.manifest)[-1].fields
    assert filled["title"] == "Page 2"
    assert filled["warc_filename"] == "a.warc.gz"
    assert world.add([capture(1), capture(2, title=None)]).changed == 0  # the first copies


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
        (record,) = world.listed(manifest=published(world, some, ("collection:x",)))
        found.append(record)
        assert record.fields["warc_filename"] == "a.warc.gz"
        assert record.fields["content_truncated"] == "length"
    assert found[0] == found[1]


def test_the_same_input_gives_the_same_bytes(make_world: Callable[[str], World]) -> None:
    stores = []
    for name, order in (("one", 1), ("other", -1)):
        world = make_world(name)
        world.add([capture(n) for n in range(300)][::order])
        stores.append({key: world.store.read(key) for key in world.store.keys("")})
    assert stores[0] == stores[1]


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


def test_nothing_at_all_is_a_fault_of_the_user_and_faults_alone_are_not(world: World) -> None:
    with pytest.raises(NothingToPublish, match="sheaf ingest"):
        world.publish()
    world.ingest([], faults=(Fault("x", None, "empty-file"),))
    manifest = published(world)
    assert manifest.kinds() == {}
    assert world.listed() == []
    world.ingest([capture(2)])
    with pytest.raises(ConfigurationError, match="identifiers must not change"):
        world.publish(namespace="other.example.org")
    world.store.create(layout.manifest_key(2), b"left by a publish that died")
    assert published(world).snapshot == 3
