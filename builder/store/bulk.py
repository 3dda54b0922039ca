"""Bulk: many small files written at once, which one sync of their file system makes last."""

import ctypes
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_MOST = 4096  # objects
_BYTES = 32 << 20


def gathered(objects: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    """Yield the objects in batches of 4,096, and fewer where they are large."""
    some: list[tuple[str, bytes]] = []
    size = 0
    for one in objects:
        some.append(one)
        size += len(one[1])
        if len(some) == _MOST or size >= _BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def sync_system(folder: Path) -> None:
    """Return once all that was written to the folder's file system would outlast a power cut.

    Raises OSError.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is None:
            os.sync()  # not on Linux: all file systems
        elif syncfs(handle):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(handle)
