"""Interface between the protocol and the snapshots: parsed values in, records out.

Below it there is no XML, no HTTP and no clock; above it there is no SQL.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from functions.kinds import find_kind
from functions.snapshot.manifest import Manifest, Span
from functions.snapshot.pointer import Pointer, Witness


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Conditions of a list for people; what is "" is not asked for.

    `status` is one of HTTP, or its first digit for all of its class. `media_type` is declared, else
    detected, or how it begins; `year` is that of the capture, or of publication. `pages` True means
    captures of HTML and all that is no capture, False the rest.
    """

    status: str = ""
    media_type: str = ""
    year: str = ""
    pages: bool | None = None

    @property
    def is_empty(self) -> bool:
        """Whether a reader asked for nothing."""
        return not (self.status or self.media_type or self.year)


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """Selection of a list: items of `kinds` in `set` (None: all) at positions within `span`.

    With `prefix`, a repository may leave out harvested items that did not come in this format.
    With `filter`, it leaves out all that do not meet its conditions.
    """

    kinds: tuple[str, ...]
    span: Span
    set: str | None = None
    prefix: str | None = None
    filter: RecordFilter | None = None

    @property
    def is_empty(self) -> bool:
        """True if the span has no position."""
        return self.span.last < self.span.first

    def behind(self, position: int) -> "RecordSelection":
        """Return the part of the selection behind a position."""
        return replace(self, span=Span(max(self.span.first, position + 1), self.span.last))


