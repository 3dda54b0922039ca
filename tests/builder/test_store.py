"""One suite over every implementation of the store's seam. A folder is the only one so far."""

import io
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.store import FolderStore, open_store
from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.snapshot.store import Writer

Maker = Callable[[Path], Writer]


@pytest.fixture(params=[FolderStore], ids=["folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Writer:
    make: Maker = request.param
    return make(tmp_path / "store")


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


def test_creating_what_is_there_is_a_conflict(store: Writer) -> None:
    store.create("x", b"1")
    with pytest.raises(Conflict):
        store.create("x", b"2")
    assert store.read("x") == b"1"


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


def test_of_sixteen_that_replace_at_once_one_wins(store: Writer) -> None:
    tag = store.replace("x", b"start", None)
    won: list[int] = []
    ready = threading.Barrier(16)

    def replace(number: int) -> None:
        ready.wait()
        try:
            store.replace("x", str(number).encode(), tag)
        except Conflict:
            return
        won.append(number)

    threads = [threading.Thread(target=replace, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert store.read("x") == str(won[0]).encode()


def test_removing_leaves_nothing(store: Writer) -> None:
    store.put("a/b/c", io.BytesIO(b""))
    store.put("a/d", io.BytesIO(b""))
    store.remove("a/b/c")
    assert list(store.keys("")) == ["a/d"]


@pytest.mark.parametrize("key", ["../x", "a/../../x", "/etc/x", "a//b", "", ".", "a/\0"])
def test_no_key_leads_out_of_the_store(store: Writer, key: str) -> None:
    with pytest.raises(ValueError, match="no key"):
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
    with pytest.raises(StoreError, match="only a folder"):
        open_store("s3://bucket/x", tmp_path)
