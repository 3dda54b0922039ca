"""Disk of a restore: the destination folder, and a temporary SQLite database.

No byte is ever written outside the destination. Every name of a path is opened relative to the
folder above it, and links are not followed. So nothing in the folder, even if placed there during
the restore, can lead outside. A file is written under another name and moved to its place when it
is complete. One process at a time uses a folder.

The database is deleted with the process.
"""

import contextlib
import errno
import fcntl
import itertools
import os
import sqlite3
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from builder.errors import explaining
from builder.exports.restore.captures import MissingError, RebuildError
from builder.exports.restore.names import MANIFEST

WORK = ".sheaf-restore"
"""The folder of unfinished files."""
_INTO = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINK_NOR_PIPE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_IN_THE_WAY = frozenset(
    {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EXDEV, errno.EEXIST, errno.ENOTEMPTY}
)


class RestoreFolder:
    """A local folder. Thread-safe."""

    def __init__(self, root: Path) -> None:
        """Lock the folder for this process, create it if it is missing, and remove leftovers.

        Raises RebuildError.
        """
        self._root = root
        self._numbers = itertools.count(1)
        with explaining(root, "written to", RebuildError):
            root.mkdir(parents=True, exist_ok=True)
            self._at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, self._at)
            try:
                self._work = self._below(self._at, WORK)
                stack.callback(os.close, self._work)
                fcntl.flock(self._work, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for left in os.listdir(self._work):  # noqa: PTH208 - by its handle, not by its name
                    os.unlink(left, dir_fd=self._work)
            except BlockingIOError as error:
                raise RebuildError(f"{root}: another restore is writing to it") from error
            except OSError as error:
                raise RebuildError(f"{root / WORK} cannot be used: {error.strerror}") from error
            self._handles = stack.pop_all()

    def close(self) -> None:
        """Close and unlock the folder."""
        with contextlib.suppress(OSError):  # it is not empty, or no folder any more
            os.rmdir(WORK, dir_fd=self._at)
        self._handles.close()

    @contextmanager
    def write(self) -> Iterator[tuple[BinaryIO, str]]:
        """Open a new file and give its name for `place`; a file that is not placed is removed."""
        name = f"{next(self._numbers)}.part"
        with os.fdopen(os.open(name, _ANEW, 0o644, dir_fd=self._work), "w+b") as out:
            try:
                yield out, name
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=self._work)

    def place(self, name: str, path: str, *, over: bool) -> None:
        """Move a flushed file from `write` to its path. `over` replaces a file of an earlier
        restore.

        Raises MissingError in-the-way if the path, or a folder of it, is occupied by something
        else.
        """
        with self._open(path, make=True) as (into, last), _wrap_errors(path):
            if not over and _is_there(into, last):
                raise MissingError("in-the-way", f"{path} already exists")
            os.rename(name, last, src_dir_fd=self._work, dst_dir_fd=into)

    def link(self, existing: str, path: str, *, over: bool) -> bool:
        """Link an existing file to another path; return False if the file system cannot do this."""
        name = f"{next(self._numbers)}.link"
        with self._open(existing, make=False) as (there, last):
            try:
                os.link(last, name, src_dir_fd=there, dst_dir_fd=self._work, follow_symlinks=False)
            except OSError:
                return False
        self.place(name, path, over=over)
        return True

    def is_free(self, path: str) -> bool:
        """Return whether a path is free. Raises MissingError in-the-way."""
        try:
            with self._open(path, make=False) as (there, last), _wrap_errors(path):
                return not _is_there(there, last)
        except FileNotFoundError:
            return True

    def state(self, path: str) -> tuple[int, int] | None:
        """Return size and time (nanoseconds) of a file, or None if it is missing or not a file."""
        try:
            with self._open(path, make=False) as (there, last), _wrap_errors(path):
                status = os.stat(last, dir_fd=there, follow_symlinks=False)
        except (MissingError, FileNotFoundError):
            return None
        return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None

    def remove(self, path: str) -> None:
        """Remove a file, and the folders that it leaves empty."""
        with self._open(path, make=False) as (there, last), _wrap_errors(path):
            os.unlink(last, dir_fd=there)
        while folder := path.rpartition("/")[0]:
            path = folder
            with self._open(path, make=False) as (there, last):
                try:
                    os.rmdir(last, dir_fd=there)
                except OSError:
                    return

    def manifest(self) -> BinaryIO | None:
        """Open the manifest of an earlier restore, or return None.

        Raises RebuildError if it is not a regular file.
        """
        try:
            handle = os.open(MANIFEST, os.O_RDONLY | _NO_LINK_NOR_PIPE, dir_fd=self._at)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RebuildError(f"{self._root / MANIFEST}: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise RebuildError(f"{self._root / MANIFEST} is not a file")
        return os.fdopen(handle, "rb")

    def journal(self) -> BinaryIO:
        """Open the manifest for appending. Raises RebuildError."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK_NOR_PIPE
        with explaining(self._root / MANIFEST, "written", RebuildError):
            return os.fdopen(os.open(MANIFEST, flags, 0o644, dir_fd=self._at), "ab")

    @contextmanager
    def _open(self, path: str, *, make: bool) -> Iterator[tuple[int, str]]:
        """Open the innermost folder of a path, and give the last name beside it.

        Raises MissingError, and FileNotFoundError unless `make`.
        """
        *folders, last = path.split("/")
        if {"", ".", ".."} & {*folders, last}:
            raise MissingError("in-the-way", f"{path} is not a path of a restored file")
        at = self._at
        try:
            for name in folders:
                with _wrap_errors(path):
                    below = self._below(at, name) if make else os.open(name, _INTO, dir_fd=at)
                if at != self._at:
                    os.close(at)
                at = below
            yield at, last
        finally:
            if at != self._at:
                os.close(at)

    def _below(self, at: int, name: str) -> int:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=at)
        return os.open(name, _INTO, dir_fd=at)


def _is_there(at: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _wrap_errors(path: str) -> Iterator[None]:
    """Raise errors of the file system as MissingError, but leave a full disk to the caller."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        code = "in-the-way" if error.errno in _IN_THE_WAY else "no-room"
        raise MissingError(code, f"{path}: {error.strerror}") from error


@contextmanager
def _explain_database() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise RebuildError(
            f"the scratch files of a restore cannot be written: {error}; free some space, or set "
            "TMPDIR to another folder"
        ) from error


class Database(sqlite3.Connection):
    """A connection that threads may share. Its statements raise RebuildError."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lock = threading.Lock()

    @_explain_database()
    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Execute a statement."""
        return super().execute(sql, *values)

    @_explain_database()
    def executemany(self, sql: str, rows: Iterable[Any], /) -> sqlite3.Cursor:
        """Execute a statement for each row. Exceptions of the `rows` iterator pass through."""
        return super().executemany(sql, rows)

    def fetch(self, sql: str, *values: Any) -> Any:
        """Return the first row of a query, None without one."""
        with self._lock:
            return self.execute(sql, values).fetchone()


@_explain_database()
def open_database(path: Path, tables: str, kilobytes: int) -> Database:
    """Create a database with these tables and a cache of `kilobytes`. Raises RebuildError."""
    settings = (
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = FILE; "
        f"PRAGMA cache_size = {-kilobytes};"
    )
    database = sqlite3.connect(path, check_same_thread=False, factory=Database)
    database.executescript(settings + tables)
    return database
