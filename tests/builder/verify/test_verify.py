"""Verify: a sound store has no finding, and each defect is found and named."""

import errno
import hashlib
import io
import json
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from builder.errors import UsageError
from builder.intake.captures import Capture
from builder.publish.selection import Selection
from builder.snapshot import set_listings, views
from builder.snapshot.views import store_views
from builder.store.findings import CODES, DAMAGE
from builder.store.folder import FolderStore
from builder.store.parquet.data_file import group_span
from builder.verify.choice import Sample, StorePart, parse_part
from builder.verify.data_files import DataFileIndex
from builder.verify.inventory import Inventory
from functions.snapshot import layout, schema
from functions.snapshot.errors import NewerSchema, OlderSchemaError, StoreError
from functions.snapshot.manifest import DataFile, Leaf, Manifest, RowGroup
from functions.snapshot.pointer import Pointer, PointerEntry, Witness
from functions.store import engine
from functions.store.catalog import Catalogue
from tests.builder.conftest import Clock, World, capture, leave_out_copy, resize
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


def told(world: World, code: str) -> set[tuple[str, str]]:
    """Return objects and problems of the findings of a code, numbers written as N."""
    return {
        (finding.object, re.sub(r"[0-9,]*[0-9]", "N", finding.problem))
        for finding in world.verify().findings
        if finding.code == code
    }


def files(world: World, table: str) -> list[DataFile]:
    """Return the data files of the newest snapshot."""
    return list(Catalogue(world.store).files(world.newest(), table))


def file_of(world: World, key: str) -> DataFile:
    """Return what the newest snapshot says of a data file."""
    return next(file for file in files(world, key.split("/")[1]) if file.key == key)


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


def positions_of(world: World, table: str) -> set[int]:
    keys = [file.key for file in files(world, table)]
    return {p for key in keys for p in table_of(world, key).column("position").to_pylist()}


def change_first(world: World, table: str, change: Callable[[pa.Table], pa.Table | None]) -> str:
    """Change the first file whose rows allow it; return its new key."""
    for file in files(world, table):
        rows = change(table_of(world, file.key))
        if rows is not None:
            return rewritten(world, file.key, rows)
    raise AssertionError(f"no file of {table} can be changed")


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


@pytest.fixture
def evidence(tmp_path: Path) -> Iterator[DataFileIndex]:
    """Read files one by one, as verify does."""
    connection = engine.connect(scratch=tmp_path)
    yield DataFileIndex(connection, tmp_path)
    connection.close()


def examined(
    evidence: DataFileIndex, world: World, table: str, file: DataFile
) -> set[tuple[str, str]]:
    findings = evidence.add(world.store, table, file, lambda count: None)
    return {(finding.code, finding.object) for finding in findings}


def test_every_flipped_byte_of_every_data_file_is_found(
    filled: World, tmp_path: Path, evidence: DataFileIndex
) -> None:
    shutil.copytree(filled.root, tmp_path / "store")
    world = World(tmp_path / "store", filled.clock)
    there = {table: files(world, table) for table in schema.TABLES}
    every = [(table, file) for table, some in there.items() for file in some]

    @settings(max_examples=examples(60), deadline=None)
    @given(st.sampled_from(every), st.integers(0, 1 << 20))
    def flip(one: tuple[str, DataFile], place: int) -> None:
        key = one[1].key
        sound = (world.root / key).read_bytes()
        flipped(world, key, place)
        codes = examined(evidence, world, *one)
        (world.root / key).write_bytes(sound)
        assert codes == {("file-digest", key)}
        assert key in evidence.broken

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


def test_a_file_cut_short_and_a_flipped_byte_leave_the_listings_unchecked(sound: World) -> None:
    short, key, *_ = (file.key for file in files(sound, "records"))
    (sound.root / short).write_bytes((sound.root / short).read_bytes()[:-1])
    assert ("file-size", short) in listed(sound)
    flipped(sound, key, 100)
    findings = found(sound)
    assert ("file-digest", key) in findings
    assert ("unchecked", sound.newest().key) in findings


