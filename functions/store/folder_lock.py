"""Locks of work folders: a process locks a file in its folder for as long as it lives.

An unlocked folder was left by a process that has ended, so another process may remove it. The
library filelock was read: on a file system without flock it falls back to marker files, which
outlive a killed process. Here such a file system is an error that says so.
"""

import contextlib
import fcntl
import os
import shutil
from pathlib import Path
from typing import BinaryIO

LOCK = ".lock"
"""The locked file. It holds the number of the last process that locked it."""


def lock_folder(folder: Path) -> BinaryIO | None:
    """Lock a folder, and create it if it is missing; None if another process holds the lock.

    The folder is locked until the file is closed. Raises OSError.
    """
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # removed before it was locked
            lock = (folder / LOCK).open("a+b")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                lock.close()
                if isinstance(error, BlockingIOError):
                    return None
                raise
            if os.fstat(lock.fileno()).st_nlink:
                lock.truncate(0)
                lock.write(str(os.getpid()).encode())
                lock.flush()
                return lock
            lock.close()


def lock_holder(folder: Path) -> str:
    """Return the number of the process that holds the lock, or "another"."""
    with contextlib.suppress(OSError):
        return (folder / LOCK).read_text("ascii", "replace") or "another"
    return "another"


def remove_abandoned(folder: Path) -> None:
    """Remove a folder whose process has ended. Other folders stay, also those of other users."""
    with contextlib.suppress(OSError), (folder / LOCK).open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
