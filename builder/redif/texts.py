"""Texts of templates that were parsed: read where the rows say that they lie."""

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OPEN = 64  # files at a time


class Stretches:
    """Reads stretches of the files below a folder; the latest ones stay open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[str, int] = OrderedDict()

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return a stretch of the file of that name. Raises OSError."""
        number = self._open.pop(name, None)
        if number is None:
            number = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
        self._open[name] = number
        if len(self._open) > _OPEN:
            os.close(self._open.popitem(last=False)[1])
        return os.pread(number, size, start)

    def close(self) -> None:
        """Close them."""
        while self._open:
            os.close(self._open.popitem()[1])


@contextmanager
def stretches(folder: Path) -> Iterator[Stretches]:
    """Give what reads stretches below a folder for as long as the context."""
    found = Stretches(folder)
    try:
        yield found
    finally:
        found.close()
