"""Many small objects in a folder: what a writer that is gone leaves, and a disk that is full."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.store.durable import batches, folder_beside, temporary
from builder.store.folder import FolderStore
from builder.store.s3 import S3Store
from functions.snapshot.errors import StoreError

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


def test_what_lies_directly_below_a_folder(store: FolderStore | S3Store) -> None:
    for where in ("a/b/c", "a/b/d", "a/e", "f"):
        store.create(where, b"")
    assert store.folders("a/") == ["a/b/", "a/e"]
    assert store.folders("a/b/") == ["a/b/c", "a/b/d"]
    assert store.folders("none/") == []
