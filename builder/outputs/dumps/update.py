"""Update of the dumps in a store after a change of its content (`publish.dumps`).

First the new parts are written, then the index, by a conditional write. So the index is never
wrong, and an interrupted update is completed by the next one. It needs only the index and the
newest snapshot, however many were published in between.

Parts that hold a withdrawn item are read again from the newest snapshot, over the same positions.
The old objects are removed once the index is written. The index names them until the next update,
which removes them again in case that was interrupted. Objects that were merged or superseded stay
for a day, for readers with an older index.
"""

import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from builder.outputs.dumps import policy
from builder.outputs.dumps.clean import SUPERSEDED, list_strays, note_superseded
from builder.outputs.dumps.keys import may_hold
from builder.outputs.dumps.listing import DumpState, list_parts
from builder.outputs.dumps.selection import DumpSelection, Since
from builder.outputs.dumps.stored import DumpWriter
from builder.outputs.output import try_often
from builder.runtime import Runtime
from builder.snapshot import recovery
from functions.config.configuration import Configuration
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import dumps, oai_name, seal
from functions.snapshot.dumps import DumpIndex, DumpPart, FormatDumps, StoredDump
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.manifest import Manifest, Span
from functions.snapshot.store import Writer
from functions.store.files import FILE

_AFFECTED = (
    f"SELECT identifier, coalesce(deleted AND reason IS NOT NULL, false) FROM {FILE} "
    "WHERE position BETWEEN $first AND $last AND (reason IS NOT NULL OR kind = 'collection' "
    "OR warc_record_type = 'revisit') ORDER BY position"
)


def update_dumps(store: Writer, configuration: Configuration, runtime: Runtime) -> None:
    """Bring the dumps to the newest snapshot, in the formats of `publish.dumps`.

    Without a format, dumps of earlier publishes are removed. Raises ConfigurationError for an
    unknown format, Conflict if other processes updated them every time, and StoreError.
    """
    names = tuple(dict.fromkeys(configuration["publish.dumps"]))

    def update() -> None:
        tag = store.tag(dumps.INDEX)
        if names:
            # The index is read before the pointer, which therefore is not older.
            state = None
            with suppress(MissingObject, DamagedStore):  # without them, all is made anew
                state = DumpState.read(store)
            _renew(store, configuration, runtime, names, state, tag)
        elif tag is not None:
            runtime.say("publish.dumps names no format: the dumps in the store are removed")
            store.remove(dumps.INDEX)
            store.remove(*store.keys(dumps.FOLDER))

    try_often(update, "the dumps were")


def _renew(
    store: Writer,
    configuration: Configuration,
    runtime: Runtime,
    names: Sequence[str],
    state: DumpState | None,
    tag: str | None,
) -> None:
    """Write what the index lacks, then the next index. Raises Conflict."""
    pointer, _ = recovery.current(store)
    newest = pointer.newest()
    if newest is None:
        return
    if state is not None and state.index.removed:
        store.remove(*state.index.removed)
    from builder.outputs.dumps.formats import DumpFormats  # loads the renderer

    with closing(DuckRepository(store)) as repository:
        manifest = repository.manifest(newest.snapshot)
        formats = DumpFormats.of(configuration).of_snapshot(manifest)
        if state is not None and not (
            state.index.store == manifest.store and state.index.snapshot <= manifest.snapshot
        ):
            state = None
        if state and state.index.snapshot == manifest.snapshot and {*state.formats} == {*names}:
            return
        with tempfile.TemporaryDirectory(prefix="sheaf-dumps-") as scratch:
            total = sum(manifest.kinds().values()) * len(names) if state is None else 0
            with runtime.progress(total) as advance:
                writer = DumpWriter(
                    store,
                    repository,
                    formats,
                    manifest,
                    Path(scratch),
                    configuration["repository.name"],
                    advance,
                )
                affected = set[int]()
                if state is not None:
                    affected = _find_affected(repository, manifest, _span_after(manifest, state))
                update = _Update(writer, state, affected)
                formats_ = {name: update.renew(name) for name in names}
                index = DumpIndex(
                    manifest.store,
                    configuration["repository.name"],
                    manifest.snapshot,
                    manifest.effective,
                    {name: writer.list(name, stored) for name, stored in formats_.items()},
                )
    after = DumpState(index, formats_)
    _commit(store, runtime, after, state, tag, anew=state is None or bool(affected))


