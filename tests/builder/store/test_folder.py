"""A folder as a store: other processes at work in it, missing rights, a full disk, many objects."""

import errno
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.store.durable import batches, folder_beside, temporary
from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreError


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """One writer is gone, another is in the midst of it."""
    scratch = tmp_path / ".tmp"
    scratch.mkdir()
    (scratch / "tmpleft").write_bytes(b"half of an obj")

    class Nested(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            FolderStore(tmp_path).create(f"other-{self.tell()}", b"")
            return super().read(size)

    FolderStore(tmp_path).put("x", Nested(b"content"))
    assert FolderStore(tmp_path).read("x") == b"content"
    assert list(scratch.iterdir()) == []


def test_a_folder_may_vanish_while_it_is_written_to(tmp_path: Path) -> None:
    """Whoever removes the last object of a folder removes the folder: here all the time."""
    store, over = FolderStore(tmp_path), threading.Event()

    def clear() -> None:
        while not over.is_set():
            store.remove("a/b/other")

    thread = threading.Thread(target=clear)
    thread.start()
    try:
        for number in range(300):
            store.create(f"a/b/{number}", b"")
            store.remove(f"a/b/{number}")
    finally:
        over.set()
        thread.join()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not")
def test_a_folder_that_may_not_be_entered_is_told(tmp_path: Path) -> None:
    FolderStore(tmp_path / "store").put("a/b", io.BytesIO(b"x"))
    (tmp_path / "store" / "a").chmod(0o700)
    program = (
        "import io, os, pathlib, sys\n"
        "from builder.store.folder import FolderStore\n"
        "from functions.snapshot.errors import StoreError\n"
        "store = FolderStore(pathlib.Path('store'))\n"
        "os.seteuid(65534)\n"
        "calls = [store.read, store.open, store.local, store.tag, store.remove,\n"
        "    lambda k: store.put(k, io.BytesIO()), lambda k: store.create(k, b''),\n"
        "    lambda k: store.replace(k, b'', None), lambda k: list(store.entries('a/'))]\n"
        "for call in calls:\n"
        "    try:\n"
        "        call('a/b')\n"
        "        sys.exit(f'{call} said nothing')\n"
        "    except StoreError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 9
    assert all(line.endswith("Permission denied") for line in lines), done.stdout


MANY = [(f"obi/000/000/0001/{number}", b"x" * number) for number in range(50)]


def test_what_a_killed_writer_of_many_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """One is gone in the midst of it; another one is at work."""
    program = (
        "import os, pathlib, sys\n"
        "from builder.store.durable import folder_beside, temporary\n"
        "with temporary(pathlib.Path(sys.argv[1])) as (_, path), folder_beside(path) as folder:\n"
        "    (folder / '0').write_bytes(b'half')\n"
        "    os._exit(9)\n"
    )
    scratch = tmp_path / ".tmp"
    scratch.mkdir()
    subprocess.run([sys.executable, "-c", program, scratch], check=False, cwd=Path.cwd())
    assert len(list(scratch.iterdir())) == 2
    with temporary(scratch) as (_, path), folder_beside(path) as folder:
        (folder / "0").write_bytes(b"in the midst")
        assert list(FolderStore(tmp_path).create_all(MANY)) == [True] * 50
        assert {p.name for p in scratch.iterdir()} == {path.name, folder.name}
        assert (folder / "0").read_bytes() == b"in the midst"
    assert list(scratch.iterdir()) == []


def test_each_is_told_of_in_its_order(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.create(MANY[7][0], b"earlier")
    told = list(store.create_all([*MANY, ("obi/000/000/0001/3", b"twice")]))
    assert told == [number != 7 for number in range(50)] + [False]
    assert store.read(MANY[7][0]) == b"earlier"
    assert store.read(MANY[3][0]) == b"xxx"
    assert list(store.create_all([])) == []


def test_batches_are_no_larger_than_they_may_be() -> None:
    assert [len(some) for some in batches((str(n), b"") for n in range(10_000))] == [
        4096,
        4096,
        1808,
    ]
    assert [len(some) for some in batches((str(n), bytes(20 << 20)) for n in range(3))] == [2, 1]


def test_objects_are_asked_for_as_they_are_written(tmp_path: Path) -> None:
    """So a million of them is never in memory."""
    asked = 0

    def objects() -> Iterator[tuple[str, bytes]]:
        nonlocal asked
        for number in range(10_000):
            asked += 1
            yield f"a/{number}", b""

    written = FolderStore(tmp_path).create_all(objects())
    assert next(written)
    assert asked == 4096
    assert len(list(written)) == 9_999


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_told_and_leaves_nothing_half(tmp_path: Path) -> None:
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", tmp_path], check=False)
    if done.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        store = FolderStore(tmp_path)
        store.create("a/first", b"x")
        large = [(f"a/{number}", b"x" * 100_000) for number in range(20)]
        with pytest.raises(StoreError, match="the disk is full"):
            list(store.create_all(large))
        assert list(store.keys("a/")) == ["a/first"]
        assert list((tmp_path / ".tmp").iterdir()) == []
        assert list(store.create_all(large[:5])) == [True] * 5
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_what_cannot_be_read_while_it_is_written_is_no_fault_of_the_store(tmp_path: Path) -> None:
    def objects() -> Iterator[tuple[str, bytes]]:
        yield "a/1", b""
        raise OSError(errno.EIO, "the source's disk fails")

    with pytest.raises(OSError, match="the source's disk fails"):
        list(FolderStore(tmp_path).create_all(objects()))
    assert list((tmp_path).rglob("*")) == []
