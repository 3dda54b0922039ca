"""The manifest: a small tree of immutable files that lists a snapshot's data files.

The root lists the sequences and the leaves of each table. A leaf lists data files and their row
groups. Root and leaves are JSON. Leaves are named by their content, so snapshots share them.
The root ends with its own digest.

A sequence is a publish with the positions that it assigned.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from functions.snapshot import instant, layout
from functions.snapshot.errors import VERSION, DamagedStore
from functions.snapshot.leaf import MALFORMED, document
from functions.snapshot.leaf import DataFile as DataFile
from functions.snapshot.leaf import Key as Key
from functions.snapshot.leaf import Leaf as Leaf
from functions.snapshot.leaf import RowGroup as RowGroup
from functions.snapshot.leaf import key as as_key
from functions.snapshot.leaf import overlapping as overlapping
from functions.snapshot.making import Making as Making
from functions.snapshot.seal import seal

UNSTAMPED = datetime.max.replace(tzinfo=UTC)
"""The instant of a sequence before it has a real one: it takes effect with the next snapshot."""


@dataclass(frozen=True, slots=True)
class Span:
    """Positions from `first` to `last`, both included; empty if last < first."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """A publish: number, effective instant, positions, and counts of the records still listed.

    `records` counts, by kind, the versions of this sequence that are still in the listing. If the
    sequence had several kinds from the start, `starts` has the first position of each, ascending.
    """

    number: int
    effective: datetime
    first: int
    last: int
    records: Mapping[str, int]
    starts: Mapping[str, int] = field(default_factory=dict)

    def spans(self, kinds: Collection[str]) -> Iterator[Span]:
        """Yield the positions of items of `kinds`."""
        if not self.starts:
            yield Span(self.first, self.last)
        ends = [*(start - 1 for start in self.starts.values()), self.last][1:]
        for (kind, start), end in zip(self.starts.items(), ends, strict=True):
            if kind in kinds:
                yield Span(start, end)


@dataclass(frozen=True, slots=True)
class LeafReference:
    """The root's description of a leaf: key, bounds and number of its rows, bytes of its data.

    `span` is its section of the log: the first and last position of one publish, or of several
    merged ones. Leaves with the same span form one run, which is sorted as a whole.
    """

    key: str
    first: Key
    last: Key
    rows: int
    files: int
    bytes: int
    span: tuple[int, int] | None = None

    def meets(self, first: Key, last: Key) -> bool:
        """Return whether its rows can lie between first and last; `last` of None is the end."""
        return not (self.last < first or (last is not None and self.first > last))  # type: ignore[operator]

    def within(self, span: Span | None) -> bool:
        """Return whether its rows can have positions of `span`."""
        if span is None or self.span is None:
            return True
        return self.span[0] <= span.last and self.span[1] >= span.first


@dataclass(frozen=True, slots=True)
class Manifest:
    """A snapshot: what is in effect, from when, and the leaves of each table.

    `skipped` are numbers of earlier snapshots that were written but never took effect. `tombstones`
    counts the listed records that are deleted, and `emptied` the sets without a live one.
    `revisits` counts the live captures that are revisits, and `unresolved` those of them without an
    original. `formats` maps the prefix of a metadata format to its templates, also for formats no
    longer offered. `settings` are the configured values that records show, by key; none in stores
    of 0.2.0. `run` is the last run of the obi store in this snapshot, 0 without a run. `prefix`
    precedes the handle in identifiers of templates; it is empty if it was never set. `leaves` maps
    keys to leaves whose content is included here: they need not be read. `views` is the SHA-256 of
    the snapshot's views.sql. `publisher` is a random text of the process that wrote the manifest.
    `store` is the store's id. `former` are its earlier ids (empty: no id), each with the last
    snapshot that was published under it, ascending. `digest` is the SHA-256 of the JSON that it was
    read from, "" if it was not read. `identified` says that the store had an identity
    (layout.IDENTITY) before this snapshot.
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
    settings: Mapping[str, str] = field(default_factory=dict)
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
        return tuple(
            s
            for s in self.sequences
            for stamp in (s.effective if since is None else max(s.effective, since),)
            if (start is None or stamp >= start) and (end is None or stamp <= end)
        )

    def to_json(self) -> bytes:
        """Return the root of the manifest as JSON for the store."""
        whole: dict[str, Any] = {
            "schema": VERSION,
            "snapshot": self.snapshot,
            "effective": instant.to_text(self.effective),
            "namespace": self.namespace,
            "sets": self.sets,
            "tombstones": self.tombstones,
            "emptied": self.emptied,
            "revisits": self.revisits,
            "unresolved": self.unresolved,
            "run": self.run,
            "prefix": self.prefix,
            "views": self.views,
            "publisher": self.publisher,
            "libraries": dict(self.libraries),
            "skipped": list(self.skipped),
            "store": self.store,
            **({"former": [list(one) for one in self.former]} if self.former else {}),
            **({"identified": True} if self.identified else {}),
            "formats": {prefix: m.to_json() for prefix, m in self.formats.items()},
            **({"settings": dict(self.settings)} if self.settings else {}),
            "sequences": [
                [s.number, instant.to_text(s.effective), s.first, s.last, dict(s.records)]
                + ([dict(s.starts)] if s.starts else [])
                for s in self.sequences
            ],
            "tables": {
                table: [asdict(leaf) for leaf in leaves] for table, leaves in self.tables.items()
            },
            "leaves": {key: leaf.files_json() for key, leaf in self.leaves.items()},
        }
        return seal(json.dumps(whole, separators=(",", ":")).encode())

    @staticmethod
    def from_json(data: bytes) -> "Manifest":
        """Parse the output of `to_json`. Raises NewerSchema or DamagedStore."""
        found = document(data, "the manifest")
        try:
            return Manifest(
                snapshot=int(found["snapshot"]),
                effective=instant.from_text(found["effective"]),
                namespace=str(found["namespace"]),
                sets=int(found["sets"]),
                tombstones=int(found["tombstones"]),
                emptied=int(found["emptied"]),
                revisits=int(found["revisits"]),
                unresolved=int(found["unresolved"]),
                run=int(found["run"]),
                prefix=str(found["prefix"]),
                views=str(found["views"]),
                publisher=str(found["publisher"]),
                libraries=dict(found["libraries"]),
                skipped=tuple(map(int, found["skipped"])),
                store=str(found["store"]),
                former=tuple((int(last), str(name)) for last, name in found.get("former", ())),
                formats={
                    str(prefix): Making.from_json(made) for prefix, made in found["formats"].items()
                },
                settings={str(k): str(v) for k, v in dict(found.get("settings", {})).items()},
                sequences=tuple(
                    Sequence(
                        int(number),
                        instant.from_text(effective),
                        int(first),
                        int(last),
                        *({str(kind): int(n) for kind, n in counts.items()} for counts in by_kind),
                    )
                    for number, effective, first, last, *by_kind in found["sequences"]
                ),
                tables={
                    table: tuple(
                        LeafReference(**{k: as_key(value) for k, value in leaf.items()})
                        for leaf in leaves
                    )
                    for table, leaves in found["tables"].items()
                },
                leaves={name: Leaf.of(files) for name, files in found["leaves"].items()},
                digest=hashlib.sha256(data).hexdigest(),
                identified=found.get("identified") is True,
            )
        except MALFORMED as error:
            raise DamagedStore(f"the manifest is damaged: {error!r}") from error
