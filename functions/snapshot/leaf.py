"""A leaf of the manifest: what it says of data files and their row groups."""

import json
from dataclasses import dataclass
from typing import Any

from functions.snapshot.errors import DamagedStore
from functions.snapshot.version import VERSION, check_version

MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
"""What comes of JSON that is of another shape than it should be."""

Key = int | str | tuple[str, int] | None
"""A bound of a row group: its first columns in schema.ORDER, or None where none is kept."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are read together: bounds, count, and the byte range that holds them.

    The `tail` bytes behind these are a footer of this row group alone: a file that ends there is a
    Parquet file. 0 where there is none, as in tables that no request reads.
    """

    first: Key
    last: Key
    rows: int
    offset: int
    length: int
    tail: int = 0

    @property
    def span(self) -> tuple[int, int]:
        """Offset and length of its bytes and its own footer."""
        return self.offset, self.length + self.tail


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file: key, size in bytes, length of its footer, and its row groups in order."""

    key: str
    bytes: int
    footer: int
    groups: tuple[RowGroup, ...]

    @property
    def rows(self) -> int:
        """Rows of the file."""
        return sum(group.rows for group in self.groups)


@dataclass(frozen=True, slots=True)
class Leaf:
    """Up to layout.LEAF_FILES data files of one table, in the table's order."""

    files: tuple[DataFile, ...]

    def to_json(self) -> bytes:
        """Return the leaf as the store holds it; the same leaf gives the same bytes."""
        whole = {"schema": VERSION, "files": self.files_json()}
        return json.dumps(whole, separators=(",", ":")).encode()

    def files_json(self) -> list[dict[str, Any]]:
        """Return what JSON has of the files."""
        return [
            {
                "key": f.key,
                "bytes": f.bytes,
                "footer": f.footer,
                "groups": [[g.first, g.last, g.rows, g.offset, g.length, g.tail] for g in f.groups],
            }
            for f in self.files
        ]

    @staticmethod
    def from_json(data: bytes) -> "Leaf":
        """Read what `to_json` wrote. Raises NewerSchema or DamagedStore."""
        found = document(data, "a leaf")
        try:
            return Leaf.of(found["files"])
        except MALFORMED as error:
            raise DamagedStore(f"a leaf of the manifest is damaged: {error!r}") from error

    @staticmethod
    def of(listed: Any) -> "Leaf":
        """Read what `listed` gave. Raises one of MALFORMED."""
        return Leaf(
            tuple(
                DataFile(
                    f["key"],
                    f["bytes"],
                    f["footer"],
                    tuple(
                        RowGroup(key(first), key(last), rows, offset, length, tail)
                        for first, last, rows, offset, length, tail in f["groups"]
                    ),
                )
                for f in listed
            )
        )


def document(data: bytes, what: str) -> Any:
    """Return a JSON document of the store. Raises NewerSchema or DamagedStore."""
    try:
        found = json.loads(data)
        check_version(found["schema"])
    except MALFORMED as error:
        raise DamagedStore(f"{what} of a snapshot is damaged: {error!r}") from error
    return found


def key(value: Any) -> Any:
    """Return a bound as it is kept: JSON has no tuples."""
    return tuple(value) if isinstance(value, list) else value
