"""Folder of a harvest: one process at a time adds parts, and commits are atomic.

<name>/harvest.json           the state; a part counts once it is named there
<name>/part-<run>-<n>.parquet rows of row.ROW in the order of arrival
<name>/part-<run>-<n>.jsonl   the same rows as JSON lines, if this form was chosen
<name>/part-<run>-<n>.xml     the same rows as <records> of raw record elements, likewise
<name>/sets.json              [setSpec, setName] of the repository's sets, if it has any
<name>/seen.sqlite            index of the items seen; it is rebuilt if it is missing

There is one harvest for each base URL, prefix and set. Of rows with one identifier the last counts.
The state is replaced atomically. After a crash the folder therefore holds the last commit; parts
that the state does not name are removed.

By the index, no version is stored twice. Its memory is bounded, whatever is harvested. An item is
identified by a hash of 64 bits. Two items with one hash would both be reported as changed, with no
other harm.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from builder.errors import UsageError, explaining
from builder.http.secrets import strip_secrets
from builder.sources.harvest import records, state
from builder.sources.harvest.errors import HarvestError
from builder.sources.harvest.repository import HarvestedRepository
from builder.sources.harvest.state import HarvestState, PartFile
from builder.sources.harvest.version import (
    TEXT,
    HarvestedRow,
    SeenVersion,
    Sight,
    item_hash,
    version_hash,
)
from builder.store.durable import DRAFT, replace_durably

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


STATE = "harvest.json"
SETS = "sets.json"
SEEN = "seen.sqlite"
FORMS = ("parquet", "jsonl", "xml")
_PART = re.compile(r"part-([0-9]{6})-([0-9]{6})\.(parquet|jsonl|xml)")
_ODD = re.compile(r"[^a-z0-9.]+")


def folder_name(repository: str, prefix: str, set_: str | None) -> str:
    """Return the folder name of a harvest: readable, and different for each harvest.

    `repository` is the name of the repository, or its base URL.
    """
    parts = urlsplit(repository)
    shown = "-".join(filter(None, (parts.netloc, parts.path, prefix, set_ or "")))
    digest = hashlib.sha256("\n".join((repository, prefix, set_ or "")).encode()).hexdigest()
    return f"{_ODD.sub('-', shown.lower()).strip('-.')[:80]}-{digest[:8]}"


def find_folder(
    home: Path, repository: HarvestedRepository, address: str, prefix: str, set_: str | None
) -> Path:
    """Return the folder of a harvest; one that began under an address stays there."""
    names = (repository.name, strip_secrets(address), address, *repository.addresses)
    paths = [home / folder_name(name, prefix, set_) for name in dict.fromkeys(names) if name]
    return next((path for path in paths if (path / STATE).exists()), paths[0])


def part_name(run: int, number: int, form: str) -> str:
    """Return the name of a part of a run; the names sort in the order of arrival."""
    return f"part-{run:06}-{number:06}.{form}"


def is_part(file: str) -> bool:
    """Return whether a file of that name is a part."""
    return _PART.fullmatch(file) is not None


def read(folder: Path) -> HarvestState | None:
    """Return the state in a harvest's folder, or None if there is no state. Raises HarvestError."""
    path = folder / STATE
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HarvestError(f"{path} cannot be read: {error.strerror}") from error
    harvest = state.parse(data, str(path))
    for part in harvest.parts:
        if not is_part(part.name):
            raise HarvestError(f"{path} names something other than a part: {part.name[:100]!r}")
    return harvest


def check_part(folder: Path, part: PartFile) -> Path:
    """Return the path of a part of a harvest. Raises HarvestError if it was altered."""
    file = folder / part.name
    if not file.is_file() or file.stat().st_size != part.size:
        raise HarvestError(f"{file} was altered: remove {STATE} to harvest everything again")
    return file


def rows(folder: Path, harvest: HarvestState) -> Iterator[HarvestedRow]:
    """Yield all rows of a harvest in the order of arrival. Raises HarvestError."""
    for part in harvest.parts:
        yield from records.read_part(check_part(folder, part), part.run)


