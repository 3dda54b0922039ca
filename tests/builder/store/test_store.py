"""One suite over every implementation of the store's seam: a folder, and buckets of two servers."""

import hashlib
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builder.store.folder import FolderStore
from builder.store.s3 import S3Store, open_store
from functions.config import configuration
from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.snapshot.store import Writer

SETTINGS = configuration.parse("", {})


@pytest.mark.sampled(3)
def test_objects_are_read_as_they_were_written(store: Writer) -> None:
    store.put("a/b/c.bin", io.BytesIO(b"\0data"))
    store.create("d.json", b"{}")
    assert store.read("a/b/c.bin") == b"\0data"
    assert store.local("a/b/c.bin").read_bytes() == b"\0data"
    assert list(store.keys("")) == ["a/b/c.bin", "d.json"]
    assert list(store.keys("a/b/c")) == ["a/b/c.bin"]
    assert list(store.keys("nothing/")) == []


def test_what_is_missing_is_told(store: Writer) -> None:
    for method in (store.read, store.local):
        with pytest.raises(MissingObject, match=r"no-such\.json"):
            method("no-such.json")
    assert store.tag("no-such.json") is None
    store.remove("no-such.json")


def test_an_object_named_by_its_content_is_written_once(store: Writer) -> None:
    store.put("x", io.BytesIO(b"first"))
    store.put("x", io.BytesIO(b"never looked at"))
    assert store.read("x") == b"first"


@pytest.mark.sampled(3)
def test_creating_what_is_there_is_a_conflict(store: Writer) -> None:
    store.create("x", b"1")
    with pytest.raises(Conflict):
        store.create("x", b"2")
    assert store.read("x") == b"1"


@pytest.mark.sampled(3)
def test_replacing_asks_for_the_tag(store: Writer) -> None:
    first = store.replace("x", b"1", None)
    assert store.tag("x") == first
    with pytest.raises(Conflict):
        store.replace("x", b"2", None)
    second = store.replace("x", b"2", first)
    with pytest.raises(Conflict):
        store.replace("x", b"3", first)
    assert store.read("x") == b"2"
    assert second != first


def test_replacing_what_was_removed_is_a_conflict(store: Writer) -> None:
    tag = store.replace("x", b"1", None)
    store.remove("x")
    with pytest.raises(Conflict):
        store.replace("x", b"2", tag)
    assert store.tag("x") is None


@pytest.mark.sampled(3)
def test_of_eight_that_count_at_once_no_count_is_lost(store: Writer) -> None:
    """As publishers do: who meets a conflict reads again, and tries again.

    Each writes bytes of its own. Of a rival that wrote the same, Ceph's answer of 500 to the loser
    would leave open who it was.
    """
    store.replace("x", b"0", None)
    ready = threading.Barrier(8)

    def count(own: int) -> None:
        ready.wait(30)
        done = 0
        while done < 3:
            tag = store.tag("x")
            number = int(store.read("x").split()[0])
            try:
                store.replace("x", f"{number + 1} {own}".encode(), tag)
            except Conflict:
                continue
            done += 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    assert store.read("x").split()[0] == b"24"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [1, 9 << 20])
def test_of_eight_that_create_at_once_one_wins(store: Writer, size: int, tmp_path: Path) -> None:
    """Out of memory, or out of a file with more than a part of an upload."""
    ready = threading.Barrier(8)

    def create(number: int, turn: int) -> int | None:
        (path := tmp_path / str(number)).write_bytes(bytes([number]) * size)
        ready.wait(30)
        try:
            if size == 1:
                store.create(f"x{turn}", bytes([number]))
            else:
                store.create_file(f"x{turn}", path)
        except Conflict:
            return None
        return number

    for turn in range(5 if size == 1 else 1):
        with ThreadPoolExecutor(8) as pool:
            ended = pool.map(create, range(8), [turn] * 8)
            (winner,) = [number for number in ended if number is not None]
        assert store.read(f"x{turn}") == bytes([winner]) * size


