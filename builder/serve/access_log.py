"""Where `sheaf serve` writes its access log: to a file or to standard error.

functions.http.access_log.log_entry makes the lines, one JSON object each, and names their fields. A
request that is no valid HTTP has no line. The file may be moved away or truncated, and several
workers append to it.
"""

import logging
import sys
from collections.abc import Callable
from logging.handlers import WatchedFileHandler
from pathlib import Path

from builder.errors import UsageError

STANDARD_ERROR = "-"


class LogFile(WatchedFileHandler):
    """Appends lines to a file, or to a new one if it was moved. Errors are raised, not printed."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Raise the error that is being handled."""
        raise


def to_standard_error(line: str) -> None:
    """Write a line to standard error."""
    # In one call: print writes the newline separately, and other threads could come between.
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def open_log(name: str, folder: Path) -> Callable[[str], None] | None:
    """Return the writer of the log `name`: a file relative to `folder`, "-" for stderr, or None.

    Raises UsageError if the file cannot be opened.
    """
    if not name:
        return None
    if name == STANDARD_ERROR:
        return to_standard_error
    path = folder / name
    try:
        handler = LogFile(path, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"access log {path}: {error.strerror or error}") from error

    def write(line: str) -> None:
        handler.handle(logging.makeLogRecord({"msg": line}))

    return write
