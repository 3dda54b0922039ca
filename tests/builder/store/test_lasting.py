"""What a folder shows is on the disk for good: synced before it takes its place, and its place too.

The suite itself waits for no disk, so what would be synced is noted instead.
"""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.store import folder as module
from builder.store.folder import FolderStore


class Disk:
    """Notes what was synced, and what took its place before that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: dict[int, int] = {}  # bytes, by inode
        self.torn: list[Path] = []
        self.placed: list[Path] = []
        self.places: set[Path] = set()  # folders in which a place is not synced yet
        monkeypatch.setattr(os, "fsync", self._sync)
        monkeypatch.setattr(module, "sync_system", self._sync_all)
        for name in ("link", "replace", "rename"):
            monkeypatch.setattr(os, name, self._placing(getattr(os, name)))

    def _sync(self, handle: int) -> None:
        status = os.fstat(handle)
        self.synced[status.st_ino] = status.st_size
        self.places = {p for p in self.places if p.stat().st_ino != status.st_ino}

    def _sync_all(self, folder: Path) -> None:
        self.synced |= {
            path.stat().st_ino: path.stat().st_size for path in folder.rglob("*") if path.is_file()
        }
        self.places.clear()

    def _placing(self, move: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
        def placing(path: Path, target: Path) -> None:
            if ".tmp" in target.parts:  # not in its place yet
                move(path, target)
                return
            inside = [one.relative_to(path) for one in path.rglob("*") if one.is_file()]
            for one in inside if path.is_dir() else [Path()]:
                status = (path / one).stat()
                if self.synced.get(status.st_ino) != status.st_size:
                    self.torn.append(target / one)
                self.placed.append(target / one)
                self.places.add((target / one).parent)
            move(path, target)

        return placing


def _by_stream(store: FolderStore, _: Path) -> None:
    with store.creating("a/b") as out:
        out.write(b"some")
        out.write(b" bytes")


def _by_file(store: FolderStore, folder: Path) -> None:
    (folder / "given").write_bytes(b"some bytes")
    store.create_file("a/b", folder / "given")


WAYS: dict[str, Callable[[FolderStore, Path], object]] = {
    "put": lambda store, _: store.put("a/b", io.BytesIO(b"some bytes")),
    "create": lambda store, _: store.create("a/b", b"some bytes"),
    "create_file": _by_file,
    "creating": _by_stream,
    "create_all": lambda store, _: list(store.create_all([("a/b", b"some bytes"), ("c", b"1")])),
    "replace": lambda store, _: store.replace("a/b", b"some bytes", None),
    "replace_all": lambda store, _: store.replace_all([("a/b", b"some bytes"), ("c", b"1")]),
}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_seen_before_it_lasts(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path / "store")
    disk = Disk(monkeypatch)
    WAYS[way](store, tmp_path)
    assert store.read("a/b") == b"some bytes"
    assert store.path("a/b") in disk.placed
    assert disk.torn == []
    assert disk.places == set()