class HarvestFolder:
    """The folder of one harvest, locked by this process; results are written here."""

    def __init__(self, path: Path, harvest: HarvestState, seen: Seen, remade: bool) -> None:
        self.path = path
        self.state = harvest
        self.seen = seen
        self.remade = remade
        self._writer: records.PartWriter | None = None
        self._name = ""
        self._rows = 0

    def add(self, row: HarvestedRow) -> Sight:
        """Store a row, unless it was seen before. Raises HarvestError."""
        sight = self.seen.add(row.run, row.identifier, row.datestamp, row.record, row.deleted)
        if sight in (Sight.SAME, Sight.AGAIN):
            return sight
        if self._writer is None:
            number = sum(part.run == row.run for part in self.state.parts)
            self._name = part_name(row.run, number, self.state.form)
            self._writer, self._rows = records.open_part(self.path / self._name, self.state.form), 0
        self._writer.append(row)
        self._rows += 1
        return sight

    def meet(self, run: int, identifier: str, stamp: str) -> Sight | None:
        """Record that a run listed the latest version of an item; None if it did not."""
        return self.seen.meet(run, identifier, stamp)

    def has(self, identifier: str, stamp: str) -> bool:
        """Return whether this is the latest version of an item. Raises HarvestError."""
        return self.seen.has(identifier, stamp)

    def find_unlisted(self, run: int) -> dict[str, tuple[str, ...]]:
        """Return the items that are not deleted and were not received in a run, with their sets.

        Raises HarvestError.
        """
        items = self.seen.list_unlisted(run)
        latest: dict[str, tuple[str, ...]] = {}
        for part in self.state.parts if items else ():
            headers = records.read_headers(self.path / part.name)
            latest |= {name: sets for name, sets in headers if item_hash(name.encode()) in items}
        return latest

    def commit(self) -> None:
        """Flush the stored rows and the state to disk. Raises HarvestError."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            size = (self.path / self._name).stat().st_size
            begun = self.state.going.started if self.state.going else ""
            self.state.parts.append(PartFile(self._name, self._rows, size, begun))
        self.state.commit += 1
        self.seen.commit(self.state.commit)
        self.write(STATE, self.state.document())

    def keep_sets(self, sets: Sequence[tuple[str, str]]) -> None:
        """Write the repository's sets: setSpec and setName of each."""
        text = json.dumps(sets, ensure_ascii=False, indent=1)
        self.write(SETS, text.encode("utf-8", "replace"))

    def write(self, name: str, data: bytes) -> None:
        """Replace a file atomically and durably. Raises HarvestError."""
        with explaining(self.path, "written", HarvestError):
            replace_durably(self.path / name, data)


@contextmanager
def open_folder(
    path: Path, fresh: HarvestState, form: str | None = None
) -> Iterator[HarvestFolder]:
    """Open the folder of a harvest; without a state in it, the state is `fresh`.

    The folder is removed again if the harvest never began.
    Raises UsageError if another process uses the folder, or if its form is not `form` (unless
    `form` is None). Raises HarvestError if the folder is damaged.
    """
    with _lock(path):
        harvest = read(path) or fresh
        if strip_secrets(harvest.base_url) != fresh.base_url:  # the repository moved
            harvest.base_url = fresh.base_url
        for part in harvest.parts:
            check_part(path, part)
        if form not in (None, harvest.form):
            raise UsageError(
                f"{path} has the format {harvest.form}: --format {form} needs another DIR"
            )
        named = {part.name for part in harvest.parts}
        with explaining(path, "written", HarvestError):
            for file in path.iterdir():
                left = is_part(file.name) and file.name not in named
                if left or file.name.endswith(DRAFT):
                    file.unlink()
        seen = Seen.open(path / SEEN, harvest.commit)
        remade = seen is None
        if seen is None:
            seen, run = Seen.create(path / SEEN), 0
            for row in rows(path, harvest):
                if row.run != run:
                    run = row.run
                    seen.begin()
                seen.add(row.run, row.identifier, row.datestamp, row.record, row.deleted)
        with contextlib.closing(seen):
            yield HarvestFolder(path, harvest, seen, remade and bool(harvest.parts))
        if not (harvest.runs or harvest.going or harvest.parts):
            # Remove the folder of a harvest that never began, unless it has files of others.
            with explaining(path, "written", HarvestError):
                for name in (STATE, SETS, SEEN):
                    (path / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                path.rmdir()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with explaining(path, "written", HarvestError):
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another process is harvesting into {path}: wait until it ends"
            ) from None
        yield
    finally:
        os.close(handle)
