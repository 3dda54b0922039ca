"""A folder as a store that can be written to."""

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from builder.store.durable import batches, folder_beside, sweep, sync, sync_system, temporary
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.snapshot.store import ListedObject, Sink
from functions.store.folder import FolderReader

_LOCK = ".lock"
_TRIES = 100


@dataclass(frozen=True, slots=True)
class _Forward:
    """Writes into a file, only forwards: what writes a zip must not go back in one.

    `errors` turns errors of the disk into those of a store.
    """

    out: BinaryIO
    errors: Callable[[], AbstractContextManager[None]]

    def write(self, data: bytes) -> int:
        """Write some more. Raises StoreError."""
        with self.errors():
            return self.out.write(data)

    def flush(self) -> None:
        """Do nothing: the file is looked at when it is whole."""


class FolderStore(FolderReader):
    """A folder. Every write goes to a temporary file that is synced and then takes its place.

    The first write also removes temporary files of writers that were cut off.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._swept = False

    def put(self, key: str, source: BinaryIO) -> None:
        """Write an object that is named by its content; one that is there already stays."""
        target = self.path(key)
        with self._store_errors(target):
            if target.exists():
                return
        with self._temporary(key) as (out, path):
            shutil.copyfileobj(source, out, 1 << 20)
            _sync(out)
            _place(path, target, os.replace)

    def create(self, key: str, data: bytes) -> None:
        """Write an object that must not be there yet. Raises Conflict if it is."""
        target = self.path(key)
        with self._temporary(key) as (out, path):
            out.write(data)
            _sync(out)
            _link(path, target)

    def create_file(self, key: str, path: Path) -> None:
        """Write an object out of another file; it must not be there yet. Raises Conflict."""
        target = self.path(key)
        with self._temporary(key) as (out, scratch):
            with path.open("rb") as source:
                shutil.copyfileobj(source, out, 1 << 20)
            _sync(out)
            _link(scratch, target)

    @contextlib.contextmanager
    def creating(self, key: str) -> Iterator[Sink]:
        """Write an object that must not be there yet, as its bytes come. Raises Conflict."""
        target = self.path(key)
        with contextlib.ExitStack() as stack:
            with self._store_errors(target):
                if target.exists():
                    raise Conflict(f"{target} is there already")
                out, scratch = stack.enter_context(self._scratch())
            try:
                yield _Forward(out, lambda: self._store_errors(target))
                with self._store_errors(target):
                    _sync(out)
                    _link(scratch, target)
            finally:
                with self._store_errors(target):
                    stack.close()

    def create_all(self, objects: Iterable[tuple[str, bytes]]) -> Iterator[bool]:
        """Write objects that must not be there yet; yield whether each was written.

        A sync of each file would take most of the time. So a batch is written, the file system is
        synced once, and then the files take their places: none can be there and be torn.
        """
        for some in batches(objects):
            yield from self._create_some(some)
        with self._store_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            sync_system(self.root)

    def _create_some(self, objects: Sequence[tuple[str, bytes]]) -> list[bool]:
        written = []
        with self._temporary(objects[0][0]) as (_, beside), folder_beside(beside) as folder:
            for number, (key, data) in enumerate(objects):
                if not self.path(key).exists():
                    (folder / str(number)).write_bytes(data)
            sync_system(folder)
            for number, (key, _) in enumerate(objects):
                written.append(_try_link(folder / str(number), self.path(key)))
        return written

    def folds_case(self) -> bool:
        """Tell whether names that differ by case alone are one on this disk."""
        with self._temporary(layout.POINTER) as (_, path):
            return path.with_name(path.name.swapcase()).exists()

    def tag(self, key: str) -> str | None:
        """Return the digest of the object, or None where there is none."""
        try:
            return hashlib.sha256(self.read(key)).hexdigest()
        except MissingObject:
            return None

    def replace(self, key: str, data: bytes, tag: str | None) -> str:
        """Replace the object if its tag is still `tag`, under the store's lock."""
        with self._lock(), self._temporary(key) as (out, path):
            if self.tag(key) != tag:
                raise Conflict(f"{self.path(key)} was changed by another process")
            out.write(data)
            _sync(out)
            _place(path, self.path(key), os.replace)
        return hashlib.sha256(data).hexdigest()

    def remove(self, *keys: str) -> None:
        """Remove the objects, and the folders that they leave empty."""
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
                break  # not empty, or removed meanwhile

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield the keys that begin with `prefix`, in the order of their bytes."""
        yield from (entry.key for entry in self.entries(prefix))

    def entries(self, prefix: str) -> Iterator[ListedObject]:
        """Yield what is listed of each object whose key begins with `prefix`, in that order."""
        start = self.root / prefix.rpartition("/")[0]
        found = []
        try:
            for folder, _, names in os.walk(start, onerror=_unless_missing):
                below = Path(folder).relative_to(self.root)
                found += [(below / name).as_posix() for name in names]
        except OSError as error:
            raise StoreError(f"{start} cannot be read: {error.strerror}") from error
        for key in sorted(k for k in found if k.startswith(prefix)):
            if key.startswith(".") and not prefix.startswith("."):
                continue  # a lock or a temporary file, no object of the store
            try:
                status = (self.root / key).stat()
            except FileNotFoundError:
                continue  # removed meanwhile
            except OSError as error:
                raise StoreError(f"{key} cannot be read: {error.strerror}") from error
            yield ListedObject(key, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

    def folders(self, prefix: str) -> list[str]:
        """Return what lies directly below a folder: objects, and folders with `/` at the end."""
        with self._store_errors(self.root / prefix):
            try:
                with os.scandir(self.root / prefix) as found:
                    return sorted(prefix + e.name + "/" * e.is_dir() for e in found)
            except FileNotFoundError:
                return []

    @contextlib.contextmanager
    def _temporary(self, key: str) -> Iterator[tuple[BinaryIO, Path]]:
        """Give a temporary file for the object, opened for writing, and its path."""
        with self._store_errors(self.path(key)), self._scratch() as given:
            yield given

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[tuple[BinaryIO, Path]]:
        """Give a temporary file and its path. Raises OSError."""
        self.root.mkdir(parents=True, exist_ok=True)
        scratch = self.root / layout.TEMPORARY
        scratch.mkdir(exist_ok=True)
        if not self._swept:
            sweep(scratch)
            self._swept = True
        with temporary(scratch) as given:
            yield given

    @contextlib.contextmanager
    def _store_errors(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreError(
                    f"{self.root}: the disk is full; free some space and run again "
                    "(what was published stays as it was)"
                ) from error
            raise StoreError(f"{path} cannot be written: {error.strerror}") from error

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Hold the store's lock, so that comparing and replacing are one step."""
        with self._store_errors(self.root / _LOCK):
            self.root.mkdir(parents=True, exist_ok=True)
            with (self.root / _LOCK).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield


