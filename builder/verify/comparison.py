"""Compares a store with a copy of it: the objects that both should have, and their bytes.

Snapshots that one of them lacks are left out. The log is compared entry by entry. What a copy may
lack because it is older is counted, and is no damage. Each store has to be verified for itself as
well.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from builder.filesets.strategies.replicate import PREFIXES
from builder.obi import key as obi
from builder.proofs.comparison import LogComparison, compare_logs, list_indexes
from builder.proofs.index import NEWEST
from builder.proofs.note import VerifierKey
from builder.proofs.tiles import LOG
from builder.runtime import Progress
from builder.store.durable import read_chunks
from builder.store.findings import Finding
from builder.verify.choice import Sample, StorePart, choose_keys
from builder.verify.inventory import Inventory
from functions.snapshot import layout
from functions.snapshot.errors import MissingObject
from functions.snapshot.store import Reader, Writer

_SNAPSHOTS = (layout.RECORDS, layout.SNAPSHOTS, LOG)
_LASTING = (obi.ROOT, *PREFIXES)
"""Prefixes of objects that no snapshot names, and that never change."""


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
    named = ours.names(both) | theirs.names(both)
    late = max(ours.numbers, default=0) > max(theirs.numbers, default=0)
    log = compare_logs(store, copy, keys, late=late)
    named |= list_indexes(store, both) | list_indexes(copy, both)
    if log.entries == log.copied:
        named.add(NEWEST)
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
    found = {
        entry.key: entry.bytes
        for prefix in _SNAPSHOTS
        for entry in store.entries(prefix)
        if entry.key in named
    }
    return found | {e.key: e.bytes for prefix in _LASTING for e in store.entries(prefix)}


def _compare_bytes(store: Reader, copy: Reader, key: str) -> Iterator[Finding]:
    try:
        ours, theirs = _digest(store, key), _digest(copy, key)
    except MissingObject as error:
        yield Finding("comparison-missing", key, f"{error}; it was removed meanwhile")
        return
    if ours != theirs:
        problem = f"its SHA-256 is {ours}, but {theirs} in {copy.address}"
        yield Finding("comparison-differs", key, problem)


def _digest(store: Reader, key: str) -> str:
    digest = hashlib.sha256()
    with store.open(key) as source:
        for chunk in read_chunks(source, key):
            digest.update(chunk)
    return digest.hexdigest()
