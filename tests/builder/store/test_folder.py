"""A folder as a store: other processes at work in it, and rights that are missing."""

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from builder.store.folder import FolderStore


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
