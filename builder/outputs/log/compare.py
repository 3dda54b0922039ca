"""Compares the log of a store with that of a copy.

The log of an older copy is a prefix of the store's. Two that differ are a split history, unless one
of them is damaged.
"""

from collections.abc import Sequence
from contextlib import suppress

from builder.outputs.log.entry import LogEntry
from builder.outputs.log.index import NEWEST, index_key, run_keys
from builder.outputs.log.note import ProofError, VerifierKey
from builder.outputs.log.tiles import CHECKPOINT, WIDTH, SignedLog, list_tiles, open_log, tile_key
from builder.outputs.output import CopyComparison, OutputComparison
from builder.store.findings import Finding
from builder.text import tally
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Reader


def compare_logs(comparison: CopyComparison) -> OutputComparison:
    """Compare the logs, and list what both stores should have of them (Output.compare)."""
    store, copy, findings = comparison.store, comparison.copy, list[Finding]()
    keys = None if comparison.keys is None else [*map(VerifierKey.parse, comparison.keys)]
    ours, theirs = (_open_log(each, keys, findings) for each in (store, copy))
    entries, copied = (log.checkpoint.size if log else 0 for log in (ours, theirs))
    problem = _find_split(copy, ours, theirs) if ours and theirs else ""
    if problem:
        findings.append(Finding("comparison-split", CHECKPOINT, problem))
    elif not findings and copied > entries:
        problem = f"it ends after {entries:,} entries, but {copied:,} in {copy.address}"
        problem = f"{problem}: it is old or was cut off"
        findings.append(Finding("comparison-missing", CHECKPOINT, problem))
    elif not findings and copied < entries and not comparison.late:
        problem = f"it has {entries:,} entries, but {copied:,} in {copy.address}"
        problem = f"{problem}: an unfinished or cut copy"
        findings.append(Finding("comparison-missing", CHECKPOINT, problem))
    is_older, is_same = copied < entries and not findings, entries == copied
    # A tile that a longer log completed is not listed.
    tiles = list_tiles(min(entries, copied))
    names = {tile_key(*tile) for tile in tiles if is_same or tile[2] == WIDTH}
    names |= {CHECKPOINT, NEWEST} if is_same else set()
    for where in map(index_key, comparison.snapshots):
        names.add(where)
        for each in (store, copy):
            with suppress(MissingObject, DamagedStore):  # not signed; damage is a difference
                names |= run_keys(each.read(where))
    count, lines = tally(entries, "entry", "entries"), []
    if is_older:
        lines = [f"the log of the copy is older: {copied:,} of {count}, which are the same"]
    elif entries and not findings:
        lines = [f"the logs have the same {count}"]
    document = {"log": {"entries": entries, "copied": copied}}
    return OutputComparison(frozenset(names), is_older, findings, lines, document)


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