@pytest.mark.sampled(3)
def test_a_large_object_is_whole(store: Writer) -> None:
    data = b"".join(hashlib.sha256(bytes([n % 256, n // 256])).digest() * 512 for n in range(1400))
    assert len(data) > 20 << 20
    store.put("large", io.BytesIO(data))
    assert store.read("large") == data
    assert store.local("large").read_bytes() == data
    with store.open("large") as stream:
        assert stream.read(5) == data[:5]
        assert stream.read() == data[5:]


@pytest.mark.sampled(3)
def test_spans_of_a_large_object_are_right(store: Writer) -> None:
    data = b"".join(n.to_bytes(4, "big") for n in range(2_000_000))
    store.put("large", io.BytesIO(data))
    for spans in ([(3_000_000, 1000), (len(data) - 100, 100)], [(0, 10)], [(3_000_500, 2_000_000)]):
        with store.local("large", spans).open("rb") as file:
            for offset, length in spans:
                file.seek(offset)
                assert file.read(length) == data[offset : offset + length]
            assert file.seek(0, 2) == len(data)
    assert store.local("large").read_bytes() == data


def test_an_empty_object_is_one(store: Writer) -> None:
    store.put("empty", io.BytesIO(b""))
    assert store.read("empty") == b""
    assert store.tag("empty") is not None
    assert store.local("empty").read_bytes() == b""
    with store.open("empty") as stream:
        assert stream.read() == b""


@pytest.mark.sampled(3)
def test_what_is_listed_of_objects(store: Writer) -> None:
    names = ["a/Z", "a/a", "a/b/c", "a/é", "a/~", "a/x y", "a/x+y%2F", "ab", "a-"]
    for name in names:
        store.put(name, io.BytesIO(name.encode()))
    ordered = sorted(names, key=str.encode)
    assert list(store.keys("")) == ordered
    assert list(store.keys("a/")) == [n for n in ordered if n.startswith("a/")]
    assert [(e.key, e.bytes) for e in store.entries("a/b")] == [("a/b/c", 5)]
    assert all(store.read(name) == name.encode() for name in names)
    assert all(entry.modified.utcoffset() is not None for entry in store.entries(""))
    below = {name for name in names if name.startswith("a/")}
    assert store.folders("a/") == sorted(below - {"a/b/c"} | {"a/b/"})
    assert store.folders("a/b/") == ["a/b/c"]
    assert store.folders("none/") == []


@pytest.mark.sampled(3)
def test_many_objects_are_listed_and_removed(
    store: Writer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a page of a list has: a thousand, or what moto, which is slow, is told."""
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "50")
    count = 101 if request.node.callspec.id in ("folder", "moto", "cloudflare") else 1001
    names = [f"many/{number:04}" for number in range(count)]
    for name in names:
        store.put(name, io.BytesIO(b"x"))
    assert list(store.keys("many/")) == names
    store.remove(*names[:-1])
    assert list(store.keys("many/")) == names[-1:]
    store.remove(*names)
    assert list(store.keys("")) == []


@pytest.mark.parametrize("key", ["../x", "a/../../x", "/etc/x", "a//b", "", ".", "a/\0"])
def test_no_key_leads_out_of_the_store(store: Writer, key: str) -> None:
    with pytest.raises(ValueError, match="not a key"):
        store.read(key)


def test_a_write_that_fails_leaves_nothing_half_done(tmp_path: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell():
                raise OSError(28, "No space left on device")
            return super().read(4)

    store = FolderStore(tmp_path)
    with pytest.raises(StoreError, match="disk is full"):
        store.put("x/y", Broken(b"12345678"))
    assert list(store.keys("")) == []
    assert list((tmp_path / ".tmp").iterdir()) == []


def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match="cannot be written"):
        FolderStore(tmp_path / "file").create("x", b"")


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("", "address is empty"),
        ("gs://bucket/x", "expected s3://bucket/prefix"),
        ("s3://", "not a bucket name"),
        ("s3://bucket/../x", "not a prefix"),
        ("s3://key:hidden@bucket/x", "without credentials"),
        ("s3://bucket/x?region=y", r"without \?"),
    ],
)
def test_an_address_of_no_store_is_told(uri: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=said) as caught:
        open_store(uri, tmp_path, SETTINGS, {})
    assert "hidden" not in str(caught.value)


def test_an_address_names_a_folder_or_a_bucket(tmp_path: Path) -> None:
    environment = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    assert open_store("x", tmp_path, SETTINGS, environment).address == str(tmp_path / "x")
    bucket = open_store("s3://bucket/x/", tmp_path, SETTINGS, environment)
    assert isinstance(bucket, S3Store)
    assert bucket.address == "s3://bucket/x"
