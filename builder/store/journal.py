"""Journal: a file of lines on this machine's disk, each durable once it is added."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from builder.store.durable import sync_file


class LineJournal:
    """Appends lines to the file at `path`. Its methods raise OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, line: bytes, durable: bool = True) -> None:
        """Append a line without a line feed; sync it unless it may be lost."""
        with self.path.open("ab") as file:
            # A full disk or a kill may have cut off the line before.
            file.write(b"\n" + line + b"\n")
            if durable:
                sync_file(file)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines. A line of a killed process may be incomplete; the reader skips it."""
        with contextlib.suppress(FileNotFoundError), self.path.open("rb") as file:
            for line in file:
                if line.strip():
                    yield line

    def clear(self) -> None:
        """Delete all lines."""
        self.path.unlink(missing_ok=True)
