"""Leaves of the manifest: descriptions of data files and their row groups."""

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from functions.snapshot.errors import VERSION, DamagedStore, check_version
from functions.snapshot.seal import check_seal

MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
"""Exceptions that JSON of an unexpected shape raises."""

Key = int | str | tuple[str, int] | None
"""A bound of a row group: its first columns in schema.ORDER, or None if no bound is kept."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are read together: bounds, count, and their byte range.

    The next `tail` bytes are a footer for this row group alone, so a file that ends there is a
    Parquet file. `check` is the CRC-32 of the bytes of `span`.
    """

    first: Key
    last: Key
    rows: int
    offset: int
    length: int
    tail: int
    check: int

    @property
    def span(self) -> tuple[int, int]:
        """Offset and length of its bytes, its own footer included."""
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
        """Number of rows in the file."""
        return sum(group.rows for group in self.groups)


@dataclass(frozen=True, slots=True)
class Leaf:
    """Up to layout.LEAF_FILES data files of one table, in the table's order."""

    files: tuple[DataFile, ...]

    def to_json(self) -> bytes:
        """Return the leaf as JSON for the store; the same leaf gives the same bytes."""
        whole = {"schema": VERSION, "files": self.files_json()}
        return json.dumps(whole, separators=(",", ":")).encode()

    def files_json(self) -> list[dict[str, Any]]:
        """Return the files as JSON values."""
        return [
            {
                "key": f.key,
                "bytes": f.bytes,
                "footer": f.footer,
                "groups": [_values(group) for group in f.groups],
            }
            for f in self.files
        ]

    @staticmethod
    def from_json(data: bytes) -> "Leaf":
        """Parse the output of `to_json`. Raises NewerSchema or DamagedStore."""
        found = document(data, "a leaf")
        try:
            return Leaf.of(found["files"])
        except MALFORMED as error:
            raise DamagedStore(f"a leaf of the manifest is damaged: {error!r}") from error

    @staticmethod
    def of(listed: Any) -> "Leaf":
        """Build a leaf from the output of `files_json`. Raises one of MALFORMED."""
        return Leaf(
            tuple(
                DataFile(
                    f["key"],
                    f["bytes"],
                    f["footer"],
                    tuple(
                        RowGroup(key(first), key(last), *numbers)
                        for first, last, *numbers in f["groups"]
                    ),
                )
                for f in listed
            )
        )


def _values(group: RowGroup) -> list[Any]:
    return [
        group.first,
        group.last,
        group.rows,
        group.offset,
        group.length,
        group.tail,
        group.check,
    ]


def document(data: bytes, what: str) -> Any:
    """Parse a JSON document of the store. Raises NewerSchema or DamagedStore."""
    try:
        check_seal(data)
        found = json.loads(data)
        check_version(found["schema"])
    except MALFORMED as error:
        raise DamagedStore(f"{what} of a snapshot is damaged: {error!r}") from error
    return found


def key(value: Any) -> Any:
    """Return a bound with lists turned into tuples, which JSON lacks."""
    return tuple(value) if isinstance(value, list) else value


def overlapping(parts: Sequence[Any], first: Key, last: Key) -> Sequence[Any]:
    """Return the adjacent `parts` (leaves or row groups, in order) that can hold first..last."""
    start = bisect_left(parts, first, key=lambda part: part.last)
    end = start
    while end < len(parts) and parts[end].first <= last:
        end += 1
    return parts[start:end]
