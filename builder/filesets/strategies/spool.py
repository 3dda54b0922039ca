"""Spools: the bytes of one file on this machine, in memory while they are few."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from builder.intake.intake import writing

_PIECE = 1 << 18


class FileSpool:
    """Sink for the bytes of one file, which are read again; more than `memory` go to `scratch`.

    `go_on` is called while they are read, and may raise.
    """

    def __init__(self, scratch: Path, memory: int, go_on: Callable[[], None]) -> None:
        self._scratch = scratch
        self._go_on = go_on
        self.file: Any = tempfile.SpooledTemporaryFile(memory, "w+b", dir=str(scratch))  # noqa: SIM115

    @contextmanager
    def open(self) -> Iterator["FileSpool"]:
        """Yield the sink, empty."""
        self.file.seek(0)
        self.file.truncate()
        yield self

    def write(self, data: bytes) -> None:
        """Append bytes. Raises StoreError if the disk is full."""
        with writing(self._scratch):
            self.file.write(data)

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes from the start."""
        self.file.seek(0)
        while piece := self.file.read(_PIECE):
            self._go_on()
            yield piece

    def close(self) -> None:
        """Discard the bytes."""
        self.file.close()
