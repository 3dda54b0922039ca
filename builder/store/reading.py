"""Reads an object of a store to its end, in chunks."""

import errno
from collections.abc import Iterator
from typing import BinaryIO

from functions.snapshot.errors import DamagedStore, StoreError

_CHUNK = 1 << 20  # bytes


def chunks(source: BinaryIO, key: str) -> Iterator[bytes]:
    """Yield the rest of an object's stream. Raises DamagedStore on an I/O error of the disk."""
    while True:
        try:
            chunk = source.read(_CHUNK)
        except OSError as error:
            if error.errno == errno.EIO:
                raise DamagedStore(f"{key} cannot be read: {error.strerror}") from error
            raise StoreError(f"{key} cannot be read: {error}") from error
        if not chunk:
            return
        yield chunk
