"""Temporary SQLite database of a restore, on disk and deleted with the process."""

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from builder.restore.errors import RebuildError

T = TypeVar("T")


class Database(sqlite3.Connection):
    """A connection that threads may share. Its statements raise RebuildError."""

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Execute a statement."""
        return _wrap_errors(lambda: super(Database, self).execute(sql, *values))

    def executemany(self, sql: str, rows: Iterable[Any], /) -> sqlite3.Cursor:
        """Execute a statement for each row. Exceptions of the `rows` iterator pass through."""
        return _wrap_errors(lambda: super(Database, self).executemany(sql, rows))


def open_database(path: Path, tables: str, kilobytes: int) -> Database:
    """Create a database with these tables and a cache of `kilobytes`. Raises RebuildError."""
    settings = (
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = FILE; "
        f"PRAGMA cache_size = {-kilobytes};"
    )
    database = _wrap_errors(
        lambda: sqlite3.connect(path, check_same_thread=False, factory=Database)
    )
    _wrap_errors(lambda: database.executescript(settings + tables))
    return database


def _wrap_errors(call: Callable[[], T]) -> T:
    try:
        return call()
    except sqlite3.Error as error:
        raise RebuildError(
            f"the scratch files of a restore cannot be written: {error}; free some space, or set "
            "TMPDIR to another folder"
        ) from error