def test_a_leaf_that_is_missing_or_edited(sound: World) -> None:
    records, dead = (sound.newest().tables[table][0].key for table in ("records", "dead"))
    (sound.root / records).unlink()
    flipped(sound, dead, 40)
    assert {("leaf-missing", records), ("leaf-damaged", dead)} <= found(sound)


def tailed(file: DataFile, more: int) -> DataFile:
    """Return the file with a footer of another length behind its first row group."""
    first, *rest = file.groups
    return structs.replace(file, groups=(structs.replace(first, tail=first.tail + more), *rest))


def grouped(**changes: int) -> Callable[[DataFile], DataFile]:
    return lambda file: structs.replace(
        file,
        groups=(structs.replace(file.groups[0], **changes), *file.groups[1:]),  # type: ignore[arg-type]
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "change",
    [
        grouped(rows=3),
        grouped(offset=5),
        grouped(length=5),
        grouped(first=0),
        grouped(last=1),
        lambda file: structs.replace(file, footer=file.footer - 1),
        lambda file: tailed(file, -1),
        lambda file: tailed(file, 8),
        lambda file: structs.replace(file, bytes=file.bytes - 1),
    ],
    ids=["rows", "offset", "length", "first", "last", "footer", "shorter", "longer", "bytes"],
)
def test_a_file_that_is_not_what_its_leaf_says(
    trimmed: World, evidence: DataFileIndex, change: Callable[[DataFile], DataFile]
) -> None:
    file = files(trimmed, "records")[0]
    assert examined(evidence, trimmed, "records", file) == set()
    assert examined(evidence, trimmed, "records", change(file)) == {("file-wrong", file.key)}


def test_a_leaf_that_says_what_the_file_does_not(sound: World) -> None:
    """It is named anew, so that nothing else tells; of the size, a file cut short does."""
    manifest = sound.newest()
    first, *rest = manifest.tables["records"]
    file, *others = Catalogue(sound.store).leaf(first).files
    data = Leaf((grouped(rows=3)(file), *others)).to_json()
    key = layout.leaf_key(hashlib.sha256(data).hexdigest()[:32])
    (sound.root / key).write_bytes(data)
    tables = {**manifest.tables, "records": (structs.replace(first, key=key), *rest)}
    put(sound, replace(manifest, tables=tables))
    assert ("file-wrong", file.key) in found(sound)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(snapshot=99),
        lambda d: d.update(effective="2020-01-01T00:00:00Z"),
        lambda d: d.update(skipped=[500]),
        lambda d: d["sequences"].pop(1),
        lambda d: d["sequences"][2].__setitem__(2, 1),
        lambda d: d["sequences"][0].__setitem__(1, "2019-01-01T00:00:00Z"),
        lambda d: d["sequences"][0].__setitem__(4, {"capture": 999}),
        lambda d: d["tables"].update(wrong=d["tables"]["records"]),
        lambda d: d["tables"]["records"].reverse(),
        lambda d: d["tables"]["records"][0].update(key="../../etc/passwd"),
        lambda d: d.update(namespace="another.example.org"),
        lambda d: d["tables"]["lookup"][-1]["span"].__setitem__(0, 103),
        lambda d: d["tables"]["lookup"][-1]["span"].__setitem__(1, 109),
        lambda d: d["tables"]["dead"][-1].update(span=None),
    ],
    ids=[
        "number",
        "effective",
        "skipped",
        "sequence",
        "positions",
        "datestamp",
        "too-many",
        "table",
        "runs",
        "key",
        "namespace",
        "run-late",
        "run-short",
        "no-run",
    ],
)
def test_an_edited_manifest(varied: World, change: Callable[[Any], None]) -> None:
    key = varied.newest().key
    edit(varied, key, change)
    assert ("manifest-wrong", key) in listed(varied)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "spans",
    [
        {"copies": [110, 121], "dead": [1, 35]},  # readers would find no copy
        {"lookup": [119, 121], "dead": [119, 121]},
    ],
    ids=["copies", "lookup"],
)
def test_runs_of_other_publishes_than_their_rows_are_of(
    sound: World, spans: dict[str, list[int]]
) -> None:
    keys = {sound.newest().tables[table][-1].key for table in spans}

    def change(document: Any) -> None:
        for table, run in spans.items():
            references = document["tables"][table]
            last = references[-1]["span"]
            for reference in references:
                if reference["span"] == last:
                    reference["span"] = run

    edit(sound, sound.newest().key, change)
    assert {("leaf-wrong", key) for key in keys} <= found(sound, newest_only=True)


