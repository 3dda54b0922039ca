"""The manifest: a small tree of immutable files that says what a snapshot holds and where.

The root names the sequences and, for each table, its leaves; a leaf names data files and their
row groups. Root and leaves are JSON. Leaves are named by their content, so snapshots share them.
"""

import json
from bisect import bisect_left
from collections.abc import Mapping
from collections.abc import Sequence as Series
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from functions.snapshot import instant, schema
from functions.snapshot.errors import DamagedStore, NewerSchema
from functions.snapshot.making import Making
from functions.snapshot.sequence import Sequence as Sequence
from functions.snapshot.sequence import Span as Span

_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)

UNSTAMPED = datetime.max.replace(tzinfo=UTC)
"""The instant of a sequence that has none yet: it takes effect with the next snapshot."""

Key = int | str | tuple[str, int] | None
"""A bound of a row group: its first columns in schema.ORDER, or None where none is kept."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are read together: bounds, count, and the byte range that holds them."""

    first: Key
    last: Key
    rows: int
    offset: int
    length: int


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
        files = [
            {
                "key": f.key,
                "bytes": f.bytes,
                "footer": f.footer,
                "groups": [[g.first, g.last, g.rows, g.offset, g.length] for g in f.groups],
            }
            for f in self.files
        ]
        return json.dumps(
            {"schema": schema.VERSION, "files": files}, separators=(",", ":")
        ).encode()

    @staticmethod
    def from_json(data: bytes) -> "Leaf":
        """Read what `to_json` wrote. Raises NewerSchema or DamagedStore."""
        document = _document(data, "a leaf")
        try:
            return Leaf(
                tuple(
                    DataFile(
                        f["key"],
                        f["bytes"],
                        f["footer"],
                        tuple(
                            RowGroup(_key(first), _key(last), rows, offset, length)
                            for first, last, rows, offset, length in f["groups"]
                        ),
                    )
                    for f in document["files"]
                )
            )
        except _MALFORMED as error:
            raise DamagedStore(f"a leaf of the manifest is damaged: {error!r}") from error


@dataclass(frozen=True, slots=True)
class LeafReference:
    """What the root says of a leaf: key, the bounds and number of its rows, its data's bytes.

    `span` is the stretch of the log that it is part of: the first and last position of one publish
    or of several that were merged. Leaves with the same span make one run, sorted as a whole.
    """

    key: str
    first: Key
    last: Key
    rows: int
    files: int
    bytes: int
    span: tuple[int, int] | None = None

    def meets(self, first: Key, last: Key) -> bool:
        """Tell whether its rows can lie between first and last; `last` of None: to the end."""
        return not (self.last < first or (last is not None and self.first > last))  # type: ignore[operator]

    def within(self, span: Span | None) -> bool:
        """Tell whether its rows can have positions of `span`."""
        if span is None or self.span is None:
            return True
        return self.span[0] <= span.last and self.span[1] >= span.first


