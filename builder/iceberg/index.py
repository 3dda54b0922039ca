"""Index of the Iceberg tables, `tables/index.json`: what was written for which snapshot.

It is the state from which the next update continues, and the list of what belongs to the tables.
It is replaced last, by a conditional write.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from functions.snapshot import instant, layout
from functions.snapshot.errors import VERSION, DamagedStore
from functions.snapshot.leaf import MALFORMED, document

FOLDER = layout.TABLES
INDEX = "tables/index.json"
DELETED = "tables/deletes/"
HINT = "version-hint.text"


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A file of deleted rows: key, size in bytes, number of rows."""

    key: str
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class FileDeletes:
    """What engines must not see of a data file of records.

    `superseded` are rows that a later version supersedes. `others` are, by table of items, these
    and the rows of other kinds, where there are some. `without` are the tables that have no row of
    the file.
    """

    superseded: DeleteFile | None = None
    others: Mapping[str, DeleteFile] = field(default_factory=dict)
    without: frozenset[str] = frozenset()

    def find(self, table: str) -> DeleteFile | None:
        """Return the deletes of the file in a table: one at most."""
        return self.others.get(table) or self.superseded


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A manifest: key, size, content (avro.DATA or avro.DELETES), and its files and their rows."""

    key: str
    bytes: int
    content: int
    files: int
    rows: int


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """A snapshot of a table: number, instant, key of its manifest list, rows that engines see."""

    number: int
    effective: datetime
    key: str
    rows: int


@dataclass(frozen=True, slots=True)
class TablesIndex:
    """The state of the tables of a store.

    `location` is the address that paths begin with, `version` the number of the metadata files,
    and `tags` the tags of objects that updates replace. `snapshots` are those of each table,
    ascending. Of the newest snapshot, `dead` are the files of superseded positions, `files` the
    deletes of each data file of records, and `leaves` the manifests of each leaf by table.
    `earlier` has the SHA-256 of the metadata before this version by key, for readers of old hints.
    """

    store: str
    location: str
    schemas: str
    snapshot: int = 0
    version: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)
    snapshots: Mapping[str, tuple[TableSnapshot, ...]] = field(default_factory=dict)
    dead: tuple[str, ...] = ()
    files: Mapping[str, FileDeletes] = field(default_factory=dict)
    leaves: Mapping[str, Mapping[str, tuple[ManifestFile, ...]]] = field(default_factory=dict)
    earlier: Mapping[str, str] = field(default_factory=dict)

    def drop(self, keeps: Iterable[int]) -> "TablesIndex":
        """Return the index with those snapshots alone; a table without any is left out."""
        kept = set(keeps)
        left = {
            name: tuple(one for one in some if one.number in kept)
            for name, some in self.snapshots.items()
        }
        return replace(self, snapshots={name: some for name, some in left.items() if some})

    def to_json(self) -> bytes:
        """Return the index as JSON for the store."""
        whole = {
            "schema": VERSION,
            "store": self.store,
            "location": self.location,
            "schemas": self.schemas,
            "snapshot": self.snapshot,
            "version": self.version,
            "tags": dict(self.tags),
            "snapshots": {
                name: [[s.number, instant.to_text(s.effective), s.key, s.rows] for s in some]
                for name, some in self.snapshots.items()
            },
            "dead": list(self.dead),
            "earlier": dict(self.earlier),
            "files": {
                key: [
                    one.superseded and _values(one.superseded),
                    {name: _values(file) for name, file in one.others.items()},
                    sorted(one.without),
                ]
                for key, one in self.files.items()
            },
            "leaves": {
                leaf: {name: [_values(m) for m in some] for name, some in tables.items()}
                for leaf, tables in self.leaves.items()
            },
        }
        return json.dumps(whole, separators=(",", ":")).encode()

    @staticmethod
    def from_json(data: bytes) -> "TablesIndex":
        """Parse the output of `to_json`. Raises DamagedStore and NewerSchema."""
        found = document(data, "the index of the tables")
        try:
            return TablesIndex(
                store=str(found["store"]),
                location=str(found["location"]),
                schemas=str(found["schemas"]),
                snapshot=int(found["snapshot"]),
                version=int(found["version"]),
                tags=dict(found["tags"]),
                snapshots={
                    name: tuple(
                        TableSnapshot(number, instant.from_text(when), key, rows)
                        for number, when, key, rows in some
                    )
                    for name, some in found["snapshots"].items()
                },
                dead=tuple(found["dead"]),
                earlier=dict(found.get("earlier", {})),
                files={key: _parse_file(*one) for key, one in found["files"].items()},
                leaves={
                    leaf: {
                        name: tuple(ManifestFile(*one) for one in some)
                        for name, some in tables.items()
                    }
                    for leaf, tables in found["leaves"].items()
                },
            )
        except MALFORMED as error:
            raise DamagedStore(f"{INDEX} is damaged: {error!r}") from error


def _values(one: DeleteFile | ManifestFile) -> list[Any]:
    return list(asdict(one).values())


def _parse_file(superseded: Any, others: Any, without: Any) -> FileDeletes:
    return FileDeletes(
        superseded and DeleteFile(*superseded),
        {name: DeleteFile(*file) for name, file in others.items()},
        frozenset(without),
    )


def metadata_key(table: str, version: int) -> str:
    """Return the key of a version of a table's metadata."""
    return f"{FOLDER}{table}/metadata/v{version}.metadata.json"


def hint_key(table: str) -> str:
    """Return the key of the file that names the version in effect."""
    return f"{FOLDER}{table}/metadata/{HINT}"