def _unless_missing(error: OSError) -> None:
    """Pass over a folder that was removed meanwhile."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _sync(out: BinaryIO) -> None:
    out.flush()
    os.fsync(out.fileno())


def _try_link(path: Path, target: Path) -> bool:
    """Give the file its place, without a sync, if there is one and the place is free."""
    for left in reversed(range(_TRIES)):
        try:
            os.link(path, target)
        except FileExistsError:
            return False
        except FileNotFoundError:
            if not path.exists():
                return False  # its place was taken before it was written
            if not left:
                raise
            target.parent.mkdir(parents=True, exist_ok=True)
        else:
            return True
    raise AssertionError("unreachable")


def _link(path: Path, target: Path) -> None:
    """Give the file its place durably if that is free. Raises Conflict if it is not."""
    try:
        _place(path, target, os.link)
    except FileExistsError as error:
        raise Conflict(f"{target} is there already") from error


def _place(path: Path, target: Path, move: Callable[[Path, Path], None]) -> None:
    """Give the file at `path` its place, for good; `move` is os.replace or os.link.

    Raises OSError. Whoever removes the last object of a folder removes the folder as well, which
    may happen just before.
    """
    for left in reversed(range(_TRIES)):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            move(path, target)
            break
        except FileNotFoundError:
            if not left or not path.exists():
                raise
    with contextlib.suppress(FileNotFoundError):  # the object was removed again, with its folder
        sync(target.parent)