def test_the_namespace_of_a_single_snapshot(sound: World) -> None:
    key = sound.newest().key
    edit(sound, key, lambda d: d.update(namespace="another.example.org"))
    assert found(sound, newest_only=True) == {("manifest-wrong", key)}


@pytest.mark.parametrize("name", ["rows", "bytes", "files", "first", "last"])
def test_a_manifest_that_counts_another_way_than_its_leaf(sound: World, name: str) -> None:
    manifest = sound.newest()
    leaf = manifest.tables["lookup"][0]
    value = getattr(leaf, name) + 1
    edit(sound, manifest.key, lambda d: d["tables"]["lookup"][0].__setitem__(name, value))
    assert ("leaf-wrong", leaf.key) in listed(sound)


def test_a_manifest_with_wrong_counts(sound: World) -> None:
    key = sound.newest().key

    def change(document: Any) -> None:
        document["sequences"][0][4] = {"capture": 1, "fileset": 1}
        for name in ("sets", "tombstones", "emptied", "unresolved"):
            document[name] += 1

    edit(sound, key, change)
    assert told(sound, "records-count") == {
        (key, "sequence N has N records of kind capture, not N"),
        (key, "sequence N has N records of kind fileset, not N"),
        (key, "there are N tombstones, not N"),
        (key, "there are N revisits, N of them without an original, not N and N"),
    }
    assert told(sound, "set-count") == {
        (key, "there are N sets, not N"),
        (key, "there are N sets without a record, not N"),
    }


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


# Files that are whole and lie: only their rows tell.


def sets_of(world: World) -> list[tuple[str, pa.Table, list[dict[str, Any]]]]:
    """Return of each file of sets its key, its rows, and these as they can be changed."""
    tables = ((file.key, table_of(world, file.key)) for file in files(world, "sets"))
    return [(key, rows, rows.to_pylist()) for key, rows in tables]


def changed(world: World, key: str, rows: pa.Table, values: list[dict[str, Any]]) -> str:
    return rewritten(world, key, pa.Table.from_pylist(values, rows.schema))


def test_sets_with_wrong_counts(sound: World) -> None:
    """Where sums do not add up that tells; where they do, what the records are."""
    some = [one for one in sets_of(sound) if any(row["live"] > 1 for row in one[2])]
    cases = [(name, also) for name in ("records", "live") for also in (False, True)]
    expected = set()
    for (name, also), (key, rows, values) in zip(cases, some, strict=False):
        row = next(row for row in values if row["live"] > 1)
        # The live ones of a publish are one less, and so are those of the whole set.
        by = 1 if name == "records" else -1
        next(one for one in row["counts"] if one["live"])[name] += by
        if also:
            row[name] += by
        new = changed(sound, key, rows, values)
        what = name if name == "records" else "live records"
        expected.add((new, f"{row['set_spec']} has N {what} of a publish, not N"))
        if not also:
            problem = f"N sets have counts that do not add up, the first {row['set_spec']}"
            expected.add((new, problem))
    assert len(expected) == 6
    assert told(sound, "set-count") == {
        (key, re.sub("[0-9]+", "N", problem)) for key, problem in expected
    }


