"""Where `sheaf serve` writes its access log: to a file or to standard error.

functions.http.access_log.log_entry makes the lines, one JSON object each, and names their fields. A
request that is no valid HTTP has no line. The file may be rotated, truncated or written to by other
processes.
"""

import fcntl
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from builder.errors import UsageError

STANDARD_ERROR = "-"


class LogFile:
    """Appends lines to a file, or to a new one if it was moved. Thread-safe.

    Each line is written at once and under a lock, so that several processes may share the file.
    """

    def __init__(self, path: Path) -> None:
        """Open the file. Raises UsageError if this fails."""
        self._path = path
        self._lock = threading.Lock()
        try:
            self._file = self._open()
        except OSError as error:
            raise UsageError(f"access log {path}: {error.strerror or error}") from error

    def __call__(self, line: str) -> None:
        """Append a line. Raises OSError if it cannot be written completely."""
        data = f"{line}\n".encode()
        with self._lock:
            if self._is_moved():
                file = self._open()
                os.close(self._file)
                self._file = file
            with _lock_file(self._file):
                size = os.fstat(self._file).st_size
                if os.write(self._file, data) < len(data):
                    with suppress(OSError):  # not a file
                        os.ftruncate(self._file, size)
                    raise OSError(f"{self._path}: only a part of a line was written")

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)

    def _is_moved(self) -> bool:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return True
        held = os.fstat(self._file)
        return (found.st_dev, found.st_ino) != (held.st_dev, held.st_ino)


@contextmanager
def _lock_file(file: int) -> Iterator[None]:
    """Keep other processes from writing; continue without a lock if locking is unsupported."""
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)


def to_standard_error(line: str) -> None:
    """Write a line to standard error."""
    # In one call: print writes the newline separately, and other threads could come between.
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def open_log(name: str, folder: Path) -> Callable[[str], None] | None:
    """Return the writer of the log `name`: a file relative to `folder`, "-" for stderr, or None."""
    if not name:
        return None
    return to_standard_error if name == STANDARD_ERROR else LogFile(folder / name)
