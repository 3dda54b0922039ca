"""Versions of harvested records: their rows, and an index of the latest of each item.

A row is the same in all output forms. By the index, no version is stored twice. The index can be
rebuilt from the parts. Its memory is bounded, whatever is harvested. An item is identified by a
hash of 64 bits. Two items with one hash would both be reported as changed, with no other harm.
"""

import hashlib
import json
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import repeat
from pathlib import Path
from typing import Any, Self

from builder.harvest.errors import HarvestError
from functions.snapshot.item_tables import Column

DC = (
    "title", "creator", "subject", "description", "publisher", "contributor", "date", "type",
    "format", "identifier", "source", "language", "relation", "coverage", "rights",
)  # fmt: skip
"""The elements of Dublin Core 1.1; each is a column `dc_<name>`."""

ROW = (
    Column("identifier", "VARCHAR", "the item's identifier", "oai:a.cz:1"),
    Column("datestamp", "VARCHAR", "its datestamp, as the repository wrote it", "2026-11-22"),
    Column("deleted", "BOOLEAN", "whether the repository declares it deleted", "false"),
    Column("sets", "VARCHAR[]", "setSpecs of its header, in order", "[a, b:c]"),
    *(Column(f"dc_{name}", "VARCHAR[]", f"dc:{name}, in order; NULL if there are none", "[...]")
      for name in DC),
    Column("record", "VARCHAR", "the record element with its namespaces", "<record>..."),
    Column("harvested", "VARCHAR", "responseDate of its page", "2026-11-22T1..."),
    Column("run", "INTEGER", "number of its run", "1"),
    Column("fault", "VARCHAR", "description of repairs to it; NULL if there were none", "NULL"),
)  # fmt: skip
"""The columns of a row, the same in Parquet and JSON lines."""
_CACHE = 64_000  # KiB
_HASH = 16
"""Bytes of a version's hash."""
_SCHEMA = """
CREATE TABLE items (item INTEGER PRIMARY KEY, version BLOB, stamp TEXT, run INTEGER,
    deleted INTEGER);
CREATE TABLE former (item INTEGER, version BLOB, PRIMARY KEY (item, version)) WITHOUT ROWID;
CREATE TABLE commits (number INTEGER);
"""


@dataclass(frozen=True, slots=True)
class HarvestedRow:
    """A harvested version of a record. `dc` holds those Dublin Core elements that are present."""

    identifier: str
    datestamp: str
    deleted: bool
    sets: tuple[str, ...]
    dc: Mapping[str, tuple[str, ...]]
    record: str
    harvested: str
    run: int
    fault: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the row by the names of ROW; a JSON line is the same without None values."""
        return {
            "identifier": self.identifier,
            "datestamp": self.datestamp,
            "deleted": self.deleted,
            "sets": list(self.sets),
            **{f"dc_{name}": list(self.dc[name]) if name in self.dc else None for name in DC},
            "record": self.record,
            "harvested": self.harvested,
            "run": self.run,
            "fault": self.fault,
        }


class Sight(Enum):
    """How a version compares with what was seen before."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    AGAIN = "again"
    ANOTHER = "another"
    """Another version of an item that was received in the same run."""


ItemVersion = tuple[int, bytes, str, int, bool]
"""A version of an item as a row of the index: hashes of both, datestamp, run, and deleted."""


def item_versions(
    run: int,
    identifiers: Iterable[bytes],
    stamps: Sequence[str],
    records: Iterable[bytes],
    deleted: Sequence[bool],
) -> list[ItemVersion]:
    """Return what the index holds of versions; names and `records`, their XML, are in UTF-8."""
    blake2b = hashlib.blake2b
    heads = {stamp: stamp.encode() + b"\0" for stamp in {*stamps}}
    return [
        (_item(name), blake2b(heads[stamp] + text, digest_size=_HASH).digest(), stamp, run, gone)
        for name, stamp, text, gone in zip(identifiers, stamps, records, deleted, strict=True)
    ]


def pack_versions(versions: Sequence[ItemVersion]) -> bytes:
    """Return versions of one run as bytes, for another process."""
    items, hashes, stamps, _, deleted = zip(*versions, strict=True)
    places = {stamp: place for place, stamp in enumerate(dict.fromkeys(stamps))}
    head = json.dumps([len(versions), [*places]]).encode() + b"\n"
    numbers = array("i", map(places.__getitem__, stamps)).tobytes()
    return b"".join((head, array("q", items).tobytes(), numbers, bytes(deleted), *hashes))


