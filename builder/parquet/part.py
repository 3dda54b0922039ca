"""A part of a Parquet file that is a Parquet file itself to whoever cuts it out."""

from collections.abc import Iterator
from typing import BinaryIO

_NOTHING = memoryview(bytes(1 << 20))


class ParquetPart:
    """What one row group is written to: its bytes, and a footer, go to the end of `file`.

    Its writer counts from 0. So of what it writes as many bytes are left out as there are in the
    file already, and all offsets in the footer are those in the file.
    """

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = file.tell()

    def lead(self) -> Iterator[memoryview]:
        """Yield what the writer, which has begun, has to write before the row group."""
        left = self._left
        while left > 0:
            yield _NOTHING[:left]
            left -= len(_NOTHING)

    def write(self, data: bytes) -> int:
        """Write what comes behind the lead."""
        drop = min(self._left, len(data))
        self._left -= drop
        self._file.write(memoryview(data)[drop:])
        return len(data)

    def flush(self) -> None:
        """Do nothing: the file is flushed when it is closed."""

    def close(self) -> None:
        """Do nothing: the next part goes to the same file."""
