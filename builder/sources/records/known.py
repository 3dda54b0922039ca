"""Index of the records of a table, of the files that were read last: what is unchanged is known.

It can be lost without harm: then all files are read, and the publish finds that items are equal. It
counts only if it is of the same recipe, and if the store has what was read. Memory is bounded.
"""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from functions.snapshot.errors import StoreError

_SCHEMA = """
CREATE TABLE recipe (text TEXT, settled INTEGER);
CREATE TABLE files (number INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT UNIQUE, size INTEGER,
    modified INTEGER, reading TEXT, repeats INTEGER DEFAULT 0, faults INTEGER DEFAULT 0);
PRAGMA user_version = 2;
CREATE TABLE records (item INTEGER PRIMARY KEY, digest BLOB, file INTEGER, run INTEGER);
"""
_DIGESTS = "CREATE INDEX IF NOT EXISTS digests ON records (digest)"
_CACHE = 64_000  # KiB


class RecordIndex:
    """The index of a table, in a file that one process uses. Not thread-safe."""

    def __init__(self, path: Path, recipe: str, readings: Collection[str]) -> None:
        """Open the index, empty if it is of another `recipe`, or of files not in `readings`."""
        self._path = path
        self._whole: set[int] = set()
        self._file = 0
        self._is_empty = False
        self.gone_files: list[Path] = []
        """Files that the table had, and no longer has."""
        self._matches: dict[bytes, list[list[int]]] = {}
        self._taken: set[int] = set()
        self._unchanged: list[int] = []
        self.has_changes = False
        """Whether a file is new, has changed or is gone."""
        self.is_settled = False
        """Whether nothing waits to be deleted since the last change."""
        self.replaced = 0
        """Number of items of an earlier run that have another record now."""
        with self._wrap_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._base = self._open()
            rows = self._base.execute("SELECT text, settled FROM recipe").fetchall()
            own = {r for (r,) in self._base.execute("SELECT reading FROM files")}
            self.is_settled = rows == [(recipe, 1)]
            if [text for text, _ in rows] != [recipe] or not own <= {*readings}:
                for table in ("recipe", "files", "records"):
                    self._base.execute(f"DELETE FROM {table}")
                self._base.execute("INSERT INTO recipe VALUES (?, 0)", (recipe,))
            sql = "SELECT coalesce(max(run), 0) + 1 FROM records"
            ((self._run,),) = self._base.execute(sql).fetchall()

    def _open(self) -> sqlite3.Connection:
        """Return the database with an open transaction; a damaged one is made anew."""
        for _ in range(2):
            base = sqlite3.connect(self._path, isolation_level=None)
            with suppress(sqlite3.DatabaseError):
                base.executescript(f"PRAGMA synchronous = OFF; PRAGMA cache_size = -{_CACHE}")
                if not base.execute("SELECT 1 FROM sqlite_master").fetchall():
                    base.executescript(f"{_SCHEMA};{_DIGESTS}")
                if base.execute("PRAGMA user_version").fetchall() != [(2,)]:
                    raise sqlite3.DatabaseError  # of another form
                base.execute("BEGIN IMMEDIATE")
                base.execute("SELECT * FROM records LIMIT 1")
                return base
            base.close()
            self._path.unlink(missing_ok=True)
        raise StoreError(f"{self._path} cannot be written")

    def list_changed(self, paths: Sequence[Path]) -> list[Path]:
        """Return the files that were not read as they are, by size and time; forget all others."""
        with self._wrap_errors():
            sql = "SELECT path, size, modified, number, repeats FROM files"
            rows = {path: values for path, *values in self._base.execute(sql)}
            whole = {p: rows[str(p)] for p in paths if rows.get(str(p), ())[:2] == [*_state_of(p)]}
            if len(whole) < max(len(paths), len(rows)):
                # What was left out as a repetition may be the only record of its item now.
                whole = {path: values for path, values in whole.items() if not values[3]}
            self._whole = {number for _, _, number, _ in whole.values()}
            gone = [(values[2],) for values in rows.values() if values[2] not in self._whole]
            self.gone_files = [Path(path) for path in rows.keys() - {*map(str, paths)}]
            self._base.executemany("DELETE FROM files WHERE number = ?", gone)
            self.has_changes = bool(gone) or len(whole) < len(paths)
            self._is_empty = not self._base.execute("SELECT 1 FROM records LIMIT 1").fetchall()
            if self._is_empty:  # at the end, the index of digests takes a third of the time
                self._base.execute("DROP INDEX IF EXISTS digests")
        return [path for path in paths if path not in whole]

    def begin_file(self, path: Path, reading: str) -> None:
        """Begin the records of a file that is read."""
        with self._wrap_errors():
            self._write_kept()
            values = (str(path), *_state_of(path), reading)
            sql = "INSERT INTO files (path, size, modified, reading) VALUES (?, ?, ?, ?)"
            self._file = int(self._base.execute(sql, values).lastrowid or 0)

    def note_file(self, repeats: int, faults: int) -> None:
        """Note how many records of the file were left out: repeated ones, and faulty ones."""
        with self._wrap_errors():
            sql = "UPDATE files SET repeats = ?, faults = ? WHERE number = ?"
            self._base.execute(sql, (repeats, faults, self._file))

    def list_faulty(self) -> list[str]:
        """Return the files that have records that could not be read: they may be of any item."""
        rows = self._base.execute("SELECT path FROM files WHERE faults > 0 ORDER BY path")
        return [path for (path,) in rows]

    def settle(self, *, done: bool) -> None:
        """Note whether all is deleted that is to be, so that no run needs to look for it."""
        with self._wrap_errors():
            self._base.execute("UPDATE recipe SET settled = ?", (int(done),))

    def doubt_file(self) -> None:
        """Let the file that is being read be read again next time."""
        with self._wrap_errors():
            self._base.execute("DELETE FROM files WHERE number = ?", (self._file,))

    def expect(self, digests: Sequence[bytes]) -> None:
        """Look up records that are asked for next, all at once: a third of the time."""
        if self._is_empty:
            return
        self._write_kept()
        self._matches = {digest: [] for digest in digests}
        marks = ", ".join("?" * len(digests))
        sql = f"SELECT digest, item, file, run FROM records WHERE digest IN ({marks})"
        for digest, *match in self._base.execute(sql, [*digests]):
            self._matches[digest].append(match)

    def is_known(self, digest: bytes) -> bool:
        """Return whether an item of an earlier run has a record with this digest."""
        if digest not in self._matches:
            self.expect([digest])
        return bool(self._matches.get(digest))

    def keep(self, digest: bytes) -> bool:
        """Note that an item's record, which is known, is unchanged.

        Returns False if a file has one of the item already.
        """
        for item, file, run in self._matches[digest]:
            if run < self._run and file not in self._whole and item not in self._taken:
                self._taken.add(item)
                self._unchanged.append(item)
                return True
        return False

    def add(self, identifier: str, digest: bytes) -> bool:
        """Note an item's record; False if a file has one of the item already."""
        item, execute = hash_identifier(identifier), self._base.execute
        if item in self._taken:
            return False
        values = (item, digest, self._file, self._run)
        if execute("INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?)", values).rowcount:
            return True
        file, run = execute("SELECT file, run FROM records WHERE item = ?", (item,)).fetchone()
        if run == self._run or file in self._whole:
            return False
        execute("REPLACE INTO records VALUES (?, ?, ?, ?)", values)
        self.replaced += 1
        self._taken.add(item)
        return True

    def _write_kept(self) -> None:
        """Write what was noted since records were looked up, which is as it was from then on."""
        sql = f"UPDATE records SET file = {self._file}, run = {self._run} WHERE item = ?"
        self._base.executemany(sql, [(item,) for item in self._unchanged])
        self._unchanged, self._taken, self._matches = [], set(), {}

    def doubt_record(self, identifier: str) -> None:
        """Let the record of an item be parsed whenever its file is read."""
        sql = "UPDATE records SET digest = NULL WHERE item = ?"
        self._base.execute(sql, (hash_identifier(identifier),))

    def end_run(self) -> None:
        """Forget the records that no file has any more."""
        with self._wrap_errors():
            self._write_kept()
            self._base.execute(
                "DELETE FROM records WHERE run < ? AND file NOT IN (SELECT number FROM files)",
                (self._run,),
            )
            self._base.execute(_DIGESTS)

    def has_item(self, identifier: str) -> bool:
        """Return whether a file has a record of the item."""
        return not self.list_lacking([identifier])

    def list_lacking(self, identifiers: Sequence[str]) -> list[str]:
        """Return those of a thousand items or so of which no file has a record."""
        hashes = [*map(hash_identifier, identifiers)]
        sql = f"SELECT item FROM records WHERE item IN ({', '.join('?' * len(hashes))})"
        present = {item for (item,) in self._base.execute(sql, hashes)}
        return [i for i, number in zip(identifiers, hashes, strict=True) if number not in present]

    def close(self, *, commit: bool) -> None:
        """Close the index; without `commit`, it is as it was."""
        with self._wrap_errors():
            self._base.execute("COMMIT" if commit else "ROLLBACK")
            self._base.close()

    @contextmanager
    def _wrap_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self._path}: {error}") from error


def _state_of(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def hash_identifier(identifier: str) -> int:
    """Return the number by which an item is known here."""
    digest = blake2b(identifier.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
