"""Verify: a sound store has no finding, and each defect is found and named."""

import errno
import hashlib
import io
import json
import os
import re
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from builder import progress
from builder.errors import UsageError
from builder.intake.captures import Capture
from builder.publish.selection import Selection
from builder.snapshot import set_listings, views
from builder.snapshot.views import store_views
from builder.store import durable
from builder.store.findings import CODES, DAMAGE
from builder.store.folder import FolderStore
from builder.store.parquet.data_file import group_span
from builder.verify.choice import Sample, StorePart, parse_part
from builder.verify.inventory import Inventory
from builder.verify.report import report_text
from builder.verify.verify import file_findings, verify
from functions.snapshot import layout, schema
from functions.snapshot.errors import NewerSchema, OlderSchemaError, StoreError
from functions.snapshot.manifest import DataFile, Leaf, Manifest, RowGroup
from functions.snapshot.pointer import Pointer, PointerEntry, Witness
from functions.store.catalog import Catalogue
from tests.builder.conftest import Clock, World, capture, checking, leave_out_copy, resize
from tests.builder.row_checks import row_problems
from tests.extent import examples

pytestmark = pytest.mark.shared(3)


def made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    resize(monkeypatch, GROUP_ROWS=8, FILE_GROUPS=3, LEAF_FILES=2)
    monkeypatch.setattr(set_listings, "SPREAD", 0.4)


def fill(world: World) -> None:
    """Publish, change, withdraw and expire, so that every table has several runs and files."""
    for number in range(9):
        some = [capture(n, title=str(number)) for n in range(number * 3, 48, number % 4 + 2)]
        some = some if number == 0 else [*some[: 9 - number], capture(100 + number)]
        if number == 5:
            some += [capture(n) for n in range(200, 240)]
        world.add(some, (f"collection:c{number % 3}",))
        if number == 4:
            chosen = Selection(set="domain:cz:example:h3")
            world.withdraw(chosen)
        if number == 6:
            world.clock.sleep(100)
            world.expire(keep=2)


def revisit(number: int, kind: int) -> Capture:
    """Return a revisit with the digest of all captures, with one of its own, or to one of them."""
    values: dict[str, Any] = {"warc_record_type": "revisit", "title": None, "content_length": 0}
    if kind == 1:
        values |= {"content_digest": f"D{number}"}
    if kind == 2:
        values |= {"refers_to_url": capture(9).url, "refers_to_date": capture(9).fetch_date}
    return capture(number, **values)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> World:
    with pytest.MonkeyPatch.context() as monkeypatch:
        made_small(monkeypatch)
        world = World(tmp_path_factory.mktemp("filled") / "store")
        fill(world)
    return world