def unpack_versions(data: bytes, run: int) -> list[ItemVersion]:
    """Return the versions of `pack_versions`."""
    head, _, rest = data.partition(b"\n")
    count, stamps = json.loads(head)
    items, places = array("q", rest[: 8 * count]), array("i", rest[8 * count : 12 * count])
    deleted, hashes = map(bool, rest[12 * count : 13 * count]), rest[13 * count :]
    each = (hashes[at : at + _HASH] for at in range(0, len(hashes), _HASH))
    named = map(stamps.__getitem__, places)
    return list(zip(items, each, named, repeat(run, count), deleted, strict=True))


class Seen:
    """The index, in a file that this process has locked. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _wrap_errors(path):
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
        except sqlite3.Error:
            rows = []
        if rows != [(commit,)]:
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
        with _wrap_errors(path):
            seen._base.executescript(_SCHEMA)
            seen._base.execute("BEGIN")
        return seen

    def begin(self) -> None:
        """Begin a run and forget the item versions replaced in the run before."""
        with _wrap_errors(self._path):
            self._base.execute("DELETE FROM former")

    def add(self, run: int, identifier: str, stamp: str, text: str, deleted: bool) -> Sight:
        """Record a version in a run, and return how it compares. Raises HarvestError."""
        ((item, version, *_),) = item_versions(
            run, (identifier.encode(),), (stamp,), (text.encode(),), (deleted,)
        )
        try:
            return self._insert(item, version, stamp, run, deleted)
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from error

    def _insert(self, item: int, version: bytes, stamp: str, run: int, deleted: bool) -> Sight:
        added = self._base.execute(
            "INSERT OR IGNORE INTO items VALUES (?, ?, ?, ?, ?)",
            (item, version, stamp, run, deleted),
        )
        if added.rowcount:
            return Sight.NEW
        found = self._base.execute(
            "SELECT version, run FROM items WHERE item = ?", (item,)
        ).fetchone()
        before, when = found
        if before != version:
            return self._replace(item, version, stamp, run, deleted, found)
        if when == run:
            return Sight.AGAIN
        self._base.execute("UPDATE items SET run = ? WHERE item = ?", (run, item))
        return Sight.SAME

    def _replace(
        self,
        item: int,
        version: bytes,
        stamp: str,
        run: int,
        deleted: bool,
        found: tuple[bytes, int],
    ) -> Sight:
        before, when = found
        known = self._base.execute(
            "SELECT 1 FROM former WHERE item = ? AND version = ?", (item, version)
        ).fetchone()
        if known is not None:
            return Sight.AGAIN
        if when == run:
            self._base.execute("INSERT OR IGNORE INTO former VALUES (?, ?)", (item, before))
        self._base.execute(
            "UPDATE items SET version = ?, stamp = ?, run = ?, deleted = ? WHERE item = ?",
            (version, stamp, run, deleted, item),
        )
        return Sight.CHANGED if when != run else Sight.ANOTHER

    def add_new(self, versions: Sequence[ItemVersion]) -> bool:
        """Record versions of items, if none of the items was seen before.

        Return whether they were recorded. Raises HarvestError.
        """
        with _wrap_errors(self._path):
            self._base.execute("SAVEPOINT versions")
            before = self._base.total_changes
            self._base.executemany("INSERT OR IGNORE INTO items VALUES (?, ?, ?, ?, ?)", versions)
            whole = self._base.total_changes - before == len(versions)
            if not whole:
                self._base.execute("ROLLBACK TO versions")
            self._base.execute("RELEASE versions")
        return whole

    def has(self, identifier: str, stamp: str) -> bool:
        """Return whether the latest version of an item has that datestamp."""
        with _wrap_errors(self._path):
            found = self._base.execute(
                "SELECT 1 FROM items WHERE item = ? AND stamp = ?",
                (_item(identifier.encode()), stamp),
            ).fetchone()
        return found is not None

    def count_unlisted(self, run: int) -> int:
        """Return the number of items that are not deleted and were not received in a run."""
        with _wrap_errors(self._path):
            (many,) = self._base.execute(
                "SELECT count(*) FROM items WHERE run < ? AND NOT deleted", (run,)
            ).fetchone()
        return int(many)

    def commit(self, number: int) -> None:
        """Flush the index to disk, as that commit."""
        with _wrap_errors(self._path):
            self._base.execute("DELETE FROM commits")
            self._base.execute("INSERT INTO commits VALUES (?)", (number,))
            self._base.execute("COMMIT")
            self._base.execute("BEGIN")

    def close(self) -> None:
        """Close the index; uncommitted changes are lost."""
        self._base.close()


def _item(identifier: bytes) -> int:
    digest = hashlib.blake2b(identifier, digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


@contextmanager
def _wrap_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: sqlite3.Error) -> HarvestError:
    return HarvestError(f"{path} cannot be used: {error}")
