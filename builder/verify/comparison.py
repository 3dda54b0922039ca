"""Compares a store with a copy of it: the objects that both should have, and their bytes.

Snapshots that one of them lacks are left out. The log of an older copy is a prefix of the store's;
two that differ are a split history, unless one of them is damaged. What a copy may lack because it
is older is counted, and is no damage. Each store has to be verified for itself as well.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from builder.obi import key as obi
from builder.outputs.log.entry import LogEntry
from builder.outputs.log.index import NEWEST, index_key, run_keys
from builder.outputs.log.note import ProofError, VerifierKey
from builder.outputs.log.tiles import (
    CHECKPOINT,
    LOG,
    WIDTH,
    SignedLog,
    list_tiles,
    open_log,
    tile_key,
)
from builder.runtime import Progress
from builder.sources.datasets.strategies.keys import FILESETS, WARCS
from builder.store.durable import digest_object
from builder.store.findings import Finding
from builder.verify.choice import Sample, StorePart, choose_keys
from builder.verify.inventory import Inventory
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Reader, Writer

_SNAPSHOTS = (layout.RECORDS, layout.SNAPSHOTS, LOG)
_LASTING = (obi.ROOT, FILESETS, WARCS)
"""Prefixes of objects that no snapshot names, and that never change."""


@dataclass(frozen=True, slots=True)
class LogComparison:
    """The number of entries of both logs, and what is wrong with the logs."""

    entries: int
    copied: int
    findings: tuple[Finding, ...]

    @property
    def is_older(self) -> bool:
        """Whether the log of the copy is a prefix of that of the store."""
        return self.copied < self.entries and not self.findings


@dataclass(frozen=True, slots=True)
class Comparison:
    """Report: snapshots that both keep, objects that both should have, and what was read.

    `bytes` were read of each store. `behind` counts objects that the copy may lack yet. `log` has
    the findings of the log alone, and `findings` all.
    """

    snapshots: tuple[int, ...]
    objects: int
    read: int
    bytes: int
    behind: int
    log: LogComparison
    findings: tuple[Finding, ...]


def compare(
    store: Writer,
    copy: Writer,
    clock: Callable[[], datetime],
    progress: Progress,
    choice: Sample | StorePart | None = None,
    keys: Sequence[VerifierKey] | None = None,
) -> Comparison:
    """Compare the stores; with `choice`, the bytes of only some objects are read.

    `keys` must have signed both logs; None checks no signature. `progress` receives the number of
    bytes to read of one of the stores. Raises StoreError.
    """
    ours, theirs = Inventory.take(store, clock()), Inventory.take(copy, clock())
    both = tuple(number for number in ours.numbers if number in theirs.numbers)
    late = max(ours.numbers, default=0) > max(theirs.numbers, default=0)
    log = _compare_logs(store, copy, keys, late=late)
    named = ours.names(both) | theirs.names(both)
    is_same = log.entries == log.copied
    tiles = list_tiles(min(log.entries, log.copied))
    # A tile that a longer log completed is not listed.
    named |= {tile_key(*tile) for tile in tiles if is_same or tile[2] == WIDTH}
    named |= {CHECKPOINT, NEWEST} if is_same else set()
    for number in both:
        named.add(index_key(number))
        for each in (store, copy):
            with suppress(MissingObject, DamagedStore):  # not signed; damage is a difference
                named |= run_keys(each.read(index_key(number)))
    here, there = _list_sizes(store, named), _list_sizes(copy, named)
    findings, behind = list(log.findings), 0
    if not both:
        problem = f"it keeps no snapshot that {copy.address} keeps"
        findings.append(Finding("comparison-apart", store.address, problem))
    for key in sorted(here.keys() ^ there.keys()):
        holder, other = (store, copy) if key in here else (copy, store)
        lasting = (*_LASTING, LOG) if log.is_older else _LASTING
        if late and key in here and key.startswith(lasting):
            behind += 1
        elif key.rpartition("/")[2] != "settled":  # a publish may note later that it was in time
            problem = f"{holder.address} has it, but {other.address} lacks it"
            findings.append(Finding("comparison-missing", key, problem))
    common = sorted(here.keys() & there.keys())
    for key in common:
        if here[key] != there[key]:
            problem = f"it has {here[key]:,} bytes, but {there[key]:,} in {copy.address}"
            findings.append(Finding("comparison-differs", key, problem))
    chosen = choose_keys([key for key in common if here[key] == there[key]], choice)
    size = sum(here[key] for key in chosen)
    with progress(size) as advance:
        for key in chosen:
            findings += _compare_bytes(store, copy, key)
            advance(here[key])
    return Comparison(both, len(common), len(chosen), size, behind, log, tuple(findings))


def _list_sizes(store: Writer, named: set[str]) -> dict[str, int]:
    """Return the sizes of the named objects that exist, and of all that no snapshot names."""
    entries = (entry for prefix in (*_SNAPSHOTS, *_LASTING) for entry in store.entries(prefix))
    return {e.key: e.bytes for e in entries if e.key in named or e.key.startswith(_LASTING)}


def _compare_bytes(store: Reader, copy: Reader, key: str) -> Iterator[Finding]:
    try:
        (ours, _), (theirs, _) = digest_object(store, key), digest_object(copy, key)
    except MissingObject as error:
        yield Finding("comparison-missing", key, f"{error}; it was removed meanwhile")
        return
    if ours != theirs:
        problem = f"its SHA-256 is {ours}, but {theirs} in {copy.address}"
        yield Finding("comparison-differs", key, problem)


def _compare_logs(
    store: Reader, copy: Reader, keys: Sequence[VerifierKey] | None, *, late: bool
) -> LogComparison:
    """Compare the logs; `late`: the copy has fewer snapshots, so its log may be older too."""
    findings: list[Finding] = []
    ours, theirs = (_open_log(each, keys, findings) for each in (store, copy))
    entries, copied = (log.checkpoint.size if log else 0 for log in (ours, theirs))
    problem = ""
    if ours and theirs:
        problem = _find_split(copy, ours, theirs)
    if problem:
        findings.append(Finding("comparison-split", CHECKPOINT, problem))
    elif not findings and copied > entries:
        problem = f"it ends after {entries:,} entries, but {copied:,} in {copy.address}"
        problem = f"{problem}: it is old or was cut off"
        findings.append(Finding("comparison-missing", CHECKPOINT, problem))
    elif not findings and copied < entries and not late:
        problem = f"it has {entries:,} entries, but {copied:,} in {copy.address}"
        problem = f"{problem}: an unfinished or cut copy"
        findings.append(Finding("comparison-missing", CHECKPOINT, problem))
    return LogComparison(entries, copied, tuple(findings))


def _open_log(
    store: Reader, keys: Sequence[VerifierKey] | None, findings: list[Finding]
) -> SignedLog | None:
    """Return the log of a store if its tiles lead to its root; otherwise add a finding."""
    code = "log-forged"
    try:
        log = open_log(store, keys)
        code, problem = "log-missing", "it has none, so nothing is signed there"
        if log is None and keys is None:
            return None
        if log is not None:
            code, problem = "log-altered", "its tiles do not lead to its root"
            if log.has_root():
                return log
    except (ProofError, MissingObject) as error:
        problem = str(error)
    findings.append(Finding(code, CHECKPOINT, f"{store.address}: {problem}"))
    return None


def _find_split(copy: Reader, ours: SignedLog, theirs: SignedLog) -> str:
    """Return a text on the first entry that differs; "" if one log is a prefix of the other."""
    here, there = ours.checkpoint, theirs.checkpoint
    if here.origin != there.origin:
        return f"it is the log {here.origin}, but {there.origin} in {copy.address}"
    shorter, longer = (ours, theirs) if here.size <= there.size else (theirs, ours)
    if longer.continues(shorter.checkpoint):
        return ""
    text = f"two histories were signed: it and that of {copy.address} differ"
    with suppress(ProofError, MissingObject):  # the tiles of hashes prove the split
        pairs = zip(ours.tree.entries(), theirs.tree.entries(), strict=False)
        for number, pair in enumerate(pairs):
            if pair[0] != pair[1]:
                first, second = (LogEntry.parse(entry).snapshot for entry in pair)
                return f"{text} from entry {number} on, for snapshot {first} and {second}"
    return text
