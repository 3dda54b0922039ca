"""Writable store in a local folder."""

import contextlib
import fcntl
import hashlib
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO

from builder.errors import explaining
from builder.store.durable import (
    batches,
    disk_errors,
    folder_beside,
    put_in_place,
    sweep,
    sync,
    sync_file,
    sync_system,
    temporary,
)
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.snapshot.store import ListedObject, Sink
from functions.store.store_reader import FolderReader

_LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class _Forward:
    """File that is only written forwards, so that a zip writer does not seek back.

    `errors` turns disk errors into StoreError.
    """

    out: BinaryIO
    errors: Callable[[], AbstractContextManager[None]]

    def write(self, data: bytes) -> int:
        """Write more bytes. Raises StoreError."""
        with self.errors():
            return self.out.write(data)

    def flush(self) -> None:
        """Do nothing: the file is only read when it is complete."""


class FolderStore(FolderReader):
    """Store in a folder. Each write goes to a temporary file, which is synced and moved into place.

    The first write also removes temporary files of interrupted writers.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._swept = False

    def put(self, key: str, source: BinaryIO) -> None:
        """Write an object that is named by its content; an existing one is kept."""
        target = self.path(key)
        with self._store_errors(target):
            if target.exists():
                return
        self._write(key, source, partial(_place, move=os.replace))

    def create(self, key: str, data: bytes) -> None:
        """Write a new object. Raises Conflict if it exists."""
        self._write(key, io.BytesIO(data), _link)

    def create_file(self, key: str, path: Path) -> None:
        """Write a new object from another file. Raises Conflict if it exists."""
        with self._store_errors(self.path(key)), path.open("rb") as source:
            self._write(key, source, _link)

    def _write(self, key: str, source: BinaryIO, place: Callable[[Path, Path], None]) -> None:
        with self._temporary(key) as (out, path):
            shutil.copyfileobj(source, out, 1 << 20)
            sync_file(out)
            place(path, self.path(key))

    @contextlib.contextmanager
    def creating(self, key: str, most: int | None = None) -> Iterator[Sink]:
        """Context that writes a new object as its bytes arrive. Raises Conflict if it exists."""
        target = self.path(key)
        with contextlib.ExitStack() as stack:
            with self._store_errors(target):
                if target.exists():
                    raise Conflict(f"{target} already exists")
                out, scratch = stack.enter_context(self._scratch())
            try:
                yield _Forward(out, lambda: self._store_errors(target))
                with self._store_errors(target):
                    sync_file(out)
                    _link(scratch, target)
            finally:
                with self._store_errors(target):
                    stack.close()

    def create_all(self, objects: Iterable[tuple[str, bytes]]) -> Iterator[bool]:
        """Write new objects; yield for each whether it was written.

        Syncing each file would take most of the time. So a batch is written, the file system is
        synced once, and then the files are moved into place: no file in place can be incomplete.
        """
        for batch in batches(objects):
            yield from self._place_all(batch, os.link)
        self._sync_all()

    def replace_all(self, objects: Iterable[tuple[str, bytes]]) -> None:
        """Write objects, synced as in `create_all`; existing ones are replaced."""
        for batch in batches(objects):
            self._place_all(batch, os.replace)
        self._sync_all()

    def _sync_all(self) -> None:
        with self._store_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            sync_system(self.root)

    def _place_all(
        self, objects: Sequence[tuple[str, bytes]], move: Callable[[Path, Path], None]
    ) -> list[bool]:
        written = []
        with self._temporary(objects[0][0]) as (_, beside), folder_beside(beside) as folder:
            for number, (key, data) in enumerate(objects):
                if move is os.replace or not self.path(key).exists():
                    (folder / str(number)).write_bytes(data)
            sync_system(folder)
            for number, (key, _) in enumerate(objects):
                written.append(_try_place(folder / str(number), self.path(key), move))
        return written

    def folds_case(self) -> bool:
        """Return whether this disk treats names that differ only in case as the same."""
        with self._temporary(layout.POINTER) as (_, path):
            return path.with_name(path.name.swapcase()).exists()

    def tag(self, key: str) -> str | None:
        """Return the digest of the object, or None if it does not exist."""
        try:
            return hashlib.sha256(self.read(key)).hexdigest()
        except MissingObject:
            return None

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        """Replace the object if its tag is still `tag`, under the store's lock."""
        with self._lock():
            if self.tag(key) != tag:
                raise Conflict(f"another process changed {self.path(key)}")
            self._write(key, io.BytesIO(data), partial(_place, move=os.replace))
        return hashlib.sha256(data).hexdigest()

    def remove(self, *keys: str) -> None:
        """Remove the objects, and the folders that become empty."""
        for key in keys:
            self._remove(self.path(key))

    def _remove(self, path: Path) -> None:
        with self._store_errors(path):
            path.unlink(missing_ok=True)
        for parent in path.parents:
            if parent == self.root:
                break
            try:
                parent.rmdir()
            except OSError:
                break  # not empty, or already removed

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys that begin with `prefix`, in byte order."""
        yield from (entry.key for entry in self.entries(prefix))

    def entries(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the entries of the objects whose keys begin with `prefix`, in byte order."""
        start = self.root / prefix.rpartition("/")[0]
        paths = []
        with explaining(start, "read", StoreError):
            for folder, _, names in os.walk(start, onerror=_unless_missing):
                below = Path(folder).relative_to(self.root)
                paths += [(below / name).as_posix() for name in names]
        for key in sorted(k for k in paths if k.startswith(prefix)):
            if key.startswith(".") and not prefix.startswith("."):
                continue  # a lock or a temporary file, not an object of the store
            try:
                status = (self.root / key).stat()
            except FileNotFoundError:
                continue  # removed meanwhile
            except OSError as error:
                raise StoreError(f"{key} cannot be read: {error.strerror}") from error
            yield ListedObject(key, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

    def folders(self, prefix: str) -> list[str]:
        """Return the objects directly below a folder, and the folders with `/` at the end."""
        with self._store_errors(self.root / prefix):
            try:
                with os.scandir(self.root / prefix) as entries:
                    return sorted(prefix + e.name + "/" * e.is_dir() for e in entries)
            except FileNotFoundError:
                return []

    @contextlib.contextmanager
    def _temporary(self, key: str) -> Iterator[tuple[BinaryIO, Path]]:
        with self._store_errors(self.path(key)), self._scratch() as file:
            yield file

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[tuple[BinaryIO, Path]]:
        """Context of a temporary file, open for writing, and its path. Raises OSError."""
        self.root.mkdir(parents=True, exist_ok=True)
        scratch = self.root / layout.TEMPORARY
        scratch.mkdir(exist_ok=True)
        if not self._swept:
            sweep(scratch)
            self._swept = True
        with temporary(scratch) as file:
            yield file

    def _store_errors(self, path: Path) -> AbstractContextManager[None]:
        full = "the disk is full; free some space and run the command again"
        return disk_errors(path, f"{self.root}: {full} (published data is intact)")

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the store's lock, so that comparison and replacement are atomic."""
        with self._store_errors(self.root / _LOCK):
            self.root.mkdir(parents=True, exist_ok=True)
            with (self.root / _LOCK).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield


def _unless_missing(error: OSError) -> None:
    """Ignore a folder that was removed meanwhile."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _try_place(path: Path, target: Path, move: Callable[[Path, Path], None]) -> bool:
    """Move the file into place without a sync; return whether it was moved."""
    try:
        put_in_place(path, target, move)
    except FileExistsError:
        return False
    except FileNotFoundError:
        if path.exists():
            raise
        return False  # not written, because its place was already taken
    return True


def _link(path: Path, target: Path) -> None:
    """Link the file into place durably. Raises Conflict if the place is taken."""
    try:
        _place(path, target, os.link)
    except FileExistsError as error:
        raise Conflict(f"{target} already exists") from error


def _place(path: Path, target: Path, move: Callable[[Path, Path], None]) -> None:
    """Move the file at `path` into place durably; `move` is os.replace or os.link."""
    put_in_place(path, target, move)
    with contextlib.suppress(FileNotFoundError):  # the object and its folder were removed again
        sync(target.parent)