@pytest.fixture(scope="module")
def trimmed(filled: World, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The same, of which the newest snapshot alone is kept: it is verified in half of the time."""
    world = World(tmp_path_factory.mktemp("trimmed") / "store", Clock(filled.clock.now))
    shutil.copytree(filled.root, world.root)
    world.clock.sleep(100)
    world.expire(keep=1)
    return world


def copied(world: World, folder: Path) -> World:
    shutil.copytree(world.root, folder / "store")
    # Without a copy of the manifest, as in 0.2.0: an edited manifest is found by itself.
    path = folder / "store" / layout.WITNESS
    witness = Witness.from_json(path.read_bytes())
    path.write_bytes(Witness(witness.store, witness.newest).to_json())
    return World(folder / "store", Clock(world.clock.now), runs=20)


@pytest.fixture
def sound(trimmed: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Give a store of its own to each test."""
    made_small(monkeypatch)
    return copied(trimmed, tmp_path)


@pytest.fixture
def varied(filled: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Give a store of its own, with several snapshots, to each test."""
    made_small(monkeypatch)
    return copied(filled, tmp_path)


@pytest.fixture(scope="module")
def healed(trimmed: World, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Add revisits by two publishes, of which one heals some of the other."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        made_small(monkeypatch)
        world = copied(trimmed, tmp_path_factory.mktemp("healed"))
        world.add([revisit(400 + n, n % 3) for n in range(9)])
        some = (revisit(410 + n, n) for n in range(3))
        world.add([capture(500, content_digest="D401"), *some])
    return world


@pytest.fixture
def revisited(healed: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Give that store to each test, one of its own."""
    made_small(monkeypatch)
    return copied(healed, tmp_path)


def found(world: World, **options: Any) -> set[tuple[str, str]]:
    """Return codes and objects of the findings; leaves that tests write have no checksums."""
    findings = world.verify(**options).findings
    return {(f.code, f.object) for f in findings}


def listed(world: World, **options: bool) -> set[tuple[str, str]]:
    """Return the same of what can be told without reading a data file."""
    return found(world, choice=Sample(0, 1), **options)


def files(world: World, table: str) -> list[DataFile]:
    """Return the data files of the newest snapshot."""
    return list(Catalogue(world.store).files(world.newest(), table))


def edit(world: World, key: str, change: Callable[[Any], None]) -> None:
    """Change a JSON document in its place."""
    document = json.loads((world.root / key).read_bytes())
    change(document)
    (world.root / key).write_text(json.dumps(document))


def rewritten(world: World, key: str, rows: pa.Table) -> str:
    """Put other rows in the place of a data file of the newest snapshot; return the new key.

    Digest, leaf, manifest and views are made anew, so that only the rows themselves tell.
    """
    manifest = world.newest()
    table = key.split("/")[1]
    scratch = world.root.parent / "rewritten.parquet"
    pq.write_table(rows, scratch, row_group_size=layout.GROUP_ROWS, compression="zstd")
    data = scratch.read_bytes()
    new = layout.data_key(table, hashlib.sha256(data).hexdigest()[:32])
    (world.root / new).write_bytes(data)
    metadata = pq.read_metadata(scratch)
    names = schema.ORDER[table][: schema.KEY[table]]
    groups, start = [], 0
    for number in range(metadata.num_row_groups):
        count, offset, length = group_span(metadata.row_group(number))
        edges = [
            tuple(rows.column(name)[row].as_py() for name in names)
            for row in (start, start + count - 1)
        ]
        first, last = (edge if len(names) > 1 else edge[0] for edge in edges)
        check = zlib.crc32(data[offset : offset + length])
        groups.append(RowGroup(first, last, count, offset, length, 0, check))
        start += count
    file = DataFile(new, len(data), metadata.serialized_size + 8, tuple(groups))
    references = []
    for reference in manifest.tables[table]:
        leaf = Catalogue(world.store).leaf(reference)
        changed = Leaf(tuple(file if f.key == key else f for f in leaf.files))
        text = changed.to_json()
        leaf_key = layout.leaf_key(hashlib.sha256(text).hexdigest()[:32])
        (world.root / leaf_key).write_bytes(text)
        references.append(
            structs.replace(
                reference,
                key=leaf_key,
                first=changed.files[0].groups[0].first,
                last=changed.files[-1].groups[-1].last,
                rows=sum(f.rows for f in changed.files),
                bytes=sum(f.bytes for f in changed.files),
            )
        )
    put(world, replace(manifest, tables={**manifest.tables, table: tuple(references)}))
    return new


def put(world: World, manifest: Manifest) -> None:
    """Write a manifest, without leaves in it, and its views over those that are there."""
    manifest = replace(manifest, leaves={})
    (world.root / manifest.key).write_bytes(manifest.to_json())
    leave_out_copy(world.root)
    text = store_views(Catalogue(world.store), manifest)
    (world.root / layout.views_key(manifest.snapshot)).write_text(text, "utf-8")


def table_of(world: World, key: str) -> pa.Table:
    return pq.read_table((world.root / key), partitioning=None)


def with_column(rows: pa.Table, name: str, values: list[Any]) -> pa.Table:
    index = rows.schema.get_field_index(name)
    return rows.set_column(
        index, rows.schema.field(name), pa.array(values, rows.schema.types[index])
    )


# Sound stores.


def test_a_store_with_a_history_has_no_finding(varied: World) -> None:
    done = varied.verify()
    assert done.findings == ()
    assert len(done.snapshots) > 3
    assert done.read == done.files == len(list(varied.store.keys(layout.RECORDS)))
    assert done.bytes == sum(e.bytes for e in varied.store.entries(layout.RECORDS))
    manifest = varied.newest()
    for table in ("records", "copies", "sets", "lookup", "dead", "urls", "sources"):
        assert manifest.rows(table) > 0, table


@pytest.mark.thorough
def test_tables_of_the_usual_size_have_no_finding(world: World) -> None:
    world.add([capture(n) for n in range(9000)])
    world.add([capture(n, title="anew") for n in range(0, 9000, 7)])
    assert found(world) == set()


@pytest.mark.thorough
def test_rows_that_are_written_anew_as_they_were_are_no_finding(sound: World) -> None:
    for table in ("records", "copies", "sets", "lookup", "dead", "urls"):
        key = files(sound, table)[0].key
        rewritten(sound, key, table_of(sound, key))
    assert found(sound) == set()


def test_a_store_with_revisits_has_no_finding(revisited: World) -> None:
    manifest = revisited.newest()
    assert (manifest.revisits, manifest.unresolved) == (12, 3)
    assert found(revisited) == set()


def test_an_empty_store_has_no_finding(world: World) -> None:
    assert found(world) == set()
    world.ingest([capture(1)])
    assert found(world) == set()
    assert "no problems found" not in report_text(world.verify(), None)


def test_the_newest_snapshot_alone(varied: World) -> None:
    done = varied.verify(newest_only=True)
    assert done.findings == ()
    assert done.snapshots == (varied.newest().snapshot,)
    assert done.files == sum(len(files(varied, table)) for table in schema.TABLES)


def test_a_sample_is_drawn_by_its_seed(sound: World) -> None:
    done = sound.verify(choice=Sample(10, 7))
    assert done.findings == ()
    assert done.read == -(-done.files // 10)
    assert sound.verify(choice=Sample(10, 7)).bytes == done.bytes
    assert any(sound.verify(choice=Sample(10, seed)).bytes != done.bytes for seed in range(9))


@pytest.mark.thorough
def test_parts_are_the_whole_store_and_each_finds_its_own_damage(sound: World) -> None:
    whole = sound.verify()
    parts = [sound.verify(choice=StorePart(number, 3)) for number in (1, 2, 3)]
    assert sum(part.read for part in parts) == whole.files
    assert sum(part.bytes for part in parts) == whole.bytes
    assert all(part.read and not part.findings for part in parts)
    key = files(sound, "records")[0].key
    flipped(sound, key, 99)
    holding = [number for number in (1, 2, 3) if sound.verify(choice=StorePart(number, 3)).damaged]
    assert holding == [number for number in (1, 2, 3) if StorePart(number, 3).holds(key)]
    assert len(holding) == 1


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "1/0", "-1/3", "1/3/3", "a/b", "", "1/ 3"])
def test_a_part_that_there_is_not_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected K/N"):
        parse_part(text)
    assert parse_part("3/3") == StorePart(3, 3)


# What is damaged.


def flipped(world: World, key: str, place: int) -> None:
    data = bytearray((world.root / key).read_bytes())
    data[place % len(data)] ^= 1 << (place % 8)
    (world.root / key).write_bytes(data)


def test_every_flipped_byte_of_every_data_file_is_found(filled: World, tmp_path: Path) -> None:
    shutil.copytree(filled.root, tmp_path / "store")
    world = World(tmp_path / "store", filled.clock)
    every = [file.key for table in schema.TABLES for file in files(world, table)]

    @settings(max_examples=examples(60), deadline=None)
    @given(st.sampled_from(every), st.integers(0, 1 << 20))
    def flip(key: str, place: int) -> None:
        sound = (world.root / key).read_bytes()
        flipped(world, key, place)
        (finding,) = file_findings(world.store, key)
        (world.root / key).write_bytes(sound)
        assert (finding.code, finding.object) == ("file-digest", key)
        assert [*file_findings(world.store, key)] == []

    flip()


def test_no_flipped_byte_of_a_document_is_more_than_a_finding(
    filled: World, tmp_path: Path
) -> None:
    """Not every one can be found, for a manifest is not named by its content."""
    keys = [layout.POINTER, *sorted(filled.store.keys(layout.SNAPSHOTS))]
    shutil.copytree(filled.root, tmp_path / "store")
    world = World(tmp_path / "store", filled.clock)

    @settings(max_examples=examples(60), deadline=None)
    @given(st.sampled_from(keys), st.integers(0, 1 << 16))
    def flip(key: str, place: int) -> None:
        sound = (world.root / key).read_bytes()
        flipped(world, key, place)
        try:
            findings = Inventory.take(world.store, world.clock()).findings
            assert findings or key.endswith(("manifest.json", "/settled"))
        except (NewerSchema, OlderSchemaError):
            assert not key.startswith("snapshots/leaves/")
        (world.root / key).write_bytes(sound)

    flip()


def test_missing_files(sound: World) -> None:
    keys = {files(sound, table)[-1].key for table in schema.TABLES if files(sound, table)}
    assert len(keys) == 15
    for key in keys:
        (sound.root / key).unlink()
    missing = {("file-missing", key) for key in keys}
    assert missing <= found(sound)
    assert missing <= found(sound, choice=Sample(1, 1))


def test_a_file_cut_short_and_a_flipped_byte(sound: World) -> None:
    short, key, *_ = (file.key for file in files(sound, "records"))
    (sound.root / short).write_bytes((sound.root / short).read_bytes()[:-1])
    assert ("file-size", short) in listed(sound)
    flipped(sound, key, 100)
    assert found(sound) == {("file-size", short), ("file-digest", key)}


def test_a_leaf_that_is_missing_or_edited(sound: World) -> None:
    records, dead = (sound.newest().tables[table][0].key for table in ("records", "dead"))
    (sound.root / records).unlink()
    flipped(sound, dead, 40)
    assert {("leaf-missing", records), ("leaf-damaged", dead)} <= found(sound)


EDITED: dict[str, Callable[[Any], object]] = {
    "number": lambda d: d.update(snapshot=99),
    "effective": lambda d: d.update(effective="2020-01-01T00:00:00Z"),
    "skipped": lambda d: d.update(skipped=[500]),
    "sequence": lambda d: d["sequences"].pop(1),
    "positions": lambda d: d["sequences"][2].__setitem__(2, 1),
    "datestamp": lambda d: d["sequences"][0].__setitem__(1, "2019-01-01T00:00:00Z"),
    "too-many": lambda d: d["sequences"][0].__setitem__(4, {"capture": 999}),
    "table": lambda d: d["tables"].update(wrong=d["tables"]["records"]),
    "runs": lambda d: d["tables"]["records"].reverse(),
    "key": lambda d: d["tables"]["records"][0].update(key="../../etc/passwd"),
    "namespace": lambda d: d.update(namespace="another.example.org"),
    "run-late": lambda d: d["tables"]["lookup"][-1]["span"].__setitem__(0, 103),
    "run-short": lambda d: d["tables"]["lookup"][-1]["span"].__setitem__(1, 109),
    "no-run": lambda d: d["tables"]["dead"][-1].update(span=None),
}


@pytest.mark.parametrize("change", EDITED.values(), ids=EDITED)
def test_an_edited_manifest(varied: World, change: Callable[[Any], None]) -> None:
    key = varied.newest().key
    edit(varied, key, change)
    assert ("manifest-wrong", key) in listed(varied)


@pytest.mark.parametrize("name", ["rows", "bytes", "files", "first", "last"])
def test_a_manifest_that_counts_another_way_than_its_leaf(sound: World, name: str) -> None:
    manifest = sound.newest()
    leaf = manifest.tables["lookup"][0]
    value = getattr(leaf, name) + 1
    edit(sound, manifest.key, lambda d: d["tables"]["lookup"][0].__setitem__(name, value))
    assert ("leaf-wrong", leaf.key) in listed(sound)


@pytest.mark.parametrize(
    "change",
    [
        lambda leaves, key: leaves[key][0].update(bytes=1),
        lambda leaves, key: leaves.update({layout.leaf_key("0" * 32): leaves[key]}),
    ],
    ids=["other", "of-no-table"],
)
def test_a_manifest_that_says_of_a_leaf_what_that_does_not(
    sound: World, change: Callable[[Any, str], None]
) -> None:
    manifest = sound.newest()
    key = manifest.tables["records"][0].key
    assert key in manifest.leaves
    edit(sound, manifest.key, lambda d: change(d["leaves"], key))
    assert ("manifest-wrong", manifest.key) in listed(sound)


@pytest.mark.parametrize("name", ["manifest.json", "views.sql"])
def test_a_missing_or_damaged_manifest_and_views(varied: World, name: str) -> None:
    key = f"snapshots/{varied.newest().snapshot - 1}/{name}"
    kind = "manifest" if name == "manifest.json" else "views"
    text = (varied.root / key).read_bytes()
    (varied.root / key).write_bytes(text[:-30])
    assert (f"{kind}-damaged", key) in listed(varied)
    (varied.root / key).unlink()
    assert (f"{kind}-missing", key) in listed(varied)


def test_any_flipped_bit_of_the_views_is_found(sound: World) -> None:
    manifest = sound.newest()
    good = (sound.root / layout.views_key(manifest.snapshot)).read_bytes()
    text = store_views(Catalogue(sound.store), manifest)
    for place in range(0, len(good), 7):
        flipped = good[:place] + bytes([good[place] ^ 1 << place % 8]) + good[place + 1 :]
        assert views.fault(manifest, flipped, lambda: text)
    assert not views.fault(manifest, good, lambda: text)


def test_views_that_differ_are_damaged_and_can_be_repaired(sound: World) -> None:
    key = layout.views_key(sound.newest().snapshot)
    good = (sound.root / key).read_bytes()
    assert listed(sound) == set()
    (sound.root / key).write_bytes(b"-- A line more.\n" + good)
    assert listed(sound) == {("views-damaged", key)}
    assert listed(sound, repair=True) == {("views-repaired", key)}
    assert (sound.root / key).read_bytes() == good
    (sound.root / key).unlink()
    assert listed(sound) == {("views-missing", key)}
    assert listed(sound, repair=True) == {("views-repaired", key)}
    assert (sound.root / key).read_bytes() == good
    assert listed(sound) == set()


def test_views_of_another_program_are_right_by_their_digest(
    sound: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = layout.views_key(sound.newest().snapshot)
    before = (sound.root / key).read_bytes()
    template = tmp_path / "views.sql"
    template.write_text("-- Another program.\n" + views._TEMPLATE.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(views, "_TEMPLATE", template)
    assert listed(sound) == set()
    (sound.root / key).unlink()
    assert listed(sound, repair=True) == {("views-repaired", key)}
    assert (sound.root / key).read_bytes() == b"-- Another program.\n" + before
    assert listed(sound) == set()


def test_views_stay_where_the_manifest_cannot_give_them(sound: World) -> None:
    manifest = sound.newest()
    (sound.root / layout.views_key(manifest.snapshot)).write_bytes(b"SELECT 1")
    (sound.root / manifest.tables["records"][0].key).unlink()
    codes = {code for code, _ in listed(sound, repair=True)}
    assert codes == {"views-damaged", "leaf-missing"}
    assert (sound.root / layout.views_key(manifest.snapshot)).read_bytes() == b"SELECT 1"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda d: d.pop("settled"), "pointer-damaged"),
        (lambda d: d["snapshots"].reverse(), "pointer-damaged"),
        (lambda d: d.update(snapshots=[]), "pointer-wrong"),
        (lambda d: d.update(retired=[[5, 6], [1, 2]]), "pointer-wrong"),
        (lambda d: d.update(retired=[[1, 99]]), "pointer-wrong"),
        (lambda d: d.update(settled=False), "pointer-unsettled"),
        (
            lambda d: d.update(expiry={"snapshots": [3], "until": "2020-01-01T00:00:00Z"}),
            "expiry-unfinished",
        ),
    ],
    ids=["unsettled", "order", "empty", "retired-order", "retired", "settled", "expiry"],
)
def test_an_edited_pointer(varied: World, change: Callable[[Any], None], code: str) -> None:
    edit(varied, layout.POINTER, change)
    assert ("pointer-damaged", layout.POINTER) in listed(varied)
    edit(varied, layout.POINTER, lambda d: d.pop("sha256"))
    assert (code, layout.POINTER) in listed(varied)


