"""Temporary files of a folder store: what is written first, and then takes its place at once.

A writer holds its file's lock for as long as it lives, whatever ends it. So a file that nobody
holds was left by a writer that is gone, and the next writer removes it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_BESIDE = ".d"  # what the name of a file's folder ends with


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


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """Give a folder for as many files as one likes, which is its writer's as long as `path` is.

    It is removed in the end. Raises OSError.
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
            continue  # held, removed by somebody else, or another user's


def sync(path: Path) -> None:
    """See that a file or a folder outlives a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_beside(path: Path) -> bool:
    return path.name.endswith(_BESIDE)


def _locked(folder: Path) -> tuple[BinaryIO, Path]:
    while True:
        handle, name = tempfile.mkstemp(dir=folder)
        os.fchmod(handle, 0o644)
        fcntl.flock(handle, fcntl.LOCK_EX)
        out = os.fdopen(handle, "wb")
        if os.fstat(handle).st_nlink:
            return out, Path(name)
        out.close()  # swept before it was locked
