"""Index of the Iceberg tables, `tables/index.json`: what was written for which snapshot.

It is the state from which the next update continues, and the list of what belongs to the tables.
It is replaced last, by a conditional write.
"""

from collections.abc import Iterable, Mapping

from functions.snapshot import layout
from functions.snapshot.errors import VERSION
from functions.snapshot.seal import Instant, Struct, encode, field, parse, replace, to_values

FOLDER = layout.TABLES
INDEX = "tables/index.json"
DELETED = "tables/deletes/"
HINT = "version-hint.text"


class DeleteFile(Struct, frozen=True, array_like=True):
    """A file of deleted rows: key, size in bytes, number of rows."""

    key: str
    bytes: int
    rows: int


class FileDeletes(Struct, frozen=True, array_like=True):
    """What engines must not see of a data file of records.

    `superseded` are rows that a later version supersedes. `others` are, by table of items, these
    and the rows of other kinds, where there are some. `without` are the tables that have no row of
    the file, in order.
    """

    superseded: DeleteFile | None = None
    others: Mapping[str, DeleteFile] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    def find(self, table: str) -> DeleteFile | None:
        """Return the deletes of the file in a table: one at most."""
        return self.others.get(table) or self.superseded


class ManifestFile(Struct, frozen=True, array_like=True):
    """A manifest: key, size, content (avro.DATA or avro.DELETES), and its files and their rows."""

    key: str
    bytes: int
    content: int
    files: int
    rows: int


class TableSnapshot(Struct, frozen=True, array_like=True):
    """A snapshot of a table: number, instant, key of its manifest list, rows that engines see."""

    number: int
    effective: Instant
    key: str
    rows: int


class TablesIndex(Struct, frozen=True):
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
    earlier: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, FileDeletes] = field(default_factory=dict)
    leaves: Mapping[str, Mapping[str, tuple[ManifestFile, ...]]] = field(default_factory=dict)

    def drop(self, keeps: Iterable[int]) -> "TablesIndex":
        """Return the index with those snapshots alone; a table without any is left out."""
        numbers = set(keeps)
        left = {
            name: tuple(snapshot for snapshot in snapshots if snapshot.number in numbers)
            for name, snapshots in self.snapshots.items()
        }
        return replace(
            self, snapshots={name: snapshots for name, snapshots in left.items() if snapshots}
        )

    def to_json(self) -> bytes:
        """Return the index as JSON for the store."""
        return encode({"schema": VERSION, **to_values(self)})

    @staticmethod
    def from_json(data: bytes) -> "TablesIndex":
        """Parse the output of `to_json`. Raises DamagedStore and NewerSchema."""
        return parse(TablesIndex, data, INDEX)


def metadata_key(table: str, version: int) -> str:
    """Return the key of a version of a table's metadata."""
    return f"{FOLDER}{table}/metadata/v{version}.metadata.json"


def hint_key(table: str) -> str:
    """Return the key of the file that names the version in effect."""
    return f"{FOLDER}{table}/metadata/{HINT}"