def test_a_pointer_to_nowhere_to_the_past_and_to_another_instant(varied: World) -> None:
    entry = Catalogue(varied.store).pointer().entries[-1]
    number = entry.snapshot
    place = varied.root / layout.POINTER
    place.unlink()
    assert ("pointer-missing", layout.POINTER) in found(varied)
    behind = ("pointer-behind", layout.POINTER)
    for pointer, expected in (
        (pointed(entry, number - 2), behind),
        (pointed(entry, 99), ("manifest-missing", "snapshots/99/manifest.json")),
        (pointed(entry, number - 1), ("manifest-wrong", layout.manifest_key(number - 1))),
        (Pointer(), behind),
        (Pointer(retired=((1, 1),)), ("pointer-wrong", layout.POINTER)),
    ):
        place.write_bytes(pointer.to_json())
        assert expected in listed(varied)


def pointed(entry: PointerEntry, number: int) -> Pointer:
    return Pointer((structs.replace(entry, snapshot=number),))


def test_a_retired_snapshot_that_the_pointer_calls_kept(sound: World) -> None:
    edit(sound, layout.POINTER, lambda d: (d.pop("retired"), d.pop("sha256")))
    assert ("manifest-missing", "snapshots/1/manifest.json") in listed(sound)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("number", "outcome"), [(errno.EIO, "found"), (errno.ETIMEDOUT, "raised")], ids=["disk", "way"]
)
def test_a_disk_that_fails_is_damage_and_an_unreachable_store_is_none(
    sound: World, number: int, outcome: str
) -> None:
    bad = files(sound, "records")[0].key

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(number, os.strerror(number))

    class Store(FolderStore):
        def open(self, key: str) -> BinaryIO:
            return Broken() if key == bad else super().open(key)

    if outcome == "found":
        findings = sound.verify(Store(sound.root), newest_only=True).findings
        assert ("file-unreadable", bad) in {(f.code, f.object) for f in findings}
    else:
        with pytest.raises(StoreError, match=bad):
            sound.verify(Store(sound.root), newest_only=True)


