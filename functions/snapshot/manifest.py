"""The manifest: a small tree of immutable files that lists a snapshot's data files.

The root lists the sequences and the leaves of each table. A leaf lists data files and their row
groups. Root and leaves are JSON. Leaves are named by their content, so snapshots share them.
The root ends with its own digest.

A sequence is a publish with the positions that it assigned.
"""

import hashlib
from bisect import bisect_left
from collections import abc
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from functions.snapshot import layout
from functions.snapshot.errors import VERSION
from functions.snapshot.seal import (
    Instant,
    Struct,
    build,
    encode,
    parse,
    refuse_damage,
    replace,
    seal,
    to_values,
)

UNSTAMPED = datetime.max.replace(tzinfo=UTC)
"""The instant of a sequence before it has a real one: it takes effect with the next snapshot."""
_MEMBERS = (
    "snapshot",
    "effective",
    "namespace",
    "sets",
    "tombstones",
    "emptied",
    "revisits",
    "unresolved",
    "run",
    "prefix",
    "views",
    "publisher",
    "libraries",
    "skipped",
    "store",
    "former",
    "identified",
    "formats",
    "settings",
    "offers",
    "recipes",
    "origin",
)
"""Members of the root that have the value of the field, in order. The other three follow."""
_OPTIONAL = frozenset({"former", "identified", "settings", "offers", "recipes", "origin"})
"""Members that are left out if they are empty; older stores lack them."""

Key = int | str | tuple[str, int] | None
"""A bound of a row group: its first columns in schema.ORDER, or None if no bound is kept."""


class RowGroup(Struct, frozen=True, array_like=True):
    """Rows that are read together: bounds, count, and their byte range.

    The next `tail` bytes are a footer for this row group alone, so a file that ends there is a
    Parquet file. `check` is the CRC-32 of the bytes in `byte_range`.
    """

    first: Key
    last: Key
    rows: int
    offset: int
    length: int
    tail: int
    check: int

    @property
    def byte_range(self) -> tuple[int, int]:
        """Offset and length of its bytes, its own footer included."""
        return self.offset, self.length + self.tail


class DataFile(Struct, frozen=True):
    """A Parquet file: key, size in bytes, length of its footer, and its row groups in order."""

    key: str
    bytes: int
    footer: int
    groups: tuple[RowGroup, ...]

    @property
    def rows(self) -> int:
        """Number of rows in the file."""
        return sum(group.rows for group in self.groups)


class Leaf(Struct, frozen=True):
    """Up to layout.LEAF_FILES data files of one table, in the table's order."""

    files: tuple[DataFile, ...]

    def to_json(self) -> bytes:
        """Return the leaf as JSON for the store; the same leaf gives the same bytes."""
        return encode({"schema": VERSION, "files": self.files})

    @staticmethod
    def from_json(data: bytes) -> "Leaf":
        """Parse the output of `to_json`. Raises NewerSchema or DamagedStore."""
        return parse(Leaf, data, "a leaf of the manifest")


class Span(Struct, frozen=True):
    """Positions from `first` to `last`, both included; empty if last < first."""

    first: int
    last: int


class Sequence(Struct, frozen=True, array_like=True):
    """A publish: number, effective instant, positions, and counts of the records still listed.

    `records` counts, by kind, the versions of this sequence that are still in the listing. If the
    sequence had several kinds from the start, `starts` has the first position of each, ascending.
    """

    number: int
    effective: Instant
    first: int
    last: int
    records: Mapping[str, int]
    starts: Mapping[str, int] = {}

    def spans(self, kinds: Collection[str]) -> Iterator[Span]:
        """Yield the positions of items of `kinds`."""
        if not self.starts:
            yield Span(self.first, self.last)
        ends = [*(start - 1 for start in self.starts.values()), self.last][1:]
        for (kind, start), end in zip(self.starts.items(), ends, strict=True):
            if kind in kinds:
                yield Span(start, end)