@dataclass(frozen=True, slots=True)
class Manifest:
    """A snapshot: what is in effect, from when, and the leaves of each table.

    `skipped` are numbers of snapshots before it that were written and never took effect;
    `tombstones` counts the listed records that are deleted, `emptied` the sets without a live one;
    `revisits` the live captures that are revisits, `unresolved` those of them without an original;
    `formats` says by prefix what makes a metadata format, also one that is not offered any more.
    """

    snapshot: int
    effective: datetime
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

    @property
    def last_position(self) -> int:
        """The highest position that was ever given out; 0 before the first."""
        return self.sequences[-1].last if self.sequences else 0

    @property
    def earliest(self) -> datetime:
        """The floor of all datestamps, tombstones' included."""
        return self.sequences[0].effective if self.sequences else self.effective

    def kinds(self) -> Mapping[str, int]:
        """Return the number of listed records of each kind, tombstones included."""
        total: dict[str, int] = {}
        for sequence in self.sequences:
            for kind, count in sequence.records.items():
                total[kind] = total.get(kind, 0) + count
        return total

    def rows(self, table: str) -> int:
        """Return the number of rows in the data files of `table`."""
        return sum(leaf.rows for leaf in self.tables.get(table, ()))

    def since(self, prefix: str) -> datetime | None:
        """Return the instant before which no record has a datestamp in a format, if any."""
        return self.formats[prefix].since if prefix in self.formats else None

    def selected(
        self, start: datetime | None, end: datetime | None, prefix: str = ""
    ) -> tuple[Sequence, ...]:
        """Return the sequences whose datestamp lies between `start` and `end`, both included.

        The datestamp is that of records in the format of that prefix.
        """
        since = self.since(prefix)
        return tuple(
            s
            for s in self.sequences
            for stamp in (s.effective if since is None else max(s.effective, since),)
            if (start is None or stamp >= start) and (end is None or stamp <= end)
        )

    def to_json(self) -> bytes:
        """Return the root of the manifest as the store holds it."""
        document = {
            "schema": schema.VERSION,
            "snapshot": self.snapshot,
            "effective": instant.to_text(self.effective),
            "namespace": self.namespace,
            "sets": self.sets,
            "tombstones": self.tombstones,
            "emptied": self.emptied,
            "revisits": self.revisits,
            "unresolved": self.unresolved,
            "libraries": dict(self.libraries),
            "skipped": list(self.skipped),
            "formats": {prefix: m.to_json() for prefix, m in self.formats.items()},
            "sequences": [
                [s.number, instant.to_text(s.effective), s.first, s.last, dict(s.records)]
                + ([dict(s.starts)] if s.starts else [])
                for s in self.sequences
            ],
            "tables": {
                table: [asdict(leaf) for leaf in leaves] for table, leaves in self.tables.items()
            },
        }
        return json.dumps(document, separators=(",", ":")).encode()

    @staticmethod
    def from_json(data: bytes) -> "Manifest":
        """Read what `to_json` wrote. Raises NewerSchema or DamagedStore."""
        document = _document(data, "the manifest")
        try:
            return Manifest(
                snapshot=int(document["snapshot"]),
                effective=instant.from_text(document["effective"]),
                namespace=str(document["namespace"]),
                sets=int(document["sets"]),
                tombstones=int(document.get("tombstones", 0)),
                emptied=int(document.get("emptied", 0)),
                revisits=int(document.get("revisits", 0)),
                unresolved=int(document.get("unresolved", 0)),
                libraries=dict(document["libraries"]),
                skipped=tuple(map(int, document["skipped"])),
                formats={
                    str(prefix): Making.from_json(made)
                    for prefix, made in document.get("formats", {}).items()
                },
                sequences=tuple(
                    Sequence(
                        int(number),
                        instant.from_text(effective),
                        int(first),
                        int(last),
                        *({str(kind): int(n) for kind, n in counts.items()} for counts in by_kind),
                    )
                    for number, effective, first, last, *by_kind in document["sequences"]
                ),
                tables={
                    table: tuple(
                        LeafReference(**{name: _key(value) for name, value in leaf.items()})
                        for leaf in leaves
                    )
                    for table, leaves in document["tables"].items()
                },
            )
        except _MALFORMED as error:
            raise DamagedStore(f"the manifest is damaged: {error!r}") from error


def overlapping(parts: Series[Any], first: Key, last: Key) -> Series[Any]:
    """Return the run of `parts` (leaves or row groups, in order) that can hold first..last."""
    start = bisect_left(parts, first, key=lambda part: part.last)
    end = start
    while end < len(parts) and parts[end].first <= last:
        end += 1
    return parts[start:end]


def _document(data: bytes, what: str) -> Any:
    try:
        document = json.loads(data)
        version = document["schema"]
        newer = version > schema.VERSION
    except _MALFORMED as error:
        raise DamagedStore(f"{what} of a snapshot is damaged: {error!r}") from error
    if newer:
        raise NewerSchema(
            f"the store has schema {version}, this Sheaf reads up to {schema.VERSION}: "
            "install a later Sheaf"
        )
    return document


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
