"""The seam between the protocol and the snapshots: parsed values in, records out.

Below it there is no XML, no HTTP and no clock; above it there is no SQL.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from functions.snapshot.manifest import Manifest, Span
from functions.snapshot.pointer import Pointer
from functions.snapshot.witness import Witness


@dataclass(frozen=True, slots=True)
class RecordSelection:
    """What a list asks for: items of `kinds` in `set` (None: all) at positions within `span`."""

    kinds: tuple[str, ...]
    span: Span
    set: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the span has no position."""
        return self.span.last < self.span.first

    def behind(self, position: int) -> "RecordSelection":
        """Return what of the selection lies behind a position."""
        return replace(self, span=Span(max(self.span.first, position + 1), self.span.last))


@dataclass(frozen=True, slots=True)
class PublishedRecord:
    """A listed version of an item.

    `sets` are the most specific ones, sorted. In a list of a set that the item has left it is
    `deleted`, and `sets` are those within that set which it left. `fields` holds the columns of the
    item's kind (schema.CAPTURE for a capture) and is empty for what is deleted and where only a
    header was asked.
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
    """A set of a snapshot: the records in its listing, those that are live, and their datestamps.

    Of the records that are not live the item was withdrawn, or has left the set. `first` and `last`
    are the datestamps between which all lie. `name` is what a template says that it is called.
    """

    spec: str
    records: int
    live: int
    first: datetime
    last: datetime
    name: str | None = None


class Repository(Protocol):
    """Answers from the snapshots of one store. Every method may raise StoreError."""

    def pointer(self) -> Pointer:
        """Read the pointer, anew at each call; an empty one where nothing was ever published."""
        ...

    def witness(self) -> Witness | None:
        """Read the witness, anew at each call; None where the store has none."""
        ...

    def manifest(self, snapshot: int) -> Manifest:
        """Return a snapshot's manifest. Raises MissingObject where the snapshot was retired."""
        ...

    def size(self, manifest: Manifest, selection: RecordSelection) -> int:
        """Return how many records the list has: exact where the span is of whole sequences.

        A span that begins within a sequence (a harvest that outlived its snapshot) gives an
        estimate for that sequence, never below 0. A set that is not there gives 0.
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
        """Return the first `limit` records of the selection, by position; fewer at its end only.

        With `headers` the records come without fields. Of a capture's fields only `fields` need be
        there (None: all).
        """
        ...

    def record(
        self, manifest: Manifest, identifier: str, *, fields: Collection[str] | None = None
    ) -> PublishedRecord | None:
        """Return the item's listed version, or None where the snapshot has no such item.

        Of a capture's fields only `fields` need be there (None: all).
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

        With a sequence only those of them that had live records as of that publish or, with
        `live` false, those that were there and had none.
        """
        ...

    def births(self, manifest: Manifest, specs: Sequence[str]) -> Mapping[str, int]:
        """Return, of these specifications, the snapshot's sets with the sequence they began in."""
        ...

    def has_set(self, manifest: Manifest, spec: str) -> bool:
        """Tell whether the snapshot has the set."""
        ...