def test_sets_with_turns_that_they_cannot_have_taken(sound: World) -> None:
    left: list[list[int] | None] = [[], None, [1, 2], [1, 2, 2], [3, 2, 1], [0], [999]]
    expected = {}
    for key, rows, values in sets_of(sound):
        wrong = 0
        for row in values:
            if left and row["live"] and len(row["turns"]) == 1:
                row["turns"], wrong = left.pop(), wrong + 1
        if wrong:
            expected[changed(sound, key, rows, values)] = wrong
    assert not left
    problems = [f for f in sound.verify().findings if f.code == "set-count"]
    assert {f.object: int(f.problem.split()[0]) for f in problems} == expected


@pytest.mark.thorough
def test_sets_without_turns_are_put_right_by_the_next_publish(world: World) -> None:
    """Earlier programs gave none to sets that began empty, and counted these at each publish."""
    world.add([capture(n, sets=(f"m:{n}",)) for n in range(4)])
    for number in (0, 1):
        chosen = Selection(set=f"m:{number}")
        world.withdraw(chosen)
    ((key, rows, values),) = sets_of(world)
    for row in values:
        if not row["live"]:
            row["turns"] = None
    changed(world, key, rows, values)
    put(world, replace(world.newest(), emptied=5))
    assert len(told(world, "set-count")) == 2
    world.add([capture(4, sets=("m:4",))])
    assert found(world, newest_only=True) == set()
    assert world.newest().emptied == 2


def test_a_version_that_forgot_what_its_item_left(world: World) -> None:
    """The file of the version is named, beside that of the sets whose counts are others."""
    world.add([capture(n, sets=("m:x",)) for n in range(3)])
    world.add([capture(0, sets=("m:y",))])
    (key,) = (file.key for file in files(world, "records") if file.groups[0].first == 4)
    rows = table_of(world, key)
    assert rows.column("left_sets").to_pylist() == [["m:x"]]
    new = rewritten(world, key, with_column(rows, "left_sets", [[]]))
    assert ("set-count", new) in found(world)


def test_a_set_that_is_missing(sound: World) -> None:
    key = files(sound, "sets")[1].key
    new = rewritten(sound, key, table_of(sound, key).slice(1))
    manifest = sound.newest()
    assert ("set-count", manifest.key) in found(sound)
    put(sound, replace(manifest, sets=manifest.sets - 1))
    findings = found(sound)
    assert {code for code, _ in findings} == {"set-count", "set-range"}
    assert {key for _, key in findings} <= {new, files(sound, "sets")[0].key}


def ranges_of(world: World, change: Callable[[list[Any]], None]) -> str:
    """Change the ranges of a set that has several; return the file's new key."""
    for file in files(world, "sets"):
        rows = table_of(world, file.key)
        ranges = rows.column("ranges").to_pylist()
        for one in ranges:
            if len(one) > 1:
                change(one)
                return rewritten(world, file.key, with_column(rows, "ranges", ranges))
    raise AssertionError("no set has several ranges")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "change",
    [lambda ranges: ranges.pop(), lambda ranges: ranges[0].update(first=ranges[0]["first"] + 1)],
    ids=["gone", "late"],
)
def test_ranges_that_do_not_hold_the_set(sound: World, change: Callable[[Any], None]) -> None:
    assert ("set-range", ranges_of(sound, change)) in found(sound)


def test_ranges_that_are_empty_and_twice(sound: World) -> None:
    left: list[Callable[[Any], None]] = [
        lambda ranges: ranges[-1].update(last=ranges[-1]["first"] - 1),
        lambda ranges: ranges.append(dict(ranges[-1])),
    ]
    expected = {}
    for key, rows, values in sets_of(sound):
        wrong = 0
        for row in values:
            if left and len(row["ranges"]) > 1:
                left.pop()(row["ranges"])
                wrong += 1
        if wrong:
            expected[changed(sound, key, rows, values)] = wrong
    assert not left
    overlap = [f for f in sound.verify().findings if "are empty or overlap" in f.problem]
    assert {f.object: int(f.problem.split()[0]) for f in overlap} == expected
    assert {f.code for f in overlap} == {"set-range"}


