"""Durable writes by temporary files and syncs, and reads of objects in chunks.

A writer holds the lock of its temporary file until it ends in any way. An unlocked file was left
by a writer that is gone, and the next writer removes it.
"""

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

from functions.snapshot.errors import NO_SPACE, DamagedStore, StoreError, describe_failure
from functions.snapshot.store import Reader

DRAFT = ".draft"
_BESIDE = ".d"  # suffix of the name of a file's folder
_BATCH_OBJECTS, _BATCH_BYTES = 4096, 32 << 20
_CHUNK = 1 << 20  # bytes
_TRIES = 100


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise errors of writing to the local disk as StoreError.

    Row writers blame a full disk on scratch files; the error names `folder` if it occurred there.
    """
    full = f"{folder}: the disk is full; free some space and run the command again; it resumes"
    try:
        with disk_errors(folder, full):
            yield
    except StoreError as error:
        if NO_SPACE in str(error) and str(folder) in f"{error} {error.__cause__}":
            raise StoreError(full) from error
        raise


@contextmanager
def temporary(folder: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Context of a new file in `folder`, locked and open for writing, and its path.

    The file is removed at the end if it still exists. Raises OSError.
    """
    while True:
        handle, name = tempfile.mkstemp(dir=folder)
        os.fchmod(handle, 0o644)
        fcntl.flock(handle, fcntl.LOCK_EX)
        out, path = os.fdopen(handle, "wb"), Path(name)
        if os.fstat(handle).st_nlink:
            break
        out.close()  # removed by another writer's sweep before it was locked
    with out:
        try:
            yield out, path
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def disk_errors(path: Path, full: str) -> Iterator[None]:
    """Raise errors of the operating system as StoreError; its text is `full` if a disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(full) from error
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """Context of a folder for many files. Its writer owns it as long as `path` exists.

    The folder is removed at the end. Raises OSError.
    """
    folder = path.with_name(path.name + _BESIDE)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove the files in `folder` whose writers are gone. Raises OSError."""
    for path in sorted(folder.iterdir(), key=_is_beside):
        if _is_beside(path):
            if not path.with_name(path.name.removesuffix(_BESIDE)).exists():
                shutil.rmtree(path, ignore_errors=True)
            continue
        try:
            with path.open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
        except OSError:
            continue  # locked, already removed, or another user's


def sync(path: Path) -> None:
    """Sync a file or a folder, so that it survives a power cut. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(out: BinaryIO) -> None:
    """Flush and sync an open file. Raises OSError."""
    out.flush()
    os.fsync(out.fileno())


def replace_durably(path: Path, data: bytes) -> None:
    """Replace a file atomically and durably. Raises OSError.

    A killed process may leave a file that ends in DRAFT.
    """
    draft = path.with_name(path.name + DRAFT)
    with draft.open("wb") as out:
        out.write(data)
        sync_file(out)
    draft.replace(path)
    sync(path.parent)


def batches(objects: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    """Yield the named objects in batches of 4,096, or fewer if they are large."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    for named in objects:
        batch.append(named)
        size += len(named[1])
        if len(batch) == _BATCH_OBJECTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def sync_system(folder: Path) -> None:
    """Sync the folder's whole file system, for many small files at once. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is None:
            os.sync()  # not on Linux: sync all file systems
        elif syncfs(handle):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(handle)


def _is_beside(path: Path) -> bool:
    return path.name.endswith(_BESIDE)


def read_chunks(source: BinaryIO, key: str) -> Iterator[bytes]:
    """Yield the rest of an object's stream. Raises DamagedStore on an I/O error of the disk."""
    while True:
        try:
            chunk = source.read(_CHUNK)
        except OSError as error:
            if error.errno == errno.EIO:
                raise DamagedStore(f"{key} cannot be read: {error.strerror}") from error
            raise StoreError(f"{key} cannot be read: {describe_failure(error)}") from error
        if not chunk:
            return
        yield chunk


def digest_file(path: Path, algorithm: str = "sha256") -> str:
    """Return the digest of a local file, in hexadecimal digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def digest_object(
    store: Reader, key: str, advance: Callable[[int], None] = lambda count: None
) -> tuple[str, int]:
    """Return SHA-256 and size of the object at `key`, read in chunks. Raises MissingObject.

    `advance` is called with the number of bytes since its last call.
    """
    digest, size = hashlib.sha256(), 0
    with closing(store.open(key)) as source:
        for chunk in read_chunks(source, key):
            digest.update(chunk)
            size += len(chunk)
            advance(len(chunk))
    return digest.hexdigest(), size


def put_in_place(path: Path, target: Path, move: Callable[[Path, Path], None]) -> None:
    """Move the file into place, with its missing folders. Raises OSError."""
    for left in reversed(range(_TRIES)):
        try:
            move(path, target)
            break
        except FileNotFoundError:
            if not left or not path.exists():
                raise
        if _link_with_folders(path, target):
            break


def _link_with_folders(path: Path, target: Path) -> bool:
    """Put the file into place together with its missing folders, in one step.

    A new empty folder could vanish at once: a process that removes the last object of a folder also
    removes the folder. Returns False if another process changed the folders.
    """
    missing = target.parent
    while not missing.parent.exists():
        missing = missing.parent
    with folder_beside(path) as tree:
        inside = tree / target.relative_to(missing)
        inside.parent.mkdir(parents=True, exist_ok=True)
        os.link(path, inside)
        try:
            tree.rename(missing)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
    return True


class LineJournal:
    """Appends lines to the file at `path`. Its methods raise OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, line: bytes, durable: bool = True) -> None:
        """Append a line without a line feed; sync it unless it may be lost."""
        with self.path.open("ab") as file:
            # A full disk or a kill may have cut off the line before.
            file.write(b"\n" + line + b"\n")
            if durable:
                sync_file(file)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines. A line of a killed process may be incomplete; the reader skips it."""
        with contextlib.suppress(FileNotFoundError), self.path.open("rb") as file:
            for line in file:
                if line.strip():
                    yield line

    def clear(self) -> None:
        """Delete all lines."""
        self.path.unlink(missing_ok=True)