@dataclass(frozen=True, slots=True)
class PublishedRecord:
    """A listed version of an item.

    `sets` are the most specific ones, sorted. In a list of a set that the item has left, it is
    `deleted`, and `sets` are the sets within the listed one that it left. `fields` holds the
    columns of the item's kind (schema.CAPTURE for a capture). It is empty for deleted records and
    if only headers were requested.
    """

    position: int
    identifier: str
    kind: str
    datestamp: datetime
    deleted: bool
    sets: tuple[str, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetRow:
    """A set of a snapshot: counts of its listed and live records, and their datestamps.

    A record is not live if its item was withdrawn or has left the set. `first` and `last` are the
    lowest and highest datestamps. `name` is the set's name from a template.
    """

    spec: str
    records: int
    live: int
    first: datetime
    last: datetime
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ObjectLife:
    """The life of a template (without `url`), or of a file that it names: times of runs (tists).

    `versions` are the stored versions; 0 for a file that was never gathered. `lost` is None while
    the object exists. `bytes` and `digest`, a SHA-256, are those of a file's newest version.
    """

    url: str
    found: int | None
    noted: int | None
    lost: int | None
    versions: int
    bytes: int | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class ValueFigures:
    """Captures and bytes of a month (2007-11 or 2007; empty: no date), a host or a domain."""

    value: str
    captures: int
    bytes: int


@dataclass(frozen=True, slots=True)
class MediaTypeFigures:
    """Live captures and bytes of a media type by HTTP status, None for captures without one.

    The type is declared, else detected. It is empty if unknown, and None for all other types.
    """

    media_type: str | None
    statuses: Mapping[int | None, tuple[int, int]]

    @property
    def captures(self) -> int:
        """Captures with any status."""
        return sum(captures for captures, _ in self.statuses.values())

    @property
    def bytes(self) -> int:
        """Bytes with any status."""
        return sum(size for _, size in self.statuses.values())


@dataclass(frozen=True, slots=True)
class KindFigures:
    """What a publish changed of a kind of items, and how many there were after it.

    `added` items are new. `changed` ones got another version, and stayed live or stayed deleted.
    `deleted` ones became tombstones, or came as such. `restored` ones were deleted before. `live`
    and `gone` are the live and the deleted items of the whole store after it. None: unknown.
    """

    kind: str
    added: int | None
    changed: int | None
    deleted: int | None
    restored: int | None
    live: int | None
    gone: int | None


@dataclass(frozen=True, slots=True)
class PublishFigures:
    """A publish: its sequence number, its datestamp, and all kinds of items that there were."""

    sequence: int
    effective: datetime
    kinds: tuple[KindFigures, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a snapshot.

    `captures` and `bytes` are those of all live captures. `months` are sorted. `media_types`,
    `hosts` and `domains` (registered ones) are the SHOWN with most captures, most first; then the
    other media types follow as one, if there are any. `different` has the numbers of all `hosts`,
    `domains` and `media_types`. `kinds` has the numbers of live and of deleted items of each kind.
    `publishes` are the newest SHOWN, and at most as many earlier ones at equal distances, the
    oldest first.
    """

    captures: int
    bytes: int
    months: tuple[ValueFigures, ...]
    media_types: tuple[MediaTypeFigures, ...]
    hosts: tuple[ValueFigures, ...]
    domains: tuple[ValueFigures, ...]
    different: Mapping[str, int]
    kinds: Mapping[str, tuple[int, int]]
    publishes: tuple[PublishFigures, ...]


@dataclass(frozen=True, slots=True)
class CollectionFigures:
    """The collections with most captures, each with its fields, and the days of all captures.

    `first` and `last` are the first and the last day that any collection has, "" if none has one.
    """

    largest: tuple[Mapping[str, Any], ...]
    first: str
    last: str


class Repository(Protocol):
    """Answers from the snapshots of one store. Every method may raise StoreError."""

    def pointer(self) -> Pointer:
        """Read the pointer again at each call; it is empty before the first publish."""
        ...

    def witness(self) -> Witness | None:
        """Read the witness again at each call; None if the store has no witness."""
        ...

    def manifest(self, snapshot: int) -> Manifest:
        """Return a snapshot's manifest. Raises MissingObject if the snapshot was retired."""
        ...

    def size(self, manifest: Manifest, selection: RecordSelection) -> int:
        """Return the number of records: exact if the span covers whole sequences.

        A span that begins within a sequence (a harvest that outlived its snapshot) gives an
        estimate for that sequence, never below 0. A missing set gives 0.
        """
        ...

    def page(
        self,
        manifest: Manifest,
        selection: RecordSelection,
        limit: int,
        *,
        headers: bool,
        fields: Collection[str] | None = None,
    ) -> Sequence[PublishedRecord]:
        """Return the first `limit` records of the selection by position, fewer only at its end.

        With `headers` the records have no fields. For captures only the columns `fields` are
        required (None: all).
        """
        ...

    def reach(self, manifest: Manifest, selection: RecordSelection, groups: int) -> int:
        """Return the last position of what so many row groups hold of the selection's start.

        It is the end of the selection's span if they hold all of it.
        """
        ...

    def record(
        self, manifest: Manifest, identifier: str, *, fields: Collection[str] | None = None
    ) -> PublishedRecord | None:
        """Return the item's listed version, or None if it is not in the snapshot.

        For captures only the columns `fields` are required (None: all).
        """
        ...

    def sets(
        self,
        manifest: Manifest,
        after: str,
        limit: int,
        sequence: int | None = None,
        *,
        live: bool = True,
    ) -> tuple[SetRow, ...]:
        """Return up to `limit` sets whose specification sorts behind `after` ("" for the start).

        With a sequence, return only sets that had live records as of that publish. With `live`
        False, return only sets that existed then without live records.
        """
        ...

    def origin_sets(self, manifest: Manifest, after: str, limit: int) -> Sequence[tuple[str, str]]:
        """Return up to `limit` sets of a mirror's origin behind `after`, each with its name."""
        ...

    def births(self, manifest: Manifest, specs: Sequence[str]) -> Mapping[str, int]:
        """Return those of the specifications that exist, with the sequence they began in."""
        ...

    def has_set(self, manifest: Manifest, spec: str) -> bool:
        """Return whether the snapshot has the set."""
        ...

    def children(
        self, manifest: Manifest, under: str, after: str, limit: int
    ) -> tuple[SetRow, ...]:
        """Return up to `limit` sets one level below `under` ("" for the top) behind `after`."""
        ...

    def find_set(self, manifest: Manifest, spec: str) -> SetRow | None:
        """Return a set; None if it does not exist."""
        ...

    def versions(self, manifest: Manifest, identifier: str) -> tuple[int, ...]:
        """Return the positions of an item's versions that the snapshot knows, ascending."""
        ...

    def template_files(
        self, manifest: Manifest, handle: str, gathered: Mapping[str, str]
    ) -> Sequence[ObjectLife]:
        """Return the life of a template, if it is known, and then of each file that it names.

        `gathered` has the ids of stored files by URL.
        """
        ...

    def source_rows(
        self, manifest: Manifest, table: str, source: str, limit: int
    ) -> Sequence[Mapping[str, Any]]:
        """Return up to `limit` rows of `sources` or `faults` about an archive file."""
        ...

    def figures(self, manifest: Manifest) -> Figures | None:
        """Return the figures of a snapshot; None if an earlier version of Sheaf published it."""
        ...

    def collections(self, manifest: Manifest, limit: int) -> CollectionFigures:
        """Return the `limit` collections with most captures, of at most 32,768 collections."""
        ...

    def publishes(
        self, manifest: Manifest, before: int | None, limit: int
    ) -> tuple[PublishFigures, ...]:
        """Return up to `limit` publishes with lower numbers than `before`, the newest first.

        Without a number, return the newest ones. Numbers of a publish by an earlier version of
        Sheaf are unknown.
        """
        ...


def read_batches(
    repository: Repository,
    manifest: Manifest,
    selection: RecordSelection,
    limit: int,
    *,
    headers: bool = False,
    fields: Collection[str] | None = None,
) -> Iterator[Sequence[PublishedRecord]]:
    """Yield the records of a selection by position, up to `limit` at a time (Repository.page)."""
    while not selection.is_empty:
        page = repository.page(manifest, selection, limit, headers=headers, fields=fields)
        if not page:
            return
        yield page
        selection = selection.behind(page[-1].position)


def find_item(
    repository: Repository, manifest: Manifest, name: str, *, fields: Collection[str] | None = None
) -> PublishedRecord | None:
    """Return the item with that identifier, else the one that a kind gives that name, else None.

    `fields` are as in Repository.record. Raises StoreError.
    """
    record = repository.record(manifest, name, fields=fields)
    kinds = () if record else map(find_kind, manifest.kinds())
    names = (other for kind in kinds if (other := kind.of_name(manifest, name)) is not None)
    others = (repository.record(manifest, other, fields=fields) for other in names)
    return record or next(filter(None, others), None)
