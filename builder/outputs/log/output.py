"""The signed log as an output.

A copy is evidence against a log that was cut off or signed anew. So a copy continues the log of its
target, and never replaces another one.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from builder.outputs.log.compare import compare_logs
from builder.outputs.log.index import NEWEST, RUNS, SNAPSHOTS, index_key, run_keys
from builder.outputs.log.log import sign_snapshots
from builder.outputs.log.note import ProofError, VerifierKey, open_checkpoint
from builder.outputs.log.signer import open_signer
from builder.outputs.log.tiles import (
    CHECKPOINT,
    LOG,
    WIDTH,
    SignedLog,
    list_tiles,
    open_log,
    tile_key,
)
from builder.outputs.log.verify import log_findings
from builder.outputs.output import CopyComparison, Output, OutputComparison, OutputUpdate
from builder.runtime import Runtime
from builder.snapshot import consistency, recovery
from builder.snapshot.audit import StoreAudit
from builder.snapshot.orphans import ORPHAN_AGE
from builder.store.copier import CopiedObject, ObjectCopier, Stage, read_document
from builder.store.findings import Finding
from functions.config.configuration import Configuration
from functions.snapshot.errors import DamagedStore, MissingObject, StoreError
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue


class LogOutput(Output):
    """The log of the signer that `sign` names."""

    copied = (LOG,)

    def open(self, configuration: Configuration) -> OutputUpdate:
        """Return the update; without a signer, the log stays as it is.

        Raises ConfigurationError, UsageError, and StoreError if AWS does not answer.
        """
        signer = open_signer(configuration)
        if signer is None:
            return OutputUpdate(lambda store, runtime: None)
        objects, keys = (CHECKPOINT, NEWEST), tuple(key.to_text() for key in signer.keys)
        return OutputUpdate(lambda s, r: sign_snapshots(s, signer, r), objects, (), keys)

    def retire(self, store: Writer, runtime: Runtime, *, anew: bool) -> int:
        """Remove the proof indexes of retired snapshots, and runs that no index names.

        A publish that signs meanwhile writes its runs before its index. So young runs stay, unless
        `anew`, and those that a new index names. The log itself stays for good. Raises StoreError.
        """
        young = runtime.clock() - ORPHAN_AGE
        old = [run.key for run in store.entries(RUNS) if anew or run.modified <= young]
        there = list(store.keys(SNAPSHOTS))
        pointer, _ = recovery.current(store) if there else (Pointer(), None)
        if (newest := pointer.newest()) is None:
            return 0
        skipped = Catalogue(store).manifest(newest.snapshot).skipped
        current = {index_key(n) for n in consistency.kept_snapshots(pointer, skipped)}
        gone = [key for key in there if key not in current]
        if not gone:
            return 0
        staying = {NEWEST, *current.intersection(there), *store.keys(SNAPSHOTS)}.difference(gone)
        named: set[str] = set()
        for key in staying:
            with suppress(MissingObject):
                named |= run_keys(store.read(key))
        gone += [key for key in old if key not in named]
        store.remove(*gone)
        return len(gone)

    def verify(self, audit: StoreAudit) -> Sequence[Finding]:
        """Check the log, also at an address that cannot be listed.

        Raises ProofError if what is trusted is no key or checkpoint, and StoreError.
        """
        keys = None if audit.keys is None else [*map(VerifierKey.parse, audit.keys)]
        earlier = None if audit.checkpoint is None else open_checkpoint(audit.checkpoint, keys)
        return list(log_findings(audit.store, keys, earlier))

    def compare(self, comparison: CopyComparison) -> OutputComparison:
        """Compare the logs. Raises ProofError if a key is none, and StoreError."""
        return compare_logs(comparison)

    def check_copy(self, source: Writer, target: Writer) -> None:
        """Raise StoreError unless the source's log continues that of the target."""
        _open_source(source, target)

    def copy(
        self, source: Writer, copier: ObjectCopier, runtime: Runtime, snapshots: Sequence[int]
    ) -> None:
        """Copy the log. It comes after the pointer: it must not name snapshots that are missing."""
        tag, log = copier.target.tag(CHECKPOINT), _open_source(source, copier.target)
        if log is None:
            return
        copier.copy(_list_log(source, log.checkpoint.size, snapshots))
        note = log.note.encode()
        copier.put(CopiedObject(CHECKPOINT, len(note), data=note, replaced=True), tag)
        if source.tag(NEWEST) is not None:  # else the next publish writes it
            copier.copy(_list_index(source, NEWEST))


def _open_source(source: Writer, target: Writer) -> SignedLog | None:
    """Return the log of the source, None without one; it must continue that of the target."""
    logs = []
    for store in (source, target):
        try:
            logs.append(open_log(store, None))
        except ProofError as error:
            raise DamagedStore(f"{CHECKPOINT} of {store.address}: {error}") from error
    ours, theirs = logs
    if theirs is None:
        return ours
    count = theirs.checkpoint.size
    problem = f"has more entries ({count:,})"
    if ours and ours.checkpoint.size >= count:
        problem = f"has another history: its {count:,} entries differ"
        with suppress(ProofError):  # the tiles are cut off
            if ours.continues(theirs.checkpoint):
                return ours
    raise StoreError(
        f"the log of {target.address} {problem}. Keep this copy, compare them by "
        "`sheaf verify --against`, and choose an empty place"
    )


def _list_log(source: Writer, size: int, snapshots: Iterable[int]) -> Iterator[Stage]:
    """Yield the tiles of a log with `size` entries, and the proof indexes of these snapshots."""
    read = partial(read_document, source, replaced=True)
    for level, number, width in list_tiles(size):
        where = tile_key(level, number, width)
        if width < WIDTH and source.tag(where) is None:
            where = tile_key(level, number)  # a later entry completed it
        yield [read(where)]
    for where in map(index_key, snapshots):
        if source.tag(where) is not None:  # a snapshot without an index is not signed
            yield from _list_index(source, where)


def _list_index(source: Writer, where: str) -> Iterator[Stage]:
    """Yield the runs that an index of proofs names, then the index."""
    document = read_document(source, where, replaced=True)
    runs = sorted(run_keys(document.data or b""))
    yield (read_document(source, run, replaced=True) for run in runs)
    yield [document]
