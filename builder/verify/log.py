"""Checks of the signed log: its signatures and tiles, and the snapshots that it names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from builder.proofs import note
from builder.proofs.checkpoint import Checkpoint, open_checkpoint
from builder.proofs.entry import LogEntry, TreeHead, sequence_line
from builder.proofs.errors import ProofError
from builder.proofs.index import NEWEST, RunTree, index_key
from builder.proofs.log import describes, find_runs, read_index
from builder.proofs.merkle import Nodes, find_root, hash_leaf, nodes_of, root_of
from builder.proofs.note import VerifierKey
from builder.proofs.rows import LOOKUP, RECORDS
from builder.proofs.tiles import CHECKPOINT, LOG, WIDTH, TileTree, list_tiles, pack_entries
from builder.snapshot import consistency
from builder.store.findings import Finding
from builder.store.identity import read_identity
from builder.store.web_store import WebStore
from functions.snapshot import instant, layout
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Reader, Writer
from functions.store.catalog import Catalogue

_PARTIAL = re.compile(
    rf"{LOG}tile/(?P<level>entries|[0-9]+)/(?P<path>(?:x[0-9]{{3}}/)*[0-9]{{3}})\.p/([0-9]+)"
)
_Entries = Sequence[tuple[bytes, LogEntry]]


def log_findings(
    store: Writer,
    keys: Sequence[VerifierKey] | None,
    earlier: Checkpoint | None = None,
    *,
    rows: bool = False,
) -> Iterator[Finding]:
    """Yield what is wrong with the log.

    With `keys` of None, only the checkpoint's signature is checked, by the keys that the store's
    identity names: that finds damage, not forgery. The log must continue the `earlier` checkpoint.
    With `rows`, the rows of the newest snapshot in the log are read. Raises StoreError.
    """
    try:
        text = store.read(CHECKPOINT).decode("utf-8", "replace")
    except MissingObject:
        if keys is not None or earlier is not None:
            yield Finding("log-missing", CHECKPOINT, "it does not exist, so nothing is signed")
        return
    except DamagedStore as error:
        yield Finding("log-altered", CHECKPOINT, str(error))
        return
    try:
        checkpoint = open_checkpoint(text, keys)
    except ProofError as error:
        yield Finding("log-forged", CHECKPOINT, str(error))
        return
    if keys is None:
        try:
            open_checkpoint(text, _read_signers(store))
        except ProofError as error:
            yield Finding("log-forged", CHECKPOINT, str(error))
    try:
        found, nodes = _read_entries(store, checkpoint)
    except (ProofError, MissingObject, DamagedStore) as error:
        yield Finding("log-altered", CHECKPOINT, f"its entries do not lead to its root: {error}")
        return
    if not found:
        yield Finding("log-truncated", CHECKPOINT, "it has no entry")
    yield from _check_tiles(store, checkpoint, nodes)
    if not isinstance(store, WebStore):
        yield from _check_partials(store, checkpoint.size, [data for data, _ in found], nodes)
    yield from _check_chain(found, keys, nodes, checkpoint)
    if earlier is not None:
        yield from _check_earlier(checkpoint, earlier, nodes)
    yield from _check_snapshots(store, [entry for _, entry in found], rows=rows)


def _read_entries(store: Reader, checkpoint: Checkpoint) -> tuple[_Entries, Nodes]:
    """Return all entries, and the nodes of their tree. Raises ProofError, MissingObject."""
    data = list(TileTree(store.read, checkpoint.size).entries())
    nodes = cache(nodes_of([hash_leaf(one) for one in data]))
    if find_root(len(data), nodes) != checkpoint.root:
        raise ProofError("they have another root")
    return [(one, LogEntry.parse(one)) for one in data], nodes


def _check_tiles(store: Reader, checkpoint: Checkpoint, nodes: Nodes) -> Iterator[Finding]:
    """Compare the tiles of hashes with the entries."""
    tree = TileTree(store.read, checkpoint.size)
    for level, number, width in list_tiles(checkpoint.size):
        if isinstance(level, str):
            continue
        first = number * WIDTH
        try:
            same = tree.leaves(level, number) == [
                nodes(8 * level, at) for at in range(first, first + width)
            ]
        except (ProofError, MissingObject, DamagedStore) as error:
            yield Finding("log-altered", f"log/tile/{level}", str(error))
            continue
        if not same:
            problem = f"tile {number} does not match the entries"
            yield Finding("log-altered", f"log/tile/{level}", problem)


def _check_partials(
    store: Writer, size: int, entries: Sequence[bytes], nodes: Nodes
) -> Iterator[Finding]:
    """Compare the partial tiles of earlier checkpoints with the entries.

    A copy of the store has none of them, and a tile beyond the log is of an append in progress.
    """
    for key in store.keys(f"{LOG}tile/"):
        match = _PARTIAL.fullmatch(key)
        if not match:
            continue
        first, width = int(match["path"].replace("/", "").replace("x", "")) * WIDTH, int(match[3])
        level = 0 if match["level"] == "entries" else int(match["level"])
        if first + width > size >> (8 * level):
            continue
        places = range(first, first + width)
        if match["level"] == "entries":
            expected = pack_entries(entries[first : first + width])
        else:
            expected = b"".join(nodes(8 * level, place) for place in places)
        try:
            if store.read(key) != expected:
                yield Finding("log-altered", key, "it does not match the entries")
        except MissingObject:
            continue  # its tile was completed meanwhile
        except DamagedStore as error:
            yield Finding("log-altered", key, str(error))


def _read_signers(store: Reader) -> Sequence[VerifierKey] | None:
    """Return the keys that signed the log by the store's identity; None if it names none."""
    try:
        identity = read_identity(store)
    except DamagedStore:
        return None  # reported with the identity
    signers = identity.signers if identity else ()
    return [VerifierKey.parse(text) for text in signers] or None


