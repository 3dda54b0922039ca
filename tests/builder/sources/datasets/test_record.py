"""Records of what is kept, and whether it is as it was."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from builder.sources.datasets.item import (
    ArchiveStrategyResult,
    FileMeta,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies import record
from builder.sources.datasets.strategies.s3 import FILESET, ObjectStrategy
from builder.store.folder import FolderStore

BASE = "filesets/zenodo/zenodo.org/7/1.0123456789ab/"
BODIES = {"a.csv": b"a,b\n1,2\n", "b.bin": bytes(3000)}
WITHHELD = FilesetManifestFile(path="a-secret", status="withheld")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def existing(store: FolderStore, check: str = "digest") -> ArchiveStrategyResult | None:
    return ObjectStrategy(FILESET, store, None, {"fileset.check": check}).find_existing(BASE, ITEM)


def file(path: str) -> FilesetManifestFile:
    body = BODIES[path]
    return FilesetManifestFile(
        path=path,
        size=len(body),
        sha256=digest(body),
        status="verified",
        key=f"{BASE}files/{path}",
        terminal_dt="20261122101112",
        extra={"label": "Měření", "n": [1, None]},
    )


ITEM = FilesetPlatformItem(
    platform_name="zenodo",
    platform_domain="zenodo.org",
    platform_id="7",
    manifest=(*(FilesetManifestFile(path=path) for path in BODIES), WITHHELD),
)
FILES = (*(file(path) for path in BODIES), WITHHELD)
OBJECTS = tuple(record.KeptObject(f"{BASE}files/{p}", len(b), digest(b)) for p, b in BODIES.items())
META = FileMeta(size_bytes=0, md5hex="", sha1hex="", sha256hex="", mimetype=None)
RECORD = record.of_files(ITEM, "s3-fileset", FILES, OBJECTS, bundle=META, location=BASE)


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    found = FolderStore(tmp_path / "store")
    for path, body in BODIES.items():
        found.create(f"{BASE}files/{path}", body)
    return found


def change(store: FolderStore, path: str, body: bytes | None) -> None:
    store.remove(f"{BASE}files/{path}")
    if body is not None:
        store.create(f"{BASE}files/{path}", body)


def test_a_record_is_whole_and_names_no_withheld_file() -> None:
    again = record.parse(record.serialize(RECORD), "x")
    assert again == RECORD
    assert [f.path for f in again.archived.manifest] == ["a.csv", "b.bin"]


def test_half_a_character_of_a_platform_s_answer_does_no_harm() -> None:
    files = (replace(FILES[0], extra={"label": "\ud800", "é": "\udfff"}),)
    one = replace(RECORD, archived=replace(RECORD.archived, manifest=files))
    data = record.serialize(one)
    assert data.decode("utf-8")
    assert record.parse(data, "x") == one


def edited(**change: object) -> bytes:
    return json.dumps({**json.loads(record.serialize(RECORD)), **change}).encode()


BROKEN = {
    "no-json": b"{",
    "no-text": b"\xff",
    "a-list": b"[]",
    "later-schema": edited(schema=2),
    "unknown-field": edited(colour="red"),
    "size-is-text": edited(
        archived={"ingest_strategy": "x", "status": "y", "manifest": [{"path": "", "size": "3"}]}
    ),
    "size-is-a-flag": edited(objects=[{"key": "a", "bytes": True, "sha256": "b"}]),
    "nothing-archived": edited(archived=None),
    "no-key": edited(objects=[{"bytes": 1, "sha256": "b"}]),
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("defect", BROKEN)
def test_what_is_no_record_is_told(defect: str) -> None:
    with pytest.raises(FilesetError, match="is not a valid record") as caught:
        record.parse(BROKEN[defect], "there")
    assert caught.value.status == "error-store-verify"


def test_an_unfinished_place_is_none(store: FolderStore) -> None:
    assert record.read(store, BASE) is None
    assert existing(store) is None


def test_an_altered_object_is_found_by_its_digest(store: FolderStore) -> None:
    record.write(store, BASE, RECORD, ITEM)
    change(store, "a.csv", b"a,b\n1,3\n")
    assert existing(store, check="size") is not None
    found = existing(store)
    assert found.status == "mismatch-existing"
    assert [f.status for f in found.manifest] == ["mismatch-existing", "exists", "withheld"]
    assert f"{BASE}files/a.csv" in found.detail


def test_an_object_of_another_size_is_found_without_reading_it(store: FolderStore) -> None:
    record.write(store, BASE, RECORD, ITEM)
    change(store, "b.bin", b"")
    change(store, "a.csv", None)
    found = existing(store, check="size")
    assert [f.status for f in found.manifest] == ["pending", "mismatch-existing", "withheld"]


def test_a_missing_object_makes_a_place_incomplete(store: FolderStore) -> None:
    record.write(store, BASE, RECORD, ITEM)
    change(store, "b.bin", None)
    assert existing(store) is None
    assert record.state(store, RECORD) == ({f"{BASE}files/b.bin"}, frozenset())


def test_of_two_runs_the_first_one_s_record_stays(store: FolderStore) -> None:
    record.write(store, BASE, RECORD, ITEM)
    later = [replace(f, terminal_dt="20270101000000") for f in RECORD.archived.manifest]
    second = replace(RECORD, archived=replace(RECORD.archived, manifest=tuple(later)))
    assert record.write(store, BASE, second, ITEM) == RECORD
    other = [replace(f, sha256="0" * 64) for f in RECORD.archived.manifest]
    third = replace(RECORD, archived=replace(RECORD.archived, manifest=tuple(other)))
    with pytest.raises(FilesetError, match="mismatch-existing"):
        record.write(store, BASE, third, ITEM)
    assert record.read(store, BASE) == RECORD


def test_what_lies_there_besides_is_removed_with_the_record(store: FolderStore) -> None:
    store.create(f"{BASE}bundle.zip", b"of a run that went another way")
    store.create(f"{BASE[:-1]}0/files/x", b"of another place")
    record.write(store, BASE, RECORD, ITEM)
    assert sorted(store.keys(BASE)) == sorted(
        [f"{BASE}fileset.json", *(kept.key for kept in OBJECTS)]
    )
    store.create(f"{BASE}files/later", b"of a run that comes second")
    record.write(store, BASE, RECORD, ITEM)
    assert f"{BASE}files/later" not in set(store.keys(BASE))
    assert store.read(f"{BASE[:-1]}0/files/x")


def test_a_record_of_what_another_run_removed_meanwhile_does_not_stay(store: FolderStore) -> None:
    store.remove(OBJECTS[0].key)
    with pytest.raises(FilesetError, match="error-store-verify"):
        record.write(store, BASE, RECORD, ITEM)
    assert record.read(store, BASE) is None
    assert set(store.keys(BASE)) == {kept.key for kept in OBJECTS[1:]}


def test_what_another_strategy_recorded_meanwhile_stays(store: FolderStore) -> None:
    record.write(store, BASE, RECORD, ITEM)
    with pytest.raises(FilesetError, match="another run"):
        record.of_strategy(store, BASE, "s3-fileset-bundled")
    with pytest.raises(FilesetError, match="another run"):
        record.forget(store, OBJECTS[0].key)
    assert existing(store) is not None
    store.remove(OBJECTS[0].key)
    assert record.of_strategy(store, BASE, "s3-fileset-bundled") is None
    assert record.read(store, BASE) is None
    record.forget(store, OBJECTS[1].key)
    assert OBJECTS[1].key not in set(store.keys(BASE))


def test_an_object_whose_key_begins_another_s_is_not_taken_for_it(store: FolderStore) -> None:
    record.write(store, BASE, RECORD, ITEM)
    change(store, "a.csv", None)
    store.create(f"{BASE}files/a.csv.old", BODIES["a.csv"])
    assert existing(store) is None
