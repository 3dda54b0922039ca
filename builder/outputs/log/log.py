"""The log: each snapshot gets an entry and a signed checkpoint after it is in effect.

The index and the tiles of an entry are written first. Then the checkpoint is replaced by a
conditional write, so the log never forks. It has one checkpoint for each entry, and an entry holds
the checkpoint before it: so processes that append the same entry write the same bytes. After a
crash the log lags, and the next change completes it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from operator import attrgetter

from builder.outputs.log.entry import LogEntry, TreeHead, hash_sequences, list_sequences
from builder.outputs.log.index import (
    NEWEST,
    FileTrees,
    GroupTree,
    ProofIndex,
    RunTree,
    index_key,
    read_index,
)
from builder.outputs.log.merkle import root_of
from builder.outputs.log.note import Checkpoint, ProofError
from builder.outputs.log.rows import COLUMNS, LOOKUP, RECORDS, WIDTHS, GroupRows, read_groups
from builder.outputs.log.signer import LogSigner
from builder.outputs.log.tiles import CHECKPOINT, TileTree, list_partials, open_log
from builder.outputs.output import try_often
from builder.runtime import Runtime
from builder.snapshot import consistency, recovery
from functions.snapshot import instant
from functions.snapshot.errors import Conflict, DamagedStore, MissingObject
from functions.snapshot.manifest import DataFile, LeafReference, Manifest
from functions.snapshot.store import Reader, Writer
from functions.store import engine
from functions.store.catalog import Catalogue
from functions.store.checked_files import CheckedFiles

_FEW = 1024
"""Rows of a row group of `lookup` that the index holds itself, in 22 KB at most."""


def sign_snapshots(store: Writer, signer: LogSigner, runtime: Runtime) -> int:
    """Add the snapshots that the log lacks; return their number. The log begins with the newest.

    Raises DamagedStore if another key signed the log, Conflict if other processes changed it every
    time, and StoreError.
    """
    added = 0

    def append() -> None:
        nonlocal added
        while _append_next(store, signer, runtime):
            added += 1

    try_often(append, "the log was")
    return added


def read_log(reader: Reader, signer: LogSigner) -> tuple[str, TileTree]:
    """Return the newest checkpoint, "" without one, and the tree. Raises DamagedStore."""
    try:
        log = open_log(reader, signer.keys)
        if log is None:
            return "", TileTree(reader.read, 0)
        if not log.has_root():
            raise ProofError("its tiles do not lead to its root")
    except ProofError as error:
        raise DamagedStore(
            f"{CHECKPOINT}: {error}; restore the log from a copy, add the verifier key that signed "
            "it to the file of sign.key, or move log/ elsewhere to begin another one"
        ) from error
    return log.note, log.tree


def _append_next(store: Writer, signer: LogSigner, runtime: Runtime) -> bool:
    """Append the next snapshot; return False if the log has all. Raises Conflict."""
    pointer, _ = recovery.current(store)
    newest = pointer.newest()
    if newest is None:
        return False
    tag = store.tag(CHECKPOINT)
    text, tree = read_log(store, signer)
    catalogue = Catalogue(store)
    entry = None
    if tree.size:
        try:
            entry = LogEntry.parse(tree.read_entry(tree.size - 1))
        except ProofError as error:
            raise DamagedStore(f"the log: {error}; restore it from a copy") from error
    last = entry.snapshot if entry else 0
    if last >= newest.snapshot:
        _complete(store, last)
        return False
    skipped = catalogue.manifest(newest.snapshot).skipped
    wanted = [n for n in consistency.kept_snapshots(pointer, skipped) if n > last]
    # A late snapshot is published again with another instant.
    late = not pointer.settled and newest.effective <= runtime.clock()
    wanted = [n for n in wanted if not (late and n == newest.snapshot)]
    if not wanted:
        return False
    number = wanted[0] if tree.size else wanted[-1]
    objects, grown = _build(store, signer, runtime, catalogue.manifest(number), (text, tree), entry)
    checkpoint = objects.pop(CHECKPOINT)
    for key, data in objects.items():
        _put(store, key, data, tag)
    store.replace(CHECKPOINT, checkpoint, tag)
    _complete(store, number)
    store.remove(*list_partials(grown.size))
    return True


def _build(
    store: Writer,
    signer: LogSigner,
    runtime: Runtime,
    manifest: Manifest,
    log: tuple[str, TileTree],
    last: LogEntry | None,
) -> tuple[dict[str, bytes], TileTree]:
    """Return the objects of the next entry, with its checkpoint, and the tree that has it."""
    text, tree = log
    catalogue = Catalogue(store)
    runs = find_runs(catalogue, manifest, runtime.threads, _known_files(catalogue, last))
    sequences = list_sequences(manifest)
    effective = instant.to_text(manifest.effective)
    entry = LogEntry(
        manifest.store,
        manifest.snapshot,
        effective,
        manifest.digest,
        TreeHead(len(sequences), root_of(hash_sequences(sequences))),
        tuple(run.head() for run in runs[LOOKUP]),
        tuple(run.head() for run in runs[RECORDS]),
        text,
    ).to_text()
    try:
        grown, objects = tree.append(entry.encode())
    except ProofError as error:
        raise DamagedStore(f"the log: {error}") from error
    size = grown.size
    checkpoint = signer.sign_note(Checkpoint(signer.key.name, size, grown.find_root()).to_text())
    objects |= ProofIndex(
        manifest.snapshot,
        effective,
        entry,
        checkpoint,
        grown.prove(size - 1),
        COLUMNS,
        sequences,
        tuple(runs[LOOKUP]),
        tuple(runs[RECORDS]),
    ).to_objects()
    objects[CHECKPOINT] = checkpoint.encode()
    return objects, grown


def find_runs(
    catalogue: Catalogue, manifest: Manifest, threads: int, trees: Mapping[str, FileTrees]
) -> dict[str, list[RunTree]]:
    """Return the runs of `lookup` and `records`; data files that have `trees` are not read.

    Raises DamagedStore, MissingObject, StoreError.
    """
    with engine.connect(threads=threads) as connection:

        def read(table: str, leaves: Iterable[LeafReference]) -> Iterator[FileTrees]:
            for leaf in leaves:
                for file in catalogue.leaf(leaf).files:
                    own = trees.get(file.key)
                    yield own or _digest_file(connection, catalogue.reader, table, file)

        return {
            table: [
                RunTree(span or (0, 0), tuple(read(table, leaves)))
                for span, leaves in groupby(manifest.tables.get(table, ()), attrgetter("span"))
            ]
            for table in (LOOKUP, RECORDS)
        }


def _known_files(catalogue: Catalogue, last: LogEntry | None) -> Mapping[str, FileTrees]:
    """Return the files whose trees the last entry has: only what was signed is signed again."""
    if last is None:
        return {}
    with suppress(MissingObject, DamagedStore):
        index = read_index(catalogue.reader, index_key(last.snapshot))
        manifest = catalogue.manifest(last.snapshot)
        if index.columns == COLUMNS and describes(index, last, manifest, catalogue):
            runs = (*index.lookup, *index.records)
            return {file.key: file for run in runs for file in run.files}
    return {}


def describes(index: ProofIndex, entry: LogEntry, manifest: Manifest, catalogue: Catalogue) -> bool:
    """Return whether an index has the trees of its entry, for the data files of its manifest.

    The entry alone does not say to which file a tree belongs. Raises DamagedStore, MissingObject.
    """
    if manifest.digest != entry.manifest:
        return False
    for table, runs, heads in (
        (LOOKUP, index.lookup, entry.lookup),
        (RECORDS, index.records, entry.records),
    ):
        files = [file for run in runs for file in run.files]
        if tuple(run.head() for run in runs) != heads:
            return False
        # The rows that an index itself has of a file must be those of its trees.
        inlined = (group for file in files for group in file.groups if group.data)
        if any(GroupRows(g.data, WIDTHS[LOOKUP]).find_root() != g.root for g in inlined):
            return False
        there = [(f.key, f.bytes, [(g.first, g.offset, g.length) for g in f.groups]) for f in files]
        if there != [
            (f.key, f.bytes, [(g.first, *g.byte_range) for g in f.groups])
            for f in catalogue.files(manifest, table)
        ]:
            return False
    return True


def _digest_file(
    connection: engine.Connection, store: Reader, table: str, file: DataFile
) -> FileTrees:
    counts = [group.rows for group in file.groups]
    read = read_groups(connection, CheckedFiles(store).whole(file.key), table, counts)
    groups = []
    for group, rows in zip(file.groups, read, strict=True):
        if rows.rows != group.rows or not isinstance(group.first, int):
            raise DamagedStore(f"{file.key} does not have the rows that its leaf declares")
        data = rows.data if table == LOOKUP and group.rows <= _FEW else b""
        groups.append(GroupTree(group.first, *group.byte_range, group.rows, rows.find_root(), data))
    return FileTrees(file.key, file.bytes, tuple(groups))


def _put(store: Writer, key: str, data: bytes, tag: str | None) -> None:
    """Write an object. One that differs was left by a crash, unless the log has grown meanwhile."""
    try:
        store.create(key, data)
    except Conflict:
        there = store.tag(key)
        if store.read(key) != data:
            if store.tag(CHECKPOINT) != tag:
                raise
            store.replace(key, data, there)


def _complete(store: Writer, last: int) -> None:
    """Make the newest index that of the last snapshot in the log."""
    tag = store.tag(NEWEST)
    with suppress(MissingObject, Conflict):
        data = store.read(index_key(last))
        if tag is None or store.read(NEWEST) != data:
            store.replace(NEWEST, data, tag)