class LeafReference(Struct, frozen=True, omit_defaults=True):
    """The root's description of a leaf: key, bounds and number of its rows, bytes of its data.

    `span` is its section of the log: the first and last position of one publish, or of several
    merged ones. Leaves with the same span form one run, which is sorted as a whole. `ranked`: its
    rows are words with ranks (functions.search.words); earlier versions of Sheaf wrote none.
    """

    key: str
    first: Key
    last: Key
    rows: int
    files: int
    bytes: int
    span: tuple[int, int] | None = None
    ranked: bool = False

    def meets(self, first: Key, last: Key) -> bool:
        """Return whether its rows can lie between first and last; `last` of None is the end."""
        return not (self.last < first or (last is not None and self.first > last))  # type: ignore[operator]

    def within(self, span: Span | None) -> bool:
        """Return whether its rows can have positions of `span`."""
        if span is None or self.span is None:
            return True
        return self.span[0] <= span.last and self.span[1] >= span.first


class Offer(Struct, frozen=True, array_like=True):
    """A metadata format in which items came: schema, namespace, and the kinds of the items."""

    schema: str
    namespace: str
    kinds: tuple[str, ...] = ()


class Making(Struct, frozen=True, array_like=True):
    """How records are made in a format: the digest of its templates.

    `since` is the instant from which these apply, and `snapshot` the snapshot that took effect
    then. They are None and 0 if the templates never changed. In the format, no record has an
    earlier datestamp than `since`.
    """

    digest: str
    since: Instant | None = None
    snapshot: int = 0


class MirrorOrigin(Struct, frozen=True):
    """A replicated repository, as its own Identify, ListMetadataFormats and ListSets have it.

    `place` stands for it, whatever its address is. `descriptions` are elements of XML, and
    `deleted` is its deletedRecord. `formats` maps each harvested prefix to its schema and
    namespace. `sets` is a digest of the table of its sets, "" if it lists none.
    """

    place: str
    base_url: str
    name: str
    emails: tuple[str, ...]
    descriptions: tuple[str, ...]
    deleted: str
    formats: Mapping[str, tuple[str, str]]
    sets: str

    @property
    def deleted_record(self) -> str:
        """The deletedRecord that a mirror can promise (OAI-PMH 2.0, section 2.5.1).

        A mirror keeps each deletion that it has seen. It sees all of them only if the origin keeps
        them, too. It may show some of an origin without, which `no` would forbid.
        """
        return self.deleted if self.deleted == "persistent" else "transient"

    def follow(self, earlier: "MirrorOrigin | None") -> "MirrorOrigin":
        """Return this with the formats of an earlier state, some of which were not read again."""
        return replace(self, formats={**(earlier.formats if earlier else {}), **self.formats})


