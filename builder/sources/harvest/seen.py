"""Index of the items that a harvest has seen: by it, no version is stored twice.

Its memory is bounded, whatever is harvested. An item is identified by a hash of 64 bits. Two items
with one hash would both be reported as changed, with no other harm.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from builder.sources.harvest.errors import HarvestError
from builder.sources.harvest.version import (
    TEXT,
    SeenVersion,
    Sight,
    item_hash,
    version_hash,
)

_CACHE = 64_000  # KiB
_FORM = 2
"""Form of the index; an index in another one is rebuilt."""
_SCHEMA = f"""
CREATE TABLE items (item BLOB PRIMARY KEY, seen BLOB) WITHOUT ROWID;
CREATE TABLE former (item BLOB, version BLOB, PRIMARY KEY (item, version)) WITHOUT ROWID;
CREATE TABLE commits (number INTEGER);
PRAGMA user_version = {_FORM};
"""
# Behind the hash of the XML are `deleted`, one byte, and the run, whose bytes sort as numbers.
_LIVE = f"FROM items WHERE substr(seen, {TEXT + 1}, 1) = x'00'"
_UNLISTED = f"SELECT item {_LIVE} AND substr(seen, {TEXT + 2}, 4) < ?"


class Seen:
    """The index, in a file that this process has locked. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _wrap_index_errors(path):
            self._base = sqlite3.connect(path, isolation_level=None)
            self._base.executescript(
                f"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
                f"PRAGMA cache_size = -{_CACHE};"
            )

    @classmethod
    def open(cls, path: Path, commit: int) -> Self | None:
        """Return the index of that commit, or None if it must be rebuilt."""
        if not path.exists():
            return None
        try:
            seen = cls(path)
        except HarvestError:
            return None
        try:
            rows = seen._base.execute("SELECT number FROM commits").fetchall()
            rows += seen._base.execute("PRAGMA user_version").fetchall()
            rows += seen._base.execute("PRAGMA quick_check(1)").fetchall()
        except sqlite3.Error:
            rows = []
        if rows != [(commit,), (_FORM,), ("ok",)]:
            seen.close()
            return None
        seen._base.execute("BEGIN")
        return seen

    @classmethod
    def create(cls, path: Path) -> Self:
        """Return an empty index in a new file."""
        for suffix in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        seen = cls(path)
        with _wrap_index_errors(path):
            seen._base.executescript(_SCHEMA)
            seen._base.execute("BEGIN")
        return seen

    def begin(self) -> None:
        """Begin a run and forget the item versions replaced in the run before."""
        with _wrap_index_errors(self._path):
            self._base.execute("DELETE FROM former")

    def add(self, run: int, identifier: str, stamp: str, text: str, deleted: bool) -> Sight:
        """Record a version in a run, and return how it compares. Raises HarvestError."""
        item = item_hash(identifier.encode())
        now = SeenVersion(version_hash(text.encode()), deleted, run, stamp)
        values = item, bytes(now)
        with _wrap_index_errors(self._path):
            added = self._base.execute("INSERT OR IGNORE INTO items VALUES (?, ?)", values)
            if added.rowcount:
                return Sight.NEW
            before = self._find(item)
            assert before is not None
            if before.is_same(now):
                if before.run == run:
                    return Sight.AGAIN
                self._put(item, before._replace(run=run))
                return Sight.SAME
            return self._replace(item, before, now)

    def _find(self, item: bytes) -> SeenVersion | None:
        row = self._base.execute("SELECT seen FROM items WHERE item = ?", (item,)).fetchone()
        return SeenVersion.read(row[0]) if row else None

    def _put(self, item: bytes, version: SeenVersion) -> None:
        self._base.execute("UPDATE items SET seen = ? WHERE item = ?", (bytes(version), item))

    def _replace(self, item: bytes, before: SeenVersion, now: SeenVersion) -> Sight:
        former = self._base.execute(
            "SELECT 1 FROM former WHERE item = ? AND version = ?", (item, _key(now))
        ).fetchone()
        if former is not None:
            return Sight.AGAIN
        if before.run == now.run:
            self._base.execute("INSERT OR IGNORE INTO former VALUES (?, ?)", (item, _key(before)))
        self._put(item, now)
        return Sight.CHANGED if before.run != now.run else Sight.ANOTHER

    def meet(self, run: int, identifier: str, stamp: str) -> Sight | None:
        """Record that a run listed the latest version of an item, or return None if it did not.

        The version is told by its datestamp.
        """
        item = item_hash(identifier.encode())
        with _wrap_index_errors(self._path):
            version = self._find(item)
            if version is None or version.stamp != stamp:
                return None
            if version.run == run:
                return Sight.AGAIN
            self._put(item, version._replace(run=run))
        return Sight.SAME

    def has(self, identifier: str, stamp: str) -> bool:
        """Return whether the latest version of an item has that datestamp."""
        with _wrap_index_errors(self._path):
            version = self._find(item_hash(identifier.encode()))
        return version is not None and version.stamp == stamp

    def list_unlisted(self, run: int) -> frozenset[bytes]:
        """Return the hashes of the items that are not deleted and were not received in a run."""
        with _wrap_index_errors(self._path):
            rows = self._base.execute(_UNLISTED, (run.to_bytes(4, "big"),))
            return frozenset(item for (item,) in rows)

    def count_live(self) -> int:
        """Return the number of items that are not deleted."""
        with _wrap_index_errors(self._path):
            (count,) = self._base.execute(f"SELECT count(*) {_LIVE}").fetchone()
        return int(count)

    def commit(self, number: int) -> None:
        """Flush the index to disk, as that commit."""
        with _wrap_index_errors(self._path):
            self._base.execute("DELETE FROM commits")
            self._base.execute("INSERT INTO commits VALUES (?)", (number,))
            self._base.execute("COMMIT")
            self._base.execute("BEGIN")

    def close(self) -> None:
        """Close the index; uncommitted changes are lost."""
        self._base.close()


def _key(version: SeenVersion) -> bytes:
    """Return the bytes of a version that are the same in every run."""
    return version.text + version.stamp.encode()


@contextmanager
def _wrap_index_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise HarvestError(f"{path} cannot be used: {error}") from error