def _check_chain(
    entries: _Entries,
    keys: Sequence[VerifierKey] | None,
    nodes: Nodes,
    checkpoint: Checkpoint,
) -> Iterator[Finding]:
    """Check that each entry follows the one before, and holds the checkpoint before it."""
    last, time = 0, ""
    for size, (_, entry) in enumerate(entries):
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


def _check_earlier(checkpoint: Checkpoint, earlier: Checkpoint, nodes: Nodes) -> Iterator[Finding]:
    if earlier.size > checkpoint.size:
        problem = f"it has {checkpoint.size} entries, and an earlier checkpoint {earlier.size}"
        yield Finding("log-truncated", CHECKPOINT, problem)
    elif (earlier.origin, earlier.root) != (checkpoint.origin, find_root(earlier.size, nodes)):
        problem = f"it does not continue the earlier checkpoint of {earlier.size} entries"
        yield Finding("log-split", CHECKPOINT, problem)


def _check_snapshots(
    store: Reader, entries: Sequence[LogEntry], *, rows: bool
) -> Iterator[Finding]:
    """Compare the entries with the snapshots that are kept."""
    catalogue = Catalogue(store)
    try:
        pointer = catalogue.pointer()
        newest = pointer.newest()
        if newest is None or not entries:
            return
        skipped = catalogue.manifest(newest.snapshot).skipped
    except (DamagedStore, MissingObject):
        return  # reported with the snapshots
    kept = consistency.kept_snapshots(pointer, skipped)
    named = {entry.snapshot: entry for entry in entries}
    last = max(named)
    for number in sorted(named.keys() - set(kept)):
        if number > newest.snapshot or number in skipped:
            problem = f"it has snapshot {number}, and the store ends with {newest.snapshot}"
            yield Finding("log-ahead", CHECKPOINT, problem)
    for number in kept:
        if number in named:
            yield from _compare(catalogue, named[number], rows=rows and number == last)
        elif min(named) < number < last:
            yield Finding("log-mismatch", layout.manifest_key(number), "the log leaves it out")
    yield from _check_end(store, [number for number in kept if number > last], last)


def _check_end(store: Reader, left: Sequence[int], last: int) -> Iterator[Finding]:
    """Check whether snapshots, or the newest index, are behind the log."""
    if len(left) > 1:
        problem = f"it ends with snapshot {last}, and the store has {left} too"
        yield Finding("log-truncated", CHECKPOINT, problem)
    elif left:
        yield Finding("log-behind", CHECKPOINT, f"it lacks the newest snapshot, {left[0]}")
    try:
        is_old = store.read(NEWEST) != store.read(index_key(last))
    except (MissingObject, DamagedStore):
        is_old = True
    if is_old:
        yield Finding("log-behind", NEWEST, f"it is not the index of snapshot {last}")


def _compare(catalogue: Catalogue, entry: LogEntry, *, rows: bool) -> Iterator[Finding]:
    """Compare a snapshot and its index with its entry."""
    number = entry.snapshot
    key = layout.manifest_key(number)
    try:
        manifest = catalogue.manifest(number)
        if manifest.digest != entry.manifest or _sequences_of(manifest) != entry.sequences:
            yield Finding("log-mismatch", key, "it is not the manifest that was signed")
            return
        yield from _check_index(catalogue, entry, manifest)
        if rows:
            runs = find_runs(catalogue, manifest, 1, {})
            if not _is_of(entry, runs):
                yield Finding("log-mismatch", key, "its records are not those that were signed")
    except (DamagedStore, MissingObject):
        return  # reported with the snapshots


def _check_index(catalogue: Catalogue, entry: LogEntry, manifest: Manifest) -> Iterator[Finding]:
    key = index_key(entry.snapshot)
    try:
        index = read_index(catalogue.reader, key)
    except (DamagedStore, MissingObject) as error:
        yield Finding("log-index", key, str(error))
        return
    lines = tuple((s.number, instant.to_text(s.effective)) for s in manifest.sequences)
    ours = (entry.to_text(), entry.effective, lines)
    if (index.entry, index.effective, index.sequences) != ours or not describes(
        index, entry, manifest, catalogue
    ):
        yield Finding("log-index", key, "it does not match its entry in the log")


def _is_of(entry: LogEntry, runs: Mapping[str, Sequence[RunTree]]) -> bool:
    heads = {table: tuple(run.head() for run in some) for table, some in runs.items()}
    return heads[LOOKUP] == entry.lookup and heads[RECORDS] == entry.records


def _sequences_of(manifest: Manifest) -> TreeHead:
    lines = [sequence_line(s.number, instant.to_text(s.effective)) for s in manifest.sequences]
    return TreeHead(len(lines), note.encode(root_of([hash_leaf(line) for line in lines])))
