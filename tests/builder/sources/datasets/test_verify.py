"""Verify and export: what is kept of datasets is checked to the last byte, and copied whole."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builder.publish.publish import publish as publish_intake
from builder.publish.store_copy import export
from builder.sources.datasets.strategies import keys as place
from builder.sources.datasets.strategies import record as records
from builder.store.folder import FolderStore
from builder.verify.verify import Verified
from functions.snapshot.store import ListedObject
from functions.store.catalog import Catalogue
from tests.builder.beginning import begin
from tests.builder.conftest import World
from tests.builder.sources.datasets import outcomes
from tests.builder.sources.datasets.kept import keep
from tests.builder.sources.datasets.outcomes import item
from tests.builder.sources.datasets.published import ingest, publish, rows

pytestmark = pytest.mark.shared(2)

WARC = "warcs/invenio-data.example-41-0123456789ab-20261122100000.warc.gz"
BASE = place.place(item("a.csv", "b.csv"))


def kept(world: World) -> None:
    publish(world, keep(world.store, item("a.csv", "b.csv")))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "store")
    begin(world, "a dataset that is kept", kept)
    yield world
    world.close()


def checked(world: World, store: FolderStore | None = None, **options: bool) -> Verified:
    world.clock.sleep(1)
    return world.verify(store, **options)


def told(done: Verified) -> list[tuple[str, str]]:
    return [(one.code, one.object) for one in done.findings]


def counts(done: Verified) -> tuple[int, int, int]:
    """Return the numbers of datasets, and of their objects that should exist and that were read."""
    return next((k.count, k.objects, k.read) for k in done.kinds if "kept" in k.keys)


def found(world: World) -> list[tuple[str, str]]:
    return told(checked(world))


def write(world: World, key: str, data: bytes) -> None:
    path = world.root / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_a_store_of_datasets_is_well(world: World) -> None:
    done = checked(world)
    assert (done.findings, counts(done)) == ((), (1, 2, 2))
    assert counts(checked(world, newest_only=True)) == (0, 0, 0)


def test_an_object_that_was_altered_is_damage(world: World) -> None:
    write(world, f"{BASE}files/a.csv", b"x" * 5)
    write(world, f"{BASE}files/b.csv", b"x" * 7)
    done = checked(world)
    assert sorted(told(done)) == [("fileset-altered", f"{BASE}files/{name}.csv") for name in "ab"]
    assert done.damaged


def test_an_object_that_is_gone_is_damage_and_told_once(world: World) -> None:
    key = f"{BASE}files/b.csv"
    (world.root / key).unlink()
    assert found(world) == [("fileset-missing", key)]


class Busy(FolderStore):
    """A store in which a run ends while it is listed: some came behind, some went before."""

    late = frozenset({f"{BASE}files/a.csv", f"{BASE}files/b.csv"})

    def entries(self, prefix: str) -> Iterator[ListedObject]:
        for entry in super().entries(prefix):
            if entry.key.endswith("fileset.json"):
                yield ListedObject(f"{BASE}files/zz.csv", 5, entry.modified)
            if entry.key not in self.late:
                yield entry


def test_what_a_run_does_meanwhile_is_no_damage(world: World) -> None:
    done = checked(world, Busy(world.root))
    assert (done.findings, counts(done)) == ((), (1, 2, 2))


def test_a_place_that_is_gone_is_known_by_what_is_published(world: World) -> None:
    for name in ("fileset.json", "files/a.csv", "files/b.csv"):
        (world.root / BASE / name).unlink()
    assert found(world) == [
        ("fileset-missing", f"{BASE}files/a.csv"),
        ("fileset-missing", f"{BASE}files/b.csv"),
    ]


def test_a_file_that_is_published_with_other_bytes_than_it_has_is_damage(world: World) -> None:
    (world.root / BASE / "fileset.json").unlink()
    write(world, f"{BASE}files/b.csv", b"x")
    assert found(world) == [
        ("fileset-missing", f"{BASE}fileset.json"),
        ("fileset-wrong", f"{BASE}files/b.csv"),
        ("fileset-unfinished", BASE),
    ]


def test_what_has_no_record_is_unfinished_and_no_damage(world: World) -> None:
    other = place.place(item("c.csv"))
    write(world, f"{other}files/c.csv", b"12345")
    write(world, WARC, b"")
    done = checked(world)
    assert told(done) == [("fileset-unfinished", other), ("fileset-unfinished", WARC)]
    assert not done.damaged


def test_what_lies_in_no_place_of_ours_is_a_stray(world: World) -> None:
    keys = [
        "filesets/readme.txt",
        "filesets/invenio/data.example/41/1.2.0123/files/a.csv",
        f"{BASE}notes.txt",
        f"{BASE}files/c.csv",
        "warcs/a.warc.gz",
    ]
    for key in keys:
        write(world, key, b"1")
    done = checked(world)
    assert sorted(told(done)) == [("fileset-stray", key) for key in sorted(keys)]
    assert not done.damaged


def test_a_record_that_cannot_be_read_is_damage(world: World) -> None:
    others = [place.place(item("a.csv", platform_id=f"{n}")) for n in range(3)]
    records = [f"{base}fileset.json" for base in (BASE, *others)]
    for record, data in zip(records, [b"{", b"[]", b'{"schema": 3}', b"\xff"], strict=True):
        write(world, record, data)
    assert sorted(found(world)) == [("fileset-wrong", record) for record in sorted(records)]


def test_a_record_of_another_dataset_is_damage(world: World) -> None:
    text = (world.root / BASE / "fileset.json").read_text()
    write(world, f"{BASE}fileset.json", text.replace('"41"', '"42"').encode())
    assert ("fileset-wrong", f"{BASE}fileset.json") in found(world)


def forge(world: World, key: str, data: bytes) -> str:
    """Change an object and its digests in the record together; return the record's key."""
    record = world.root / BASE / "fileset.json"
    before = (world.root / key).read_bytes()
    text = record.read_text()
    for name in ("sha256", "sha1", "md5"):
        digests = (hashlib.new(name, one).hexdigest() for one in (before, data))
        text = text.replace(*digests)
    record.write_text(text)
    write(world, key, data)
    return f"{BASE}fileset.json"


