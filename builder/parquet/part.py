"""A part of a Parquet file that is a valid Parquet file by itself when cut out."""

from collections.abc import Iterator
from typing import BinaryIO

_NOTHING = memoryview(bytes(1 << 20))


class ParquetPart:
    """File object for a writer of one row group: bytes and a footer go to the end of `file`.

    The writer counts from 0. So of its output, as many bytes are dropped as `file` has already, and
    all offsets in the footer are those in `file`.
    """

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = file.tell()

    def lead(self) -> Iterator[memoryview]:
        """Yield the bytes that the writer, which has begun, must write before the row group."""
        left = self._left
        while left > 0:
            yield _NOTHING[:left]
            left -= len(_NOTHING)

    def write(self, data: bytes) -> int:
        """Write the bytes after the lead."""
        drop = min(self._left, len(data))
        self._left -= drop
        self._file.write(memoryview(data)[drop:])
        return len(data)

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is closed."""

    def close(self) -> None:
        """Do nothing: the next part goes to the same file."""
