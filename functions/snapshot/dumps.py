"""The dumps in a store: dumps/index.json, the only object there that is replaced, and their lists.

For each format the index names the complete dump, the newest difference, and the list of all. So
catching up with the last publish takes two small objects. The list is the complete dump and the
differences, which lead from earlier snapshots to the newest one. A reader at snapshot N takes every
difference with a higher snapshot, in their order. If the first of them begins after N, or if N is
unknown, the reader takes the complete dump first.

Names are relative to the folder of the index.
"""

import json
from collections.abc import Mapping

from functions.snapshot.errors import MissingObject
from functions.snapshot.seal import (
    Instant,
    Struct,
    build,
    check_seal,
    encode,
    refuse_damage,
    seal,
    to_values,
)
from functions.snapshot.store import Reader

FOLDER = "dumps/"
INDEX = "dumps/index.json"
SCHEMA = 1
"""The version of the index, of lists and of manifests."""
KEYS = ".keys"
"""The suffix of the object beside a part with the keys of its identifiers.

builder.outputs.dumps.keys writes it.
"""
MANIFEST = ".json"
"""The suffix of a manifest."""


class DumpPart(Struct, frozen=True):
    """A part: its name, records, deleted ones among them, bytes, and SHA-256 in hexadecimal.

    `positions` are the first and last ones of its records in the log.
    """

    name: str
    records: int
    deleted: int
    bytes: int
    sha256: str
    positions: tuple[int, int]


class DumpEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dump as of `snapshot`: complete (`since` is None), or the difference to snapshot `since`.

    `records`, `deleted` and `bytes` are those of all parts. `name` and `sha256` are those of its
    only part, or of the manifest of its parts. They are empty if it has no records.
    """

    since: int | None = None
    snapshot: int
    records: int
    deleted: int
    bytes: int
    name: str = ""
    sha256: str = ""

    @property
    def has_manifest(self) -> bool:
        """Whether it has several parts, which a manifest lists."""
        return self.name.endswith(MANIFEST)


class StoredDump(DumpEntry, frozen=True, kw_only=True, omit_defaults=True):
    """A dump with the instant of its snapshot, and the first and last position in its parts.

    The positions are (1, 0) if it has no records.
    """

    datestamp: Instant
    positions: tuple[int, int]

    @property
    def entry(self) -> DumpEntry:
        """What the index says of it."""
        return build(DumpEntry, to_values(self))


class FormatDumps(Struct, frozen=True):
    """The list of a format: the complete dump, and the differences in the order of snapshots."""

    complete: StoredDump
    differences: tuple[StoredDump, ...] = ()

    @property
    def all(self) -> tuple[StoredDump, ...]:
        """All dumps, the complete one first."""
        return (self.complete, *self.differences)

    def to_json(self) -> bytes:
        """Return the list as JSON for the store."""
        return encode({"schema": SCHEMA, **to_values(self)})

    @staticmethod
    def from_json(data: bytes) -> "FormatDumps":
        """Parse the output of `to_json`. Raises DamagedStore."""
        with refuse_damage("a list of dumps"):
            return build(FormatDumps, json.loads(data))


class FormatEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the index has of a format: its newest difference if it has any, and the list's name."""

    complete: DumpEntry
    newest: DumpEntry | None = None
    list: str


class DumpIndex(Struct, frozen=True, omit_defaults=True):
    """The index as of `snapshot` and its instant.

    `removed` are keys of objects that must not be read any more, because they hold withdrawn
    records. Each update removes them from the store.
    """

    store: str
    repository: str
    snapshot: int
    datestamp: Instant
    formats: Mapping[str, FormatEntry]
    removed: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """Return the index as JSON for the store; short, because readers fetch it often."""
        return seal(encode({"schema": SCHEMA, **to_values(self)}, ascii=False))

    @staticmethod
    def from_json(data: bytes) -> "DumpIndex":
        """Parse the output of `to_json`. Raises DamagedStore."""
        with refuse_damage(INDEX):
            check_seal(data)
            document = json.loads(data)
            if document["schema"] != SCHEMA:
                raise ValueError(f"schema is {document['schema']!r}")
            return build(DumpIndex, document)


def read_index(reader: Reader) -> DumpIndex | None:
    """Return the index of a store; None if it has no dumps. Raises StoreError."""
    try:
        return DumpIndex.from_json(reader.read(INDEX))
    except MissingObject:
        return None


def parts_from_json(data: bytes) -> tuple[DumpPart, ...]:
    """Return the parts that the manifest of a dump lists. Raises DamagedStore."""
    with refuse_damage("a manifest of dumps"):
        return build(tuple[DumpPart, ...], json.loads(data)["parts"])