# Rows that lie in files that are whole, which the checks of the tests tell.


def each(column: str, change: Callable[[Any], Any]) -> Callable[[pa.Table], pa.Table]:
    """Return a change of all values of a column but NULL."""

    def apply(rows: pa.Table) -> pa.Table:
        values = rows.column(column).to_pylist()
        return with_column(rows, column, [v if v is None else change(v) for v in values])

    return apply


def first(rows: pa.Table) -> pa.Table:
    return rows.slice(0, 1)


def swapped(rows: pa.Table) -> pa.Table:
    return rows.take([*range(1, len(rows)), 0])


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("table", "change", "problem"),
    [
        ("records", each("sequence", lambda n: 1), "outside of their sequence"),
        ("records", each("title", lambda title: ""), "a single version differs"),
        ("records", each("identifier", lambda name: f"oai:b.cz:{name}"), "another namespace"),
        ("records", each("identifier", lambda name: f"{name}x"), "look-up lacks a position"),
        ("records", each("sets", lambda sets: sets[:1]), "counts of a set are not those"),
        ("records", each("refers_to", lambda name: "x"), "cannot be its original"),
        ("records", each("deleted", lambda gone: True), "a tombstone has metadata"),
        ("records", swapped, "not in order"),
        ("copies", each("title", lambda title: ""), "a copy differs"),
        ("copies", first, "a copy is missing"),
        ("sets", each("live", lambda count: count + 1), "do not add up"),
        ("sets", each("turns", lambda turns: [9, *turns]), "do not add up"),
        ("sets", each("ranges", lambda ranges: ranges[1:]), "outside of the ranges"),
        ("sets", each("ranges", lambda ranges: ranges * 2), "empty or overlap"),
        ("sets", first, "sets are"),
        ("lookup", each("position", lambda place: 1), "position of another item"),
        ("lookup", first, "look-up lacks a position"),
        ("singles", each("text", lambda text: f"{text}x"), "a single version differs"),
        ("dead", each("position", lambda place: 10**6), "were not superseded"),
        ("dead", first, "are not dead"),
        ("originals", each("key", lambda key: key + 1), "originals is of another record"),
        ("originals", first, "a capture cannot be found by its keys"),
        ("revisits", each("key", lambda key: key + 1), "revisits is of another revisit"),
        ("revisits", first, "a revisit cannot be found by its keys"),
        ("urls", each("stamp", lambda stamp: stamp + 1), "urls is of another capture"),
        ("urls", first, "a capture cannot be found by its URL"),
    ],
)
def test_each_row_that_lies(
    revisited: World, table: str, change: Callable[[pa.Table], pa.Table], problem: str
) -> None:
    assert row_problems(revisited.store) == []
    for file in files(revisited, table):
        rows = table_of(revisited, file.key)
        if len(rows) > 1:
            rewritten(revisited, file.key, change(rows))
    problems = row_problems(revisited.store)
    assert any(problem in text for text in problems), problems