def test_what_was_published_is_the_root_of_trust(world: World) -> None:
    key = f"{BASE}files/a.csv"
    record = forge(world, key, b"x" * (world.root / key).stat().st_size)
    assert sorted(found(world)) == [("fileset-altered", key), ("fileset-wrong", record)]


@pytest.mark.parametrize(
    ("status", "at", "is_taken"),
    [
        ("success-existing", None, False),
        ("success-existing", "20261201000000", False),
        ("success", None, False),
        ("success", "20261201000000", True),
    ],
)
def test_a_publish_takes_over_another_digest_only_of_what_was_fetched_again(
    world: World, status: str, at: str | None, is_taken: bool
) -> None:
    key = f"{BASE}files/a.csv"
    before = rows(world, "SELECT path, sha256, status FROM files")
    record = forge(world, key, b"x" * (world.root / key).stat().st_size)
    archived = records.read(world.store, BASE)
    manifest = archived.archived.manifest
    if at is not None:
        manifest = tuple(replace(file, terminal_dt=at) for file in manifest)
    again = replace(archived.archived, status=status, manifest=manifest)
    messages: list[str] = []
    ingest(world, outcomes.outcome(item("a.csv", "b.csv"), archived=again, status=status))
    runtime = replace(world.runtime(), say=messages.append)
    publish_intake(world.store, world.configuration(), runtime)
    assert (rows(world, "SELECT path, sha256, status FROM files") != before) == is_taken
    if is_taken:
        assert not found(world)
        return
    (message,) = [text for text in messages if "was altered together with its record" in text]
    assert key in message
    assert ("fileset-wrong", record) in found(world)


def test_a_table_of_files_that_cannot_be_read_is_named(world: World) -> None:
    (file,) = Catalogue(world.store).files(world.newest(), "files")
    data = world.store.read(file.key)
    write(world, file.key, data[:4] + bytes(len(data) - 500) + data[-496:])
    assert ("file-digest", file.key) in found(world)


def test_unfinished_places_are_not_copied(world: World, tmp_path: Path) -> None:
    write(world, f"{place.place(item('c.csv'))}files/c.csv", b"12345")
    target = FolderStore(tmp_path / "copy")
    export(world.store, target, world.runtime())
    assert len([*target.keys("filesets/")]) == 3


def test_a_record_that_is_another_by_now_is_copied_anew(world: World, tmp_path: Path) -> None:
    target = FolderStore(tmp_path / "copy")
    export(world.store, target, world.runtime())
    text = (world.root / BASE / "fileset.json").read_text()
    write(world, f"{BASE}fileset.json", text.replace("data/csv", "x").encode() + b" ")
    assert export(world.store, target, world.runtime()).objects == 1
    assert target.read(f"{BASE}fileset.json") == world.store.read(f"{BASE}fileset.json")