def _commit(
    store: Writer,
    runtime: Runtime,
    after: DumpState,
    before: DumpState | None,
    tag: str | None,
    *,
    anew: bool,
) -> None:
    """Write the index, then remove what no reader may or will need. Raises Conflict.

    If `anew`, that is all that the index does not name.
    """
    strays: list[str] = []
    if before is not None:
        lists = {entry.list for entry in after.index.formats.values()}
        gone = [entry.list for entry in before.index.formats.values() if entry.list not in lists]
        store.remove(SUPERSEDED) if anew else note_superseded(store, gone, runtime.clock())
    # Dumps that were merged or replaced leave objects behind; one that was added leaves none.
    if (
        anew
        or before is None
        or any(
            name not in after.formats
            or (after.formats[name] != stored and len(after.formats[name].all) <= len(stored.all))
            for name, stored in before.formats.items()
        )
    ):
        strays = list_strays(store, after, None if anew else runtime.clock())
    index = seal.replace(after.index, removed=tuple(strays) if anew else ())
    store.replace(dumps.INDEX, index.to_json(), tag)
    store.remove(*strays)


def _span_after(manifest: Manifest, state: DumpState) -> Span:
    """Return the positions that were given after the snapshot of dumps."""
    return DumpSelection.of(manifest, (), since=Since.after(state.index.datestamp)).span


def _find_affected(repository: DuckRepository, manifest: Manifest, span: Span) -> set[int]:
    """Return the keys of identifiers whose earlier versions withdrawals of `span` removed.

    A withdrawal rewrites the store's data files without all versions of its items. It does the same
    with revisits that had inherited metadata from them, and counts the collections again. All of
    these have new versions since, so they are found behind the last position of the dumps. The set
    is empty if nothing was withdrawn there. Raises StoreError.
    """
    if span.last < span.first:
        return set()
    values = {"first": span.first, "last": span.last}
    keys, is_any = set[int](), False
    for file, groups in repository.catalogue.groups(manifest, "records", span.first, span.last):
        for name, is_withdrawn in repository.files.rows(_AFFECTED, file, groups, **values):
            keys.add(oai_name.lookup_key(name))
            is_any = is_any or is_withdrawn
    return keys if is_any else set()


@dataclass(frozen=True, slots=True)
class _Update:
    """An update from `state`; `affected` are keys of withdrawn identifiers."""

    writer: DumpWriter
    state: DumpState | None
    affected: set[int]

    def renew(self, name: str) -> FormatDumps:
        """Return the dumps in a format as of the newest snapshot."""
        state, manifest = self.state, self.writer.manifest
        making = manifest.formats.get(name)
        if (
            state is None
            or name not in state.formats
            or (making is not None and making.snapshot > state.index.snapshot)
        ):
            return FormatDumps(self._make_complete(name))
        stored = state.formats[name]
        if self.affected:
            stored = FormatDumps(
                self._scrub(name, stored.complete),
                tuple(self._scrub(name, dump) for dump in stored.differences),
            )
        if parts := self.writer.write(name, _span_after(manifest, state), complete=False):
            last = stored.all[-1].snapshot
            new = self.writer.describe(name, parts, manifest.snapshot, manifest.effective, last)
            stored = seal.replace(stored, differences=(*stored.differences, new))
        return self._limit(name, stored)

    def _limit(self, name: str, stored: FormatDumps) -> FormatDumps:
        """Make a complete dump or merge differences, if it is time."""
        complete, differences = stored.complete, stored.differences
        at = complete.snapshot
        behind = [dump.bytes for dump in differences if dump.snapshot > at]
        if policy.is_complete_due(complete.bytes, behind):
            complete = self._make_complete(name)
            sizes = [dump.bytes for dump in differences]
            differences = differences[-policy.count_kept(complete.bytes, sizes) :]
        if count := policy.count_merged([dump.bytes for dump in differences]):
            start = len(differences) - 1 - count
            older = differences[start:-1]
            spans = [dump.positions for dump in older if dump.name]
            parts: tuple[DumpPart, ...] = ()
            if spans:
                parts = self.writer.write(name, Span(spans[0][0], spans[-1][1]), complete=False)
            last, since = older[-1], older[0].since
            merged = self.writer.describe(name, parts, last.snapshot, last.datestamp, since)
            differences = (*differences[:start], merged, differences[-1])
        return FormatDumps(complete, differences)

    def _make_complete(self, name: str) -> StoredDump:
        manifest = self.writer.manifest
        parts = self.writer.write(name, Span(1, manifest.last_position), complete=True)
        return self.writer.describe(name, parts, manifest.snapshot, manifest.effective, None)

    def _scrub(self, name: str, dump: StoredDump) -> StoredDump:
        """Return a dump with the parts read again that may hold a withdrawn item."""
        store, before = self.writer.store, list_parts(self.writer.store, dump)
        after: list[DumpPart] = []
        for part in before:
            keys = b""  # a part without keys may hold any item
            with suppress(MissingObject):
                keys = store.read(dumps.FOLDER + part.name + dumps.KEYS)
            if may_hold(keys, self.affected):
                after += self.writer.write(name, Span(*part.positions), complete=dump.since is None)
            else:
                after.append(part)
        if after == list(before):
            return dump
        return self.writer.describe(name, after, dump.snapshot, dump.datestamp, dump.since)