@dataclass(frozen=True)
class Manifest:
    """A snapshot: what is in effect, from when, and the leaves of each table.

    `sets` counts the sets. `libraries` are the versions of libraries on which its rows depend.
    `skipped` are numbers of earlier snapshots that were written but never took effect. `tombstones`
    counts the listed records that are deleted, and `emptied` the sets without a live one.
    `revisits` counts the live captures that are revisits, and `unresolved` those without an
    original. `formats` maps the prefix of a metadata format to its templates, even if it is no
    longer offered. `settings` are the configured values that records show, by key; stores of 0.2.0
    have none. `offers` are the formats in which items came, by prefix. `recipes` say how the own
    records of each table are made, by its name, as JSON. `origin` is the repository that the store
    replicates. `run` is the last run of the obi store in this snapshot, 0 without a run. `prefix`
    precedes the handle in identifiers of templates; it is empty if it was never set. `leaves` maps
    keys to leaves whose content is included here, so they need not be read. `views` is the SHA-256
    of the snapshot's views.sql. `publisher` is a random text of the process that wrote this.
    `store` is the store's id. `former` are its earlier ids (empty: no id), each with the last
    snapshot published under it, ascending. `digest` is the SHA-256 of the JSON that this was read
    from, "" if it was not read. `identified` says that layout.IDENTITY existed before.
    """

    snapshot: int
    effective: Instant
    namespace: str
    sequences: tuple[Sequence, ...]
    tables: Mapping[str, tuple[LeafReference, ...]]
    sets: int = 0
    libraries: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[int, ...] = ()
    tombstones: int = 0
    emptied: int = 0
    revisits: int = 0
    unresolved: int = 0
    formats: Mapping[str, Making] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    offers: Mapping[str, Offer] = field(default_factory=dict)
    recipes: Mapping[str, str] = field(default_factory=dict)
    origin: MirrorOrigin | None = None
    run: int = 0
    prefix: str = ""
    leaves: Mapping[str, Leaf] = field(default_factory=dict, compare=False)
    views: str = field(default="", compare=False)
    publisher: str = field(default="", compare=False)
    store: str = ""
    former: tuple[tuple[int, str], ...] = ()
    digest: str = field(default="", compare=False)
    identified: bool = field(default=False, compare=False)

    @property
    def key(self) -> str:
        """The manifest's key."""
        return layout.manifest_key(self.snapshot)

    @property
    def views_key(self) -> str:
        """The key of the snapshot's views."""
        return layout.views_key(self.snapshot)

    @property
    def origin_sets(self) -> int:
        """The number of sets that the origin lists, 0 if the store replicates none."""
        return self.rows("origin_sets")

    @property
    def last_position(self) -> int:
        """The highest position ever assigned; 0 before the first."""
        return self.sequences[-1].last if self.sequences else 0

    @property
    def earliest(self) -> datetime:
        """The earliest datestamp of any record, tombstones included."""
        return self.sequences[0].effective if self.sequences else self.effective

    def store_of(self, snapshot: int) -> str:
        """Return the store's id at the time when the snapshot was published."""
        return next((name for last, name in self.former if snapshot <= last), self.store)

    def kinds(self) -> Mapping[str, int]:
        """Return the number of listed records of each kind, tombstones included."""
        return self._kinds

    @cached_property
    def _kinds(self) -> Mapping[str, int]:
        """A sum over all publishes, which each request needs."""
        total: dict[str, int] = {}
        for sequence in self.sequences:
            for kind, count in sequence.records.items():
                total[kind] = total.get(kind, 0) + count
        return total

    def rows(self, table: str) -> int:
        """Return the number of rows in the data files of `table`."""
        return sum(leaf.rows for leaf in self.tables.get(table, ()))

    def since(self, prefix: str) -> datetime | None:
        """Return the earliest possible datestamp in a format, or None."""
        return self.formats[prefix].since if prefix in self.formats else None

    def select(
        self, start: datetime | None, end: datetime | None, prefix: str = ""
    ) -> tuple[Sequence, ...]:
        """Return the sequences whose datestamp lies between `start` and `end`, both included.

        The datestamp is that of records in the format with that prefix.
        """
        since = self.since(prefix)
        stamps = (max(s.effective, since or s.effective) for s in self.sequences)
        return tuple(
            s
            for s, stamp in zip(self.sequences, stamps, strict=True)
            if (start is None or stamp >= start) and (end is None or stamp <= end)
        )

    def to_json(self) -> bytes:
        """Return the root of the manifest as JSON for the store."""
        members: dict[str, Any] = {"schema": VERSION}
        for name in _MEMBERS:
            if (value := getattr(self, name)) or name not in _OPTIONAL:
                members[name] = value
        sequences = to_values(self.sequences)  # starts are the last value, if there are any
        members["sequences"] = [row if row[-1] else row[:-1] for row in sequences]
        members["tables"] = self.tables
        members["leaves"] = {key: leaf.files for key, leaf in self.leaves.items()}
        return seal(encode(members))

    @staticmethod
    def from_json(data: bytes) -> "Manifest":
        """Parse the output of `to_json`. Raises NewerSchema or DamagedStore."""
        members = parse(dict[str, Any], data, "the manifest")
        with refuse_damage("the manifest"):
            if missing := {"sequences", "tables", "leaves", *_MEMBERS} - _OPTIONAL - members.keys():
                raise KeyError(min(missing))
            members["leaves"] = {key: {"files": files} for key, files in members["leaves"].items()}
            members["digest"] = hashlib.sha256(data).hexdigest()
            return build(Manifest, members)


def overlapping(parts: abc.Sequence[Any], first: Key, last: Key) -> abc.Sequence[Any]:
    """Return the adjacent `parts` (leaves or row groups, in order) that can hold first..last."""
    start = bisect_left(parts, first, key=lambda part: part.last)
    end = start
    while end < len(parts) and parts[end].first <= last:
        end += 1
    return parts[start:end]
