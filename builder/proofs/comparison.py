"""Compares the log of a store with that of a copy: entry by entry, down to the tiles.

The log of an older copy is a prefix of the store's. Two that differ are a split history, unless one
of them is damaged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from builder.proofs.entry import LogEntry
from builder.proofs.errors import ProofError
from builder.proofs.index import index_key, run_keys
from builder.proofs.note import VerifierKey
from builder.proofs.signed_log import SignedLog, open_log
from builder.proofs.tiles import CHECKPOINT, list_tiles, tile_key
from builder.store.findings import Finding
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Reader


@dataclass(frozen=True, slots=True)
class LogComparison:
    """Report: the entries of both logs, and what is wrong with them."""

    entries: int
    copied: int
    findings: tuple[Finding, ...]

    @property
    def is_older(self) -> bool:
        """Whether the log of the copy is a prefix of that of the store."""
        return self.copied < self.entries and not self.findings


def compare_logs(
    store: Reader, copy: Reader, keys: Sequence[VerifierKey] | None, *, late: bool
) -> LogComparison:
    """Compare the logs; `keys` of None checks no signature.

    `late`: the copy has fewer snapshots, so its log may be older too. Raises StoreError.
    """
    findings: list[Finding] = []
    logs = [_open(one, keys, findings) for one in (store, copy)]
    ours, theirs = logs
    entries, copied = (log.checkpoint.size if log else 0 for log in logs)
    if ours is not None and theirs is not None:
        findings += _compare(store, copy, ours, theirs)
    if not findings:
        findings += _compare_sizes(store, copy, entries, copied, late=late)
    return LogComparison(entries, copied, tuple(findings))


def list_indexes(store: Reader, snapshots: Sequence[int]) -> set[str]:
    """Return the keys of the indexes of these snapshots, and of the runs that they name."""
    found = set()
    for number in snapshots:
        found.add(index_key(number))
        try:
            found |= run_keys(store.read(index_key(number)))
        except (MissingObject, DamagedStore):
            continue  # it was not signed; damage is a difference
    return found


def _open(
    store: Reader, keys: Sequence[VerifierKey] | None, findings: list[Finding]
) -> SignedLog | None:
    """Return the log of a store if its tiles lead to its root; otherwise add a finding."""
    try:
        found = open_log(store, keys)
    except ProofError as error:
        findings.append(Finding("log-forged", CHECKPOINT, f"{store.address}: {error}"))
        return None
    if found is None:
        if keys is not None:
            problem = f"{store.address} has none, so nothing is signed there"
            findings.append(Finding("log-missing", CHECKPOINT, problem))
        return None
    try:
        if found.has_root():
            return found
        problem = "its tiles do not lead to its root"
    except (ProofError, MissingObject) as error:
        problem = str(error)
    findings.append(Finding("log-altered", CHECKPOINT, f"{store.address}: {problem}"))
    return None


def _compare(store: Reader, copy: Reader, ours: SignedLog, theirs: SignedLog) -> Iterator[Finding]:
    """Compare two logs whose tiles lead to their roots."""
    here, there = ours.checkpoint, theirs.checkpoint
    if here.origin != there.origin:
        problem = f"it is the log {here.origin}, but {there.origin} in {copy.address}"
        yield Finding("comparison-split", CHECKPOINT, problem)
        return
    shorter, longer = (ours, theirs) if here.size <= there.size else (theirs, ours)
    if not longer.continues(shorter.checkpoint):
        yield Finding("comparison-split", CHECKPOINT, _describe_split(copy, ours, theirs))
        return
    if here == there and ours.note != theirs.note:
        problem = f"its signatures are others than in {copy.address}"
        yield Finding("comparison-differs", CHECKPOINT, problem)
    for level, number, width in list_tiles(shorter.checkpoint.size):
        key = tile_key(level, number, width)
        try:
            if ours.tree.leaves(level, number)[:width] != theirs.tree.leaves(level, number)[:width]:
                problem = f"it differs in {copy.address}, though the roots are the same"
                yield Finding("comparison-differs", key, problem)
        except (ProofError, MissingObject) as error:
            yield Finding("comparison-differs", key, f"{error}, in {store.address} or the copy")


def _describe_split(copy: Reader, ours: SignedLog, theirs: SignedLog) -> str:
    """Return a text on the first entry that differs."""
    text = f"two histories were signed: it and that of {copy.address} differ"
    try:
        pairs = zip(ours.tree.entries(), theirs.tree.entries(), strict=False)
        for number, (here, there) in enumerate(pairs):
            if here != there:
                snapshots = [LogEntry.parse(one).snapshot for one in (here, there)]
                return (
                    f"{text} from entry {number} on, for snapshot {snapshots[0]} and {snapshots[1]}"
                )
    except (ProofError, MissingObject):
        pass  # the tiles of hashes prove the split
    return text


def _compare_sizes(
    store: Reader, copy: Reader, entries: int, copied: int, *, late: bool
) -> Iterator[Finding]:
    if copied > entries:
        problem = f"it ends after {entries:,} entries, but {copied:,} in {copy.address}"
        yield Finding("comparison-missing", CHECKPOINT, f"{problem}: it is old or was cut off")
    elif copied < entries and not late:
        problem = f"it has {entries:,} entries, but {copied:,} in {copy.address}"
        yield Finding("comparison-missing", CHECKPOINT, f"{problem}: an unfinished or cut copy")
