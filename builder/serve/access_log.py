"""Logs: lines at the end of a file that others may move, cut or write to as well."""

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from builder.errors import UsageError

STANDARD_ERROR = "-"


class LogFile:
    """Appends lines to a file; where that was moved away, to a new one. Safe to use from threads.

    Each line is written at once, so that several processes may share the file.
    """

    def __init__(self, path: Path) -> None:
        """Open the file. Raises UsageError if that cannot be."""
        self._path = path
        self._lock = threading.Lock()
        self._torn = False
        try:
            self._file = self._opened()
        except OSError as error:
            raise UsageError(f"access log {path}: {error.strerror or error}") from error

    def __call__(self, line: str) -> None:
        """Append a line. Raises OSError where it cannot be written whole."""
        data = f"{line}\n".encode()
        with self._lock:
            if self._is_moved():
                file = self._opened()
                os.close(self._file)
                self._file, self._torn = file, False
            if self._torn:  # a full disk took a part of the line before
                data = b"\n" + data
            # Where nothing at all is taken, what was torn stays so.
            written = os.write(self._file, data)
            self._torn = written < len(data)
            if self._torn:
                raise OSError(f"{self._path}: only a part of a line was written")

    def _opened(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)

    def _is_moved(self) -> bool:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return True
        held = os.fstat(self._file)
        return (found.st_dev, found.st_ino) != (held.st_dev, held.st_ino)


def to_standard_error(line: str) -> None:
    """Write a line to standard error."""
    # In one piece: print writes the line's end apart, and other threads come in between.
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def opened(name: str, folder: Path) -> Callable[[str], None] | None:
    """Return what writes to the log `name`: a file seen from `folder`, "-", or none at all."""
    if not name:
        return None
    return to_standard_error if name == STANDARD_ERROR else LogFile(folder / name)
