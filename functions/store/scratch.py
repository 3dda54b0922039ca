"""Local space for parts of a bucket: temporary folders, and arithmetic on byte ranges.

A folder that a dead process left is removed by the next process.
"""

import errno
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from functions.snapshot.errors import StoreError
from functions.store.folder_lock import lock_folder, remove_abandoned

CACHE, SPILL = "sheaf-cache-", "sheaf-spill-"
"""Beginnings of the names of folders, by what they hold."""
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


class Scratch:
    """A folder below TMPDIR, at `path`. `close` or the end of the process removes it."""

    def __init__(self, prefix: str = CACHE) -> None:
        """Create the folder. Raises StoreError if that fails."""
        try:
            for folder in Path(tempfile.gettempdir()).glob(prefix + "*"):
                remove_abandoned(folder)
            self.path, lock = _new_folder(prefix)
        except OSError as error:
            raise StoreError(
                f"cannot create a folder for temporary files: {error.strerror}; free some space, "
                "or set TMPDIR to another folder"
            ) from error
        self.close = weakref.finalize(self, _remove, self.path, lock, os.getpid())


def _new_folder(prefix: str) -> tuple[Path, BinaryIO | None]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        try:
            lock = lock_folder(folder)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return folder, None  # a file system without locks is never swept
        if lock is not None:
            return folder, lock


def _remove(folder: Path, lock: BinaryIO | None, process: int) -> None:
    if os.getpid() == process:  # not in a forked child
        shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
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
    merged: list[Extent] = []
    for extent in sorted(extents):
        end = extent.end if size is None else min(extent.end, size)
        if extent.start >= end:
            continue
        if merged and extent.start <= merged[-1].end + gap:
            merged[-1] = Extent(merged[-1].start, max(merged[-1].end, end))
        else:
            merged.append(Extent(extent.start, end))
    return tuple(merged)


def missing_extents(wanted: Iterable[Extent], there: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return the part of `wanted` that is not in `there`, whose extents are merged."""
    return tuple(left for extent in merge_extents(wanted) for left in _without(extent, there))


def cut_extents(extents: Iterable[Extent], most: int) -> list[Extent]:
    """Return the extents, cut into pieces of at most `most` bytes."""
    return [
        Extent(start, min(start + most, extent.end))
        for extent in extents
        for start in range(extent.start, extent.end, most)
    ]


def _without(extent: Extent, there: Sequence[Extent]) -> Iterator[Extent]:
    start = extent.start
    for other in there:
        if other.meets(extent):
            if start < other.start:
                yield Extent(start, other.start)
            start = max(start, other.end)
    if start < extent.end:
        yield Extent(start, extent.end)