@pytest.mark.parametrize("name", ["tombstones", "sets", "emptied", "revisits", "unresolved"])
def test_a_manifest_that_counts_otherwise(revisited: World, name: str) -> None:
    manifest = revisited.newest()
    put(revisited, replace(manifest, **{name: getattr(manifest, name) + 1}))
    (problem,) = row_problems(revisited.store)
    assert f"{name} are" in problem


@pytest.mark.thorough
def test_sets_without_turns_are_put_right_by_the_next_publish(world: World) -> None:
    """Earlier programs gave none to sets that began empty, and counted these at each publish."""
    world.add([capture(n, sets=(f"m:{n}",)) for n in range(4)])
    for number in (0, 1):
        world.withdraw(Selection(set=f"m:{number}"))
    (file,) = files(world, "sets")
    rows = table_of(world, file.key)
    turns = [row["turns"] if row["live"] else None for row in rows.to_pylist()]
    rewritten(world, file.key, with_column(rows, "turns", turns))
    put(world, replace(world.newest(), emptied=5))
    assert len(row_problems(world.store)) == 2
    world.add([capture(4, sets=("m:4",))])
    assert all(text.startswith("snapshot 3: ") for text in row_problems(world.store))
    assert world.newest().emptied == 2


# What is merely left over.


def test_what_is_left_over_is_noted(sound: World) -> None:
    orphan = layout.data_key("records", "0" * 32)
    leaf = layout.leaf_key("0" * 32)
    for key in (orphan, leaf, "snapshots/77/views.sql", "intake/run-x/captures-1.parquet"):
        (sound.root / key).parent.mkdir(parents=True, exist_ok=True)
        (sound.root / key).write_bytes(b"x")
    (sound.root / ".tmp").mkdir(exist_ok=True)
    (sound.root / ".tmp" / "abc").write_bytes(b"x")
    for name in ("begun.json", "parts/part-000000.json"):
        (sound.root / ".tmp/ingest-1" / name).parent.mkdir(parents=True, exist_ok=True)
        (sound.root / ".tmp/ingest-1" / name).write_bytes(b"x")
    left = {("intake-unfinished", "intake/run-x/"), ("temporary", ".tmp/abc")}
    left |= {("ingest-unfinished", ".tmp/ingest-1/")}
    damaged = sound.root / "intake/run-y/run.json"
    damaged.parent.mkdir()
    damaged.write_bytes(b"{")
    assert listed(sound) == left | {("intake-damaged", "intake/run-y/run.json")}
    shutil.rmtree(damaged.parent)
    assert listed(sound) == left  # what is young may belong to a publish in progress
    for key in (orphan, leaf, "snapshots/77/views.sql"):
        os.utime((sound.root / key), (0, 0))
    old = {("orphan", orphan), ("orphan", leaf), ("orphan", "snapshots/77/views.sql")}
    assert listed(sound) == left | old
    assert not sound.verify(choice=Sample(0, 1)).damaged
    assert found(sound, newest_only=True, choice=Sample(0, 1)) == left


