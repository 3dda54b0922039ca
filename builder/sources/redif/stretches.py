"""Stretches: byte ranges of the files in a folder."""

import os
from collections import OrderedDict
from pathlib import Path

_MOST_OPEN = 64  # most files open at a time


class Stretches:
    """Reads byte ranges of the files in a folder; the latest files stay open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[str, int] = OrderedDict()

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return a byte range of the named file. Raises OSError."""
        number = self._open.pop(name, None)
        if number is None:
            number = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
        self._open[name] = number
        if len(self._open) > _MOST_OPEN:
            os.close(self._open.popitem(last=False)[1])
        data = os.pread(number, size, start)
        if len(data) != size:
            raise OSError(f"{name} ends {size - len(data)} bytes too early")
        return data

    def close(self) -> None:
        """Close the open files."""
        while self._open:
            os.close(self._open.popitem()[1])
