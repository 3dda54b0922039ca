"""Versions of harvested records: their rows, which are the same in all forms, and their hashes.

The hashes are XXH3, which is fast. A repository that makes two records of one hash harms only the
harvest of its own records.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import NamedTuple, Self

from xxhash import xxh3_64_digest, xxh3_128_digest

from functions.snapshot.item_tables import Column

DC = (
    "title",
    "creator",
    "subject",
    "description",
    "publisher",
    "contributor",
    "date",
    "type",
    "format",
    "identifier",
    "source",
    "language",
    "relation",
    "coverage",
    "rights",
)
"""The elements of Dublin Core 1.1; each is a column `dc_<name>`."""

ROW = (
    Column("identifier", "VARCHAR", "the item's identifier", "oai:a.cz:1"),
    Column("datestamp", "VARCHAR", "its datestamp, as the repository wrote it", "2026-11-22"),
    Column("deleted", "BOOLEAN", "whether the repository declares it deleted", "false"),
    Column("sets", "VARCHAR[]", "setSpecs of its header, in order", "[a, b:c]"),
    *(
        Column(f"dc_{name}", "VARCHAR[]", f"dc:{name}, in order; NULL if there are none", "[...]")
        for name in DC
    ),
    Column("record", "VARCHAR", "the record element with its namespaces", "<record>..."),
    Column("harvested", "VARCHAR", "responseDate of its page", "2026-11-22T1..."),
    Column("run", "INTEGER", "number of its run", "1"),
    Column("fault", "VARCHAR", "description of repairs to it; NULL if there were none", "NULL"),
    Column("single", "BOOLEAN", "whether GetRecord gave it, for all sets; NULL: no", "NULL"),
)
"""The columns of a row, the same in Parquet and JSON lines."""
TEXT = 16
"""Bytes of the hash of a version's XML."""
_HEAD = Struct(f">{TEXT}s?i")
"""A hash of a version's XML, whether it is deleted, and its run; its datestamp follows."""


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
    single: bool | None = None


class Sight(Enum):
    """How a version compares with what was seen before."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    AGAIN = "again"
    ANOTHER = "another"
    """Another version of an item that was received in the same run."""


class SeenVersion(NamedTuple):
    """What the index holds of a version: a hash of its XML, deleted, its run, its datestamp."""

    text: bytes
    deleted: bool
    run: int
    stamp: str

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Return the version of its bytes."""
        text, deleted, run = _HEAD.unpack_from(data)
        return cls(text, deleted, run, data[_HEAD.size :].decode())

    def __bytes__(self) -> bytes:
        return _HEAD.pack(self.text, self.deleted, self.run) + self.stamp.encode()

    def is_same(self, other: "SeenVersion") -> bool:
        """Return whether both are one version, in whatever runs they were received."""
        return (self.text, self.stamp) == (other.text, other.stamp)


def item_hash(identifier: bytes) -> bytes:
    """Return the hash of an item's identifier, which is in UTF-8."""
    return bytes(xxh3_64_digest(identifier))


def version_hash(record: bytes) -> bytes:
    """Return the hash of a version's XML, which is in UTF-8."""
    return bytes(xxh3_128_digest(record))