def test_what_is_expired_meanwhile_is_no_damage(sound: World) -> None:
    sound.clock.sleep(100)

    class Expiring(FolderStore):
        def open(self, key: str) -> Any:
            if Catalogue(sound.store).pointer().retired[-1][1] < sound.newest().snapshot - 1:
                sound.expire(keep=1)
            return super().open(key)

    done = sound.verify(Expiring(sound.root))
    assert not done.damaged
    assert found(sound) == set()


def test_every_code_has_a_kind_and_a_remedy() -> None:
    assert {kind for kind, _ in CODES.values()} == {DAMAGE, "note"}
    assert all(remedy for _, remedy in CODES.values())


def test_a_long_check_tells_each_chunk_and_its_phases(
    sound: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One large file is not read in one step, and what comes behind the files has a name."""
    monkeypatch.setattr(durable, "_CHUNK", 512)
    monkeypatch.setattr(progress, "EVERY", 1.0)
    out, phases = io.StringIO(), list[str]()
    enter = progress.ProgressBar.enter_phase

    def note(bar: progress.ProgressBar, what: str) -> None:
        phases.append(what)
        enter(bar, what)

    monkeypatch.setattr(progress.ProgressBar, "enter_phase", note)
    ticks = iter(range(1_000_000))
    runtime = replace(
        checking(sound.clock),
        progress=lambda total: progress.ProgressBar("", total, "B", out, clock=lambda: next(ticks)),
    )
    done = verify(sound.store, runtime)
    shown = re.findall(r"^data files, ([\d,]+) of ([\d,]+) MB", out.getvalue(), re.MULTILINE)
    assert len(shown) > done.files  # more than one line a file
    assert phases[0] == "data files"
    assert phases[-2:] == ["log, tables, dumps and site", "leftovers"]
