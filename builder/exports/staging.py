"""Staging folder beside the target of an export; finished files are moved from it to the target.

It is on the same disk, so that a move is a rename. It is outside the target, so that the target
holds only complete files. The process holds its lock.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from builder.errors import UsageError
from builder.runtime import Advance
from builder.store.durable import disk_errors
from builder.store.folder import FolderStore
from functions.snapshot.store import Writer
from functions.store.folder_lock import LOCK, lock_folder


class NewFolder(Protocol):
    """A folder to add to a target."""

    @property
    def name(self) -> str:
        """Its name in the target."""
        ...

    def check(self, folder: Path) -> None:
        """Raise UsageError if an existing folder of that name is a different one."""
        ...

    def write(self, folder: Path) -> tuple[int, int]:
        """Write its files into a new folder; return their number and bytes."""
        ...


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A file to write: its path, and `read`, which gives its bytes and verifies them at their end.

    `size` counts as content, in bytes; a description of it counts as 0. `sha256` may be unknown.
    """

    path: str
    size: int
    sha256: str | None
    read: Callable[[], Iterable[bytes]]


def write_file(
    path: Path, parts: Iterable[bytes], algorithms: Iterable[str] = ()
) -> tuple[Mapping[str, str], int]:
    """Write a new file, and the folders above it; return its digests by algorithm, and its size."""
    hashes = {name: hashlib.new(name) for name in algorithms}
    size = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as out:
        for part in parts:
            for hash_ in hashes.values():
                hash_.update(part)
            size += out.write(part)
    return {name: hash_.hexdigest() for name, hash_ in hashes.items()}, size


@dataclass(slots=True)
class AddedFolders:
    """Numbers of folders, of their files and bytes; `there` counts those that existed before."""

    folders: int = 0
    files: int = 0
    bytes: int = 0
    there: int = 0


def add_folders(folders: Iterable[NewFolder], target: Path, advance: Advance) -> AddedFolders:
    """Add those folders that `target` does not have yet, each complete and synced.

    `advance` is called with the number of folders. Raises UsageError, StoreError, and what `write`
    raises.
    """
    done = AddedFolders()
    with beside(target) as scratch:
        target.mkdir(exist_ok=True)
        for folder in folders:
            if (target / folder.name).exists():
                folder.check(target / folder.name)
                done.there += 1
            else:
                (scratch / folder.name).mkdir()
                files, size = folder.write(scratch / folder.name)
                sync()
                (scratch / folder.name).rename(target / folder.name)
                done.folders += 1
                done.files += files
                done.bytes += size
            advance(1)
        sync()
    return done


def target_path(store: Writer, name: str) -> Path:
    """Return the target of an export. Raises UsageError for a path within the store."""
    target = Path(name).resolve()
    if isinstance(store, FolderStore) and target.is_relative_to(store.root):
        raise UsageError(f"{name} is inside the store: choose another place")
    return target


def new_folder_path(store: Writer, name: str) -> Path:
    """Return the target of an export to a new folder. Raises UsageError if it has content."""
    target = target_path(store, name)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} is not an empty folder: name a new one")
    return target


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Create an empty folder on the disk of `target`; it is removed when the context ends.

    Raises UsageError if this is impossible or another process is writing to `target`. Raises
    StoreError for errors of the disk.
    """
    folder = target.parent / f".{target.name}.sheaf"
    with wrap_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and target.stat().st_dev != target.parent.stat().st_dev:
            raise UsageError(
                f"{target} is a mount point, and temporary files need a place beside the target "
                "on the same disk: name a folder on that disk"
            )
        lock = lock_folder(folder)
        if lock is None:
            raise UsageError(f"another export is writing to {target}: wait until it ends")
        with lock:
            try:
                for path in folder.iterdir():
                    if path.is_dir():
                        shutil.rmtree(path)
                    elif path.name != LOCK:
                        path.unlink()
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)


def wrap_errors(target: Path) -> AbstractContextManager[None]:
    """Raise errors of the operating system with a message about `target`."""
    full = "the disk is full; free some space and run the command again"
    return disk_errors(target, f"{target}: {full} (existing files are complete)")


def move(folder: Path, place: Path, root: Path) -> None:
    """Move a folder to its place below `root`, together with new folders above it.

    So there is never an empty folder, which OCFL forbids. Raises OSError.
    """
    top = place
    while top.parent != root and not top.parent.exists():
        top = top.parent
    if top != place:
        chain = folder.with_name(f"{folder.name}-chain")
        (chain / place.relative_to(top)).parent.mkdir(parents=True)
        folder.rename(chain / place.relative_to(top))
        folder = chain
    folder.rename(top)


def take(place: Path, root: Path, to: Path) -> None:
    """Move `place` below `root` to `to`, and remove the folders above it that become empty."""
    top = place
    while top.parent != root and len(os.listdir(top.parent)) == 1:  # noqa: PTH208
        top = top.parent
    top.rename(to)


def sync() -> None:
    """Flush all written files to the disks.

    For many small files this one call takes a hundredth of the time of one call for each file.
    """
    os.sync()
