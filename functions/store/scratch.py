"""Local space for parts of a bucket: temporary folders, and arithmetic on byte ranges.

A process locks a file in its folder for as long as it lives. An unlocked folder was left by a dead
process, and the next process removes it.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

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


class Extent(NamedTuple):
    """The bytes from `start` up to but not including `end`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Number of bytes."""
        return self.end - self.start

    def meets(self, other: "Extent") -> bool:
        """Return whether the two share a byte."""
        return self.start < other.end and other.start < self.end


def merge_extents(
    extents: Iterable[Extent], gap: int = 0, size: int | None = None
) -> tuple[Extent, ...]:
    """Return the extents sorted; extents at most `gap` bytes apart are joined.

    Bytes at or behind `size` are left out.
    """
    found: list[Extent] = []
    for one in sorted(extents):
        end = one.end if size is None else min(one.end, size)
        if one.start >= end:
            continue
        if found and one.start <= found[-1].end + gap:
            found[-1] = Extent(found[-1].start, max(found[-1].end, end))
        else:
            found.append(Extent(one.start, end))
    return tuple(found)


def missing_extents(wanted: Iterable[Extent], there: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return the part of `wanted` that is not in `there`, whose extents are merged."""
    return tuple(left for one in merge_extents(wanted) for left in _without(one, there))


def cut_extents(extents: Iterable[Extent], most: int) -> list[Extent]:
    """Return the extents, cut into pieces of at most `most` bytes."""
    return [
        Extent(start, min(start + most, one.end))
        for one in extents
        for start in range(one.start, one.end, most)
    ]


def _without(one: Extent, there: Sequence[Extent]) -> Iterator[Extent]:
    start = one.start
    for other in there:
        if other.meets(one):
            if start < other.start:
                yield Extent(start, other.start)
            start = max(start, other.end)
    if start < one.end:
        yield Extent(start, one.end)
