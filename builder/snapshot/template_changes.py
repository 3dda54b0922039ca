"""Changes of templates in a snapshot, from which the records of publishes in `obi/` are derived.

A record is written after its snapshot took effect, so a process that is killed may leave it out. It
follows from the snapshot alone: which run it shows, and which templates it withdrew or reinstated.
So the next change of the store writes what lacks, the same bytes that the killed process would have
written.
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from builder.obi.history import find_ended
from builder.obi.publishes import (
    PUBLISH,
    PUBLISHES,
    REINSTATE,
    WITHDRAW,
    PublishRecord,
    read_record,
    read_records,
    write_record,
)
from builder.snapshot import recovery
from functions.kinds.templates import TEMPLATE
from functions.snapshot.errors import DamagedStore
from functions.snapshot.manifest import Manifest
from functions.snapshot.manifest import Sequence as PublishedSequence
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue
from functions.store.files import FILE, Files

_MEMORY = 512  # megabytes
KIND = TEMPLATE.name
_LARGE = 100_000
"""Templates of a publish from which on they are not read: runs withdraw and reinstate nothing."""
_CHANGED = (
    f"SELECT identifier, reason, deleted FROM {FILE} WHERE position BETWEEN $first AND $last "
    f"AND kind = '{KIND}' ORDER BY identifier"
)


@dataclass(frozen=True, slots=True)
class RecordedState:
    """What the records of a store say: the last one, and the last run that was published."""

    last: PublishRecord | None = None
    run: int = 0

    @staticmethod
    def of(records: Iterator[PublishRecord]) -> "RecordedState":
        """Return the state after records, which come newest first; few of them are read."""
        last: PublishRecord | None = None
        for record in records:
            last = last or record
            if record.kind == PUBLISH:
                return RecordedState(last, record.run)
        return RecordedState(last)


def record_changes(store: Writer, manifest: Manifest) -> None:
    """Write the records that lack of a snapshot in effect, the newest one.

    Raises StoreError; DamagedStore if a record is damaged.
    """
    if manifest.run:
        keys = reversed([*store.keys(PUBLISHES)])
        state = RecordedState.of(read_record(store, where) for where in keys)
        for record in derive_records(store, manifest, state):
            write_record(store, record)


def complete_records(store: Writer) -> None:
    """Do the same for the newest snapshot, if the pointer is settled. Raises as that does."""
    pointer, _ = recovery.current(store)
    newest = pointer.newest()
    if newest is not None and pointer.settled:
        record_changes(store, Catalogue(store).manifest(newest.snapshot))


def derive_records(
    store: Writer, manifest: Manifest, state: RecordedState
) -> Iterator[PublishRecord]:
    """Yield the records that follow on those of `state`, in order. Raises StoreError."""
    last, numbers = state.last, dict[object, int]()
    if last is not None:
        numbers[last.effective] = last.number
    for record in _list_changes(store, manifest, state):
        number = numbers[record.effective] = numbers.get(record.effective, 0) + 1
        link = None if last is None else last.link()
        last = replace(record, number=number, previous=link)
        yield last


def _list_changes(
    store: Writer, manifest: Manifest, state: RecordedState
) -> Iterator[PublishRecord]:
    """Yield the changes since the last record, without their links."""
    after = state.last.effective if state.last else manifest.effective - timedelta(seconds=1)
    sequences = [s for s in manifest.sequences if s.effective > after and s.records.get(KIND)]
    run = None
    if manifest.run > state.run:
        with suppress(DamagedStore):  # verify reports a commit that cannot be read
            committed = find_ended(store, manifest.run)
            run = committed.digest if committed else None
    if run is not None and len(sequences) == 1 and sequences[0].records[KIND] > _LARGE:
        sequences = []
    withdrawn: set[str] | None = None
    for sequence in sequences:
        reasons: dict[str, list[str]] = {}
        live: list[str] = []
        for identifier, reason, is_deleted in _read_templates(store, manifest, sequence):
            if is_deleted and reason is not None:
                reasons.setdefault(reason, []).append(identifier)
            else:
                live.append(identifier)
        if live and withdrawn is None:
            withdrawn = set()
            for record in read_records(store):
                if record.effective <= after and record.kind == WITHDRAW:
                    withdrawn |= {*record.identifiers}
                elif record.effective <= after and record.kind == REINSTATE:
                    withdrawn -= {*record.identifiers}
        back = [name for name in live if name in (withdrawn or ())]
        if run is not None and not reasons and not back:
            yield PublishRecord(PUBLISH, sequence.effective, manifest.run, run)
            run = None
        for reason, names in sorted(reasons.items()):
            yield PublishRecord(WITHDRAW, sequence.effective, 0, "", tuple(names), reason)
        if back:
            yield PublishRecord(REINSTATE, sequence.effective, 0, "", tuple(back))
    if run is not None:
        yield PublishRecord(PUBLISH, manifest.effective, manifest.run, run)


def _read_templates(
    store: Writer, manifest: Manifest, sequence: PublishedSequence
) -> Iterator[tuple[str, str | None, bool]]:
    """Yield identifier, reason and deletion of the templates that a sequence lists."""
    with closing(Files(store, 0, memory=_MEMORY)) as files:
        for span in sequence.spans({KIND}):
            values = {"first": span.first, "last": span.last}
            for file, groups in Catalogue(store).groups(
                manifest, "records", span.first, span.last, span
            ):
                yield from files.rows(_CHANGED, file, groups, **values)