def test_a_copy_that_differs_and_one_of_another_set(sound: World) -> None:
    first, *_, last = (file.key for file in files(sound, "copies"))
    expected = set()
    for key, column, value in ((last, "title", "Another"), (first, "listing", "collection!")):
        rows = table_of(sound, key)
        values = rows.column(column).to_pylist()
        assert values[0] is not None
        new = rewritten(sound, key, with_column(rows, column, [value, *values[1:]]))
        expected.add(("copy-wrong", new))
    assert expected <= found(sound)


def test_a_missing_copy(sound: World) -> None:
    dead = positions_of(sound, "dead")

    def lose(rows: pa.Table) -> pa.Table | None:
        places = rows.column("position").to_pylist()
        live = [n for n, place in enumerate(places) if place not in dead]
        if not live or len(places) < 2:
            return None
        return pa.concat_tables([rows.slice(0, live[0]), rows.slice(live[0] + 1)])

    new, findings = change_first(sound, "copies", lose), found(sound)
    assert {code for code, _ in findings} == {"copy-missing"}
    there = {new, *(f.key for f in files(sound, "copies")), sound.newest().key}
    assert {key for _, key in findings} <= there


def test_rows_of_the_look_up_that_are_missing_or_lead_elsewhere(sound: World) -> None:
    key, records = files(sound, "lookup")[0].key, positions_of(sound, "records")
    rows = table_of(sound, key)
    keys, positions = (rows.column(name).to_pylist() for name in ("key", "position"))
    row = next(n for n, p in enumerate(positions) if p in records and keys.count(keys[n]) == 1)
    positions[row] = next(p for n, p in enumerate(positions) if p in records and n != row)
    new = rewritten(sound, key, with_column(rows, "position", positions))
    assert {("lookup-wrong", new), ("lookup-missing", new)} <= found(sound)
    new = rewritten(sound, new, rows.slice(0, 3))
    assert ("lookup-missing", new) in found(sound)


def test_a_single_version_that_differs_from_its_record(sound: World) -> None:
    key = files(sound, "singles")[0].key
    rows = table_of(sound, key)
    first, *rest = rows.column("text").to_pylist()
    new = rewritten(sound, key, with_column(rows, "text", [f"{first}x", *rest]))
    assert found(sound) == {("lookup-wrong", new)}


def test_rows_of_urls_that_are_missing_or_lead_elsewhere(sound: World) -> None:
    """They are missing of each run, so that a listed capture is among those that lose theirs."""
    keys = [file.key for file in files(sound, "urls") if sum(g.rows for g in file.groups) > 1]
    expected = {("url-missing", sound.newest().key)}
    for key, column in zip(keys[-3:], ("position", "stamp", "surt"), strict=True):
        rows = table_of(sound, key)
        values = rows.column(column).to_pylist()
        values[-1] = values[-1] + ("x" if column == "surt" else 1_000_000)
        new = rewritten(sound, key, with_column(rows, column, values))
        expected.add(("url-wrong", new))
    for key in keys[:-3]:
        rewritten(sound, key, table_of(sound, key).slice(0, 1))
    assert expected <= found(sound)


def test_missing_ties(revisited: World) -> None:
    """Of each run, so that a listed record is among those that lose theirs."""
    for table in ("originals", "revisits"):
        for file in files(revisited, table):
            rows = table_of(revisited, file.key)
            if len(rows) > 1:
                rewritten(revisited, file.key, rows.slice(0, 1))
    key, behind = revisited.newest().key, "cannot be found by their keys, the first at N"
    assert told(revisited, "tie-missing") == {
        (key, f"N captures {behind}"),
        (key, f"N revisits {behind}"),
    }


