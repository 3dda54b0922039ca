"""Checks of the signed log: its signatures and tiles, and the snapshots that it names."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache

from builder.outputs.log.entry import LogEntry, TreeHead, hash_sequences, list_sequences
from builder.outputs.log.index import NEWEST, index_key, read_index
from builder.outputs.log.log import describes
from builder.outputs.log.merkle import Nodes, find_root, hash_leaf, nodes_of, root_of
from builder.outputs.log.note import Checkpoint, ProofError, VerifierKey, open_checkpoint
from builder.outputs.log.tiles import (
    CHECKPOINT,
    LOG,
    WIDTH,
    TileTree,
    list_tiles,
    open_log,
    tile_key,
)
from builder.snapshot import consistency
from builder.store.findings import Finding
from builder.store.identity import read_identity
from builder.store.web_store import WebStore
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Reader, Writer
from functions.store.catalog import Catalogue


def log_findings(
    store: Writer,
    keys: Sequence[VerifierKey] | None,
    earlier: Checkpoint | None = None,
) -> Iterator[Finding]:
    """Yield what is wrong with the log.

    With `keys` of None, only the checkpoint's signature is checked, by the keys that the store's
    identity names: that finds damage, not forgery. The log must continue the `earlier` checkpoint.
    Raises StoreError.
    """
    try:
        log = open_log(store, keys)
    except (DamagedStore, ProofError) as error:
        code = "log-altered" if isinstance(error, DamagedStore) else "log-forged"
        yield Finding(code, CHECKPOINT, str(error))
        return
    if log is None:
        if keys is not None or earlier is not None:
            yield Finding("log-missing", CHECKPOINT, "it does not exist, so nothing is signed")
        return
    checkpoint, tree = log.checkpoint, log.tree
    if keys is None:
        signers: tuple[str, ...] = ()
        with suppress(DamagedStore):  # reported with the identity
            identity = read_identity(store)
            signers = tuple(identity.signers) if identity else ()
        try:
            open_checkpoint(log.note, [*map(VerifierKey.parse, signers)] or None)
        except ProofError as error:
            yield Finding("log-forged", CHECKPOINT, str(error))
    try:
        texts = list(tree.entries())
        nodes = cache(nodes_of([hash_leaf(text) for text in texts]))
        if find_root(len(texts), nodes) != checkpoint.root:
            raise ProofError("they have another root")
        entries = [LogEntry.parse(text) for text in texts]
    except (ProofError, MissingObject, DamagedStore) as error:
        yield Finding("log-altered", CHECKPOINT, f"its entries do not lead to its root: {error}")
        return
    if not entries:
        yield Finding("log-truncated", CHECKPOINT, "it has no entry")
    yield from _check_tiles(store, tree, texts, nodes)
    yield from _check_chain(entries, keys, nodes, checkpoint)
    if earlier is not None and earlier.size > checkpoint.size:
        problem = f"it has {checkpoint.size} entries, and an earlier checkpoint {earlier.size}"
        yield Finding("log-truncated", CHECKPOINT, problem)
    elif earlier is not None and (
        (earlier.origin, earlier.root) != (checkpoint.origin, find_root(earlier.size, nodes))
    ):
        problem = f"it does not continue the earlier checkpoint of {earlier.size} entries"
        yield Finding("log-split", CHECKPOINT, problem)
    yield from _check_snapshots(store, entries)


def _check_tiles(
    store: Writer, tree: TileTree, entries: Sequence[bytes], nodes: Nodes
) -> Iterator[Finding]:
    """Compare the tiles with the entries, also the partial tiles of earlier checkpoints.

    A copy of the store has none of those, and a tile beyond the log is of an append in progress.
    """
    there = set() if isinstance(store, WebStore) else set(store.keys(f"{LOG}tile/"))
    for level, number, whole in list_tiles(tree.size):
        first = number * WIDTH
        expected = entries[first : first + whole]
        if not isinstance(level, str):
            expected = [nodes(8 * level, place) for place in range(first, first + whole)]
        for width in range(1, whole + 1):
            key = tile_key(level, number, width)
            if width < whole and key not in there:
                continue
            try:
                if tree.leaves(level, number, width) == expected[:width]:
                    continue
                problem = "it does not match the entries"
            except (ProofError, MissingObject, DamagedStore) as error:
                problem = str(error)
            yield Finding("log-altered", key, problem)


def _check_chain(
    entries: Sequence[LogEntry],
    keys: Sequence[VerifierKey] | None,
    nodes: Nodes,
    checkpoint: Checkpoint,
) -> Iterator[Finding]:
    """Check that each entry follows the one before, and holds the checkpoint before it."""
    last, time = 0, ""
    for size, entry in enumerate(entries):
        place = f"entry {size} of the log, for snapshot {entry.snapshot}"
        if entry.snapshot <= last or entry.effective <= time:
            yield Finding("log-altered", CHECKPOINT, f"{place}, is not later than the one before")
        last, time = entry.snapshot, entry.effective
        if size == 0 and entry.previous == "":
            continue
        try:
            before = open_checkpoint(entry.previous, keys)
        except ProofError as error:
            yield Finding("log-forged", CHECKPOINT, f"{place}: {error}")
            continue
        expected = Checkpoint(checkpoint.origin, size, find_root(size, nodes))
        if before != expected:
            problem = f"{place}, holds a checkpoint of another history"
            yield Finding("log-split", CHECKPOINT, problem)


def _check_snapshots(store: Reader, entries: Sequence[LogEntry]) -> Iterator[Finding]:
    """Compare the entries with the snapshots that are kept, and the newest index with the last."""
    catalogue = Catalogue(store)
    try:
        pointer = catalogue.pointer()
        newest = pointer.newest()
        if newest is None or not entries:
            return
        skipped = catalogue.manifest(newest.snapshot).skipped
    except (DamagedStore, MissingObject):
        return  # reported with the snapshots
    numbers = consistency.kept_snapshots(pointer, skipped)
    named = {entry.snapshot: entry for entry in entries}
    last = max(named)
    for number in sorted(named.keys() - set(numbers)):
        if number > newest.snapshot or number in skipped:
            problem = f"it has snapshot {number}, and the store ends with {newest.snapshot}"
            yield Finding("log-ahead", CHECKPOINT, problem)
    for number in numbers:
        if number in named:
            yield from _compare(catalogue, named[number])
        elif min(named) < number < last:
            yield Finding("log-mismatch", layout.manifest_key(number), "the log leaves it out")
    left = [number for number in numbers if number > last]
    if len(left) > 1:
        problem = f"it ends with snapshot {last}, and the store has {left} too"
        yield Finding("log-truncated", CHECKPOINT, problem)
    elif left:
        yield Finding("log-behind", CHECKPOINT, f"it lacks the newest snapshot, {left[0]}")
    is_old = True
    with suppress(MissingObject, DamagedStore):
        is_old = store.read(NEWEST) != store.read(index_key(last))
    if is_old:
        yield Finding("log-behind", NEWEST, f"it is not the index of snapshot {last}")


def _compare(catalogue: Catalogue, entry: LogEntry) -> Iterator[Finding]:
    """Compare a snapshot and its index with its entry."""
    try:
        manifest = catalogue.manifest(entry.snapshot)
        sequences = list_sequences(manifest)
        leaves = hash_sequences(sequences)
        publishes = TreeHead(len(leaves), root_of(leaves))
        if (manifest.digest, publishes) != (entry.manifest, entry.sequences):
            problem = "it is not the manifest that was signed"
            yield Finding("log-mismatch", layout.manifest_key(entry.snapshot), problem)
            return
        key = index_key(entry.snapshot)
        try:
            index = read_index(catalogue.reader, key)
        except (DamagedStore, MissingObject) as error:
            yield Finding("log-index", key, str(error))
            return
        ours = (entry.to_text(), entry.effective, sequences)
        theirs = (index.entry, index.effective, index.sequences)
        if theirs != ours or not describes(index, entry, manifest, catalogue):
            yield Finding("log-index", key, "it does not match its entry in the log")
    except (DamagedStore, MissingObject):
        return  # reported with the snapshots
