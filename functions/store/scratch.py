"""Temporary folders for parts of a bucket, removed with their process.

A process locks a file in its folder for as long as it lives. An unlocked folder was left by a dead
process, and the next process removes it.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import BinaryIO

from functions.snapshot.errors import StoreError

PREFIX = "sheaf-cache-"
_LOCK = ".lock"


class Scratch:
    """A folder below TMPDIR, at `path`. `close` or the end of the process removes it."""

    def __init__(self) -> None:
        """Create the folder. Raises StoreError if that fails."""
        try:
            _sweep(Path(tempfile.gettempdir()))
            self.path, lock = _lock_folder()
        except OSError as error:
            raise StoreError(
                f"cannot create a folder for the cache of the bucket: {error.strerror}; free some "
                "space, or set TMPDIR to another folder"
            ) from error
        self.close = weakref.finalize(self, _remove, self.path, lock, os.getpid())


def _lock_folder() -> tuple[Path, BinaryIO]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = (folder / _LOCK).open("wb")
        with contextlib.suppress(OSError):  # a file system without locks is never swept
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock.fileno()).st_nlink:
            return folder, lock
        lock.close()  # another process swept it before it was locked


def _sweep(parent: Path) -> None:
    for folder in parent.glob(PREFIX + "*"):
        try:
            with (folder / _LOCK).open("r+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # in use, removed meanwhile, another user's, or not locked yet


def _remove(folder: Path, lock: BinaryIO, process: int) -> None:
    if os.getpid() == process:  # not in a forked child
        shutil.rmtree(folder, ignore_errors=True)
    lock.close()