def test_ties_that_lead_elsewhere(revisited: World) -> None:
    records = positions_of(revisited, "records")

    def lead(rows: pa.Table) -> pa.Table | None:
        if not records.intersection(rows.column("position").to_pylist()):
            return None
        return with_column(rows, "key", [key + 1 for key in rows.column("key").to_pylist()])

    def refer(rows: pa.Table) -> pa.Table | None:
        names = rows.column("refers_to").to_pylist()
        others = [name and name[:-1] + "-" for name in names]
        return with_column(rows, "refers_to", others) if any(names) else None

    manifest = revisited.newest()
    put(revisited, replace(manifest, revisits=manifest.revisits + 1))
    tables = ("originals", "revisits")
    expected = {("tie-wrong", change_first(revisited, table, lead)) for table in tables}
    expected.add(("revisit-wrong", change_first(revisited, "records", refer)))
    expected.add(("records-count", manifest.key))
    assert expected <= found(revisited)


def test_a_missing_row_of_the_dead(sound: World) -> None:
    records = positions_of(sound, "records")

    def lose(rows: pa.Table) -> pa.Table | None:
        alive = [place not in records for place in rows.column("position").to_pylist()]
        if all(alive) or rows.num_rows < 2:
            return None
        return rows.filter(pa.array(alive)) if any(alive) else rows.slice(1)

    new = change_first(sound, "dead", lose)
    keys = {key for code, key in found(sound) if code == "dead-missing"}
    assert keys
    assert keys <= {new, *(f.key for f in files(sound, "dead"))}


def test_rows_out_of_order_and_positions_twice(sound: World, evidence: DataFileIndex) -> None:
    key = files(sound, "urls")[-1].key
    rows = table_of(sound, key)
    key = rewritten(sound, key, rows.take([1, 0, *range(2, len(rows))]))
    assert ("rows-unsorted", key) in examined(evidence, sound, "urls", file_of(sound, key))
    key = files(sound, "records")[0].key
    rows = table_of(sound, key)
    first, second, third, *rest = rows.column("position").to_pylist()
    for positions in ([first, third, second], [first, second, second]):
        key = rewritten(sound, key, with_column(rows, "position", [*positions, *rest]))
        assert ("rows-unsorted", key) in examined(evidence, sound, "records", file_of(sound, key))


def test_a_position_of_another_sequence_and_a_listed_one_among_the_dead(sound: World) -> None:
    key = files(sound, "records")[-1].key
    rows = table_of(sound, key)
    sequences = [1, *rows.column("sequence").to_pylist()[1:]]
    foreign = rewritten(sound, key, with_column(rows, "sequence", sequences))
    key = files(sound, "dead")[-1].key
    rows = table_of(sound, key)
    positions = [*rows.column("position").to_pylist()[:-1], sound.newest().last_position]
    listing = rewritten(sound, key, with_column(rows, "position", positions))
    assert {("position-wrong", foreign), ("dead-wrong", listing)} <= found(sound)


def test_a_tombstone_with_metadata_and_an_item_under_another_name(
    sound: World, evidence: DataFileIndex
) -> None:
    def fill_in(rows: pa.Table) -> pa.Table | None:
        deleted = rows.column("deleted").to_pylist()
        titles = ["left" if gone else None for gone in deleted]
        return with_column(rows, "title", titles) if any(deleted) else None

    key = files(sound, "records")[-1].key
    rows = table_of(sound, key)
    names = rows.column("identifier").to_pylist()
    rewritten(sound, key, with_column(rows, "identifier", ["oai:b.cz:x", *names[1:]]))
    assert {"lookup-wrong", "lookup-missing"} <= {code for code, _ in found(sound)}
    new = change_first(sound, "records", fill_in)
    file = file_of(sound, new)
    assert ("tombstone-full", new) in examined(evidence, sound, "records", file)


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
