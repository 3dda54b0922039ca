"""Bytes of a file of records, gunzipped; what fails in reading them is a RecordsError."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, BinaryIO, cast

from builder.sources.records.record import RecordsError

ByteSource = Path | BinaryIO
HEAD = 1 << 16  # bytes
CHUNK = 1 << 20  # bytes
LONGEST = 1 << 26
"""Bytes of the longest record: what seems longer has lost its end."""


@contextmanager
def open_source(source: ByteSource) -> Iterator[IO[bytes]]:
    """Open a file, or take a stream, and gunzip it if it is. Raises RecordsError, also later."""
    try:
        opened = source.open("rb") if isinstance(source, Path) else source
        with BufferedReader(cast(RawIOBase, opened)) as stream:
            is_packed = stream.peek(2)[:2] == b"\x1f\x8b"
            with gzip.open(stream) if is_packed else stream as plain:
                yield cast(IO[bytes], plain)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordsError(f"it cannot be read: {reason}") from error


def read_head(source: ByteSource) -> bytes:
    """Return the first 64 KiB of a file or stream, after gunzip; all of a shorter one.

    Raises RecordsError.
    """
    with open_source(source) as stream:
        return stream.read(HEAD)
