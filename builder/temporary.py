"""Temporary files of a folder store: what is written first, and then takes its place at once.

A writer holds its file's lock for as long as it lives, whatever ends it. So a file that nobody
holds was left by a writer that is gone, and the next writer removes it.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def temporary(folder: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """Give a new file in `folder`, opened for writing and locked, and where it lies.

    If it lies there still in the end, it is removed. Raises OSError.
    """
    out, path = _locked(folder)
    with out:
        try:
            yield out, path
        finally:
            path.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove the files in `folder` whose writers are gone. Raises OSError."""
    for path in folder.iterdir():
        try:
            with path.open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
        except OSError:
            continue  # held, removed by somebody else, or another user's


def _locked(folder: Path) -> tuple[BinaryIO, Path]:
    while True:
        handle, name = tempfile.mkstemp(dir=folder)
        os.fchmod(handle, 0o644)
        fcntl.flock(handle, fcntl.LOCK_EX)
        out = os.fdopen(handle, "wb")
        if os.fstat(handle).st_nlink:
            return out, Path(name)
        out.close()  # swept before it was locked
