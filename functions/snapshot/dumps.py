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
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from functions.snapshot import instant
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.seal import build, check_seal, seal
from functions.snapshot.store import Reader

FOLDER = "dumps/"
INDEX = "dumps/index.json"
SCHEMA = 1
"""The version of the index, of lists and of manifests."""
KEYS = ".keys"
"""The suffix of the object beside a part with the keys of its identifiers (builder.dump.keys)."""
MANIFEST = ".json"
"""The suffix of a manifest."""

_FAULTS = (ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class DumpPart:
    """A part: its name, records, deleted ones among them, bytes, and SHA-256 in hexadecimal.

    `positions` are the first and last ones of its records in the log.
    """

    name: str
    records: int
    deleted: int
    bytes: int
    sha256: str
    positions: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "positions": list(self.positions)}


@dataclass(frozen=True, slots=True)
class DumpEntry:
    """A dump as of `snapshot`: complete (`since` is None), or the difference to snapshot `since`.

    `records`, `deleted` and `bytes` are those of all parts. `name` and `sha256` are those of its
    only part, or of the manifest of its parts. They are empty if it has no records.
    """

    snapshot: int
    records: int
    deleted: int
    bytes: int
    since: int | None = None
    name: str = ""
    sha256: str = ""

    @property
    def has_manifest(self) -> bool:
        """Whether it has several parts, which a manifest lists."""
        return self.name.endswith(MANIFEST)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        found: dict[str, Any] = {} if self.since is None else {"since": self.since}
        found |= {
            "snapshot": self.snapshot,
            "records": self.records,
            "deleted": self.deleted,
            "bytes": self.bytes,
        }
        return {**found, "name": self.name, "sha256": self.sha256} if self.name else found


@dataclass(frozen=True, slots=True)
class StoredDump:
    """A dump with the instant of its snapshot, and the first and last position in its parts.

    The positions are (1, 0) if it has no records.
    """

    entry: DumpEntry
    datestamp: datetime
    positions: tuple[int, int] = (1, 0)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        more = {"datestamp": instant.to_text(self.datestamp), "positions": list(self.positions)}
        return {**self.entry.to_json(), **more}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> "StoredDump":
        """Build it from the output of `to_json`. Raises ValueError, KeyError or TypeError."""
        return build(StoredDump, {**found, "entry": found})


@dataclass(frozen=True, slots=True)
class FormatDumps:
    """The list of a format: the complete dump, and the differences in the order of snapshots."""

    complete: StoredDump
    differences: tuple[StoredDump, ...] = ()

    @property
    def all(self) -> tuple[StoredDump, ...]:
        """All dumps, the complete one first."""
        return (self.complete, *self.differences)

    def to_json(self) -> bytes:
        """Return the list as JSON for the store."""
        document = {
            "schema": SCHEMA,
            "complete": self.complete.to_json(),
            "differences": [dump.to_json() for dump in self.differences],
        }
        return json.dumps(document, separators=(",", ":")).encode()

    @staticmethod
    def from_json(data: bytes) -> "FormatDumps":
        """Parse the output of `to_json`. Raises DamagedStore."""
        try:
            found = json.loads(data)
            return FormatDumps(
                StoredDump.from_json(found["complete"]),
                tuple(map(StoredDump.from_json, found["differences"])),
            )
        except _FAULTS as error:
            raise DamagedStore(f"a list of dumps is damaged: {error!r}") from error


@dataclass(frozen=True, slots=True)
class FormatEntry:
    """What the index has of a format: its newest difference if it has any, and the list's name."""

    complete: DumpEntry
    list: str
    newest: DumpEntry | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        newest = {} if self.newest is None else {"newest": self.newest.to_json()}
        return {"complete": self.complete.to_json(), **newest, "list": self.list}


@dataclass(frozen=True, slots=True)
class DumpIndex:
    """The index as of `snapshot` and its instant.

    `removed` are keys of objects that must not be read any more, because they hold withdrawn
    records. Each update removes them from the store.
    """

    store: str
    repository: str
    snapshot: int
    datestamp: datetime
    formats: Mapping[str, FormatEntry] = field(default_factory=dict)
    removed: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """Return the index as JSON for the store; short, because readers fetch it often."""
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "store": self.store,
            "repository": self.repository,
            "snapshot": self.snapshot,
            "datestamp": instant.to_text(self.datestamp),
            "formats": {name: one.to_json() for name, one in self.formats.items()},
        }
        if self.removed:
            document["removed"] = list(self.removed)
        return seal(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode())

    @staticmethod
    def from_json(data: bytes) -> "DumpIndex":
        """Parse the output of `to_json`. Raises DamagedStore."""
        try:
            check_seal(data)
            found = json.loads(data)
            if found["schema"] != SCHEMA:
                raise ValueError(f"schema is {found['schema']!r}")
            return build(DumpIndex, found)
        except _FAULTS as error:
            raise DamagedStore(f"{INDEX} is damaged: {error!r}") from error


def read_index(reader: Reader) -> DumpIndex | None:
    """Return the index of a store; None if it has no dumps. Raises StoreError."""
    try:
        return DumpIndex.from_json(reader.read(INDEX))
    except MissingObject:
        return None


def parts_from_json(data: bytes) -> tuple[DumpPart, ...]:
    """Return the parts that the manifest of a dump lists. Raises DamagedStore."""
    try:
        return build(tuple[DumpPart, ...], json.loads(data)["parts"])
    except _FAULTS as error:
        raise DamagedStore(f"a manifest of dumps is damaged: {error!r}") from error
