"""Selection of a dump: which records of a snapshot it lists, and how they are read.

A position in the log is given once, and a change gives an item a new one. So the records behind the
last position of an earlier snapshot are the difference to it, each item once, with its state now.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.kinds import CAPTURES, WITH_FILES
from functions.reading.repository import PublishedRecord, RecordSelection, Repository, read_batches
from functions.snapshot.manifest import Manifest, Span

_ROWS, _DOCUMENTS = 4096, 256
"""Records read at once, and those with documents, which may be large."""


@dataclass(frozen=True, slots=True)
class Since:
    """Where a difference begins: its first datestamp, and the snapshot before it if known."""

    start: datetime
    snapshot: int | None = None

    @staticmethod
    def after(instant: datetime, snapshot: int | None = None) -> "Since":
        """Return what begins after the instant of a snapshot."""
        return Since(instant + timedelta(seconds=1), snapshot)


@dataclass(frozen=True, slots=True)
class DumpSelection:
    """The records of a dump: items of `kinds`, in a set (None: all), at positions of `span`.

    It lists deleted records as well, and an item that left the set is one. So is an item that left
    the kinds, but only in a difference (`since`).
    """

    manifest: Manifest
    kinds: tuple[str, ...]
    span: Span
    set: str | None = None
    since: Since | None = None

    @staticmethod
    def of(
        manifest: Manifest,
        kinds: Sequence[str],
        set_: str | None = None,
        since: Since | None = None,
        prefix: str = "",
    ) -> "DumpSelection":
        """Return the selection; `prefix` names the metadata format, if the dump has one.

        If the XML of the format has changed since, all its records have.
        """
        start = None if since is None else since.start
        firsts = [sequence.first for sequence in manifest.select(start, None, prefix)]
        span = Span(min(firsts), manifest.last_position) if firsts else Span(1, 0)
        return DumpSelection(manifest, tuple(kinds), span, set_, since)

    @property
    def start(self) -> datetime | None:
        """The first datestamp of a difference, None for a complete dump."""
        return None if self.since is None else self.since.start

    @property
    def records(self) -> RecordSelection:
        """The records to read: an item may have left `kinds` for another kind of dataset."""
        kinds = self.kinds
        if self.since is not None and set(kinds) & set(WITH_FILES):
            kinds = tuple(dict.fromkeys((*kinds, *WITH_FILES)))
        return RecordSelection(kinds, self.span, self.set)


def read_pages(
    repository: Repository, selection: DumpSelection, fields: Collection[str] | None = None
) -> Iterator[tuple[int, Sequence[PublishedRecord]]]:
    """Yield the records of a dump by position, with the number of records that were read for them.

    `fields` are the columns that a record needs (None: all). Raises StoreError.
    """
    manifest, records = selection.manifest, selection.records
    living = {kind for kind, count in manifest.kinds().items() if count}
    large = ({*records.kinds} - CAPTURES) & living
    limit = _DOCUMENTS if large else _ROWS
    is_narrower = len(records.kinds) != len(selection.kinds)
    for page in read_batches(repository, manifest, records, limit, fields=fields):
        if is_narrower:
            page = [
                record
                if record.kind in selection.kinds
                else replace(record, deleted=True, fields={})
                for record in page
            ]
        yield len(page), page
