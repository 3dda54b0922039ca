"""Compares a store with a copy of it: the objects that both should have, and their bytes.

Snapshots that one of them lacks are left out. What a copy may lack because it is older is counted,
and is no damage. Each store has to be verified for itself as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from builder.outputs import OUTPUTS
from builder.outputs.output import CopyComparison, OutputComparison
from builder.publish.copied_objects import LASTING, PLACES
from builder.runtime import Progress
from builder.store.durable import digest_object
from builder.store.findings import Finding
from builder.verify.choice import Sample, StorePart, choose_keys
from builder.verify.inventory import Inventory
from functions.snapshot.errors import MissingObject
from functions.snapshot.store import Writer


@dataclass(frozen=True, slots=True)
class Comparison:
    """Report: snapshots that both keep, objects that both should have, and what was read.

    `bytes` were read of each store. `behind` counts objects that the copy may lack yet.
    """

    snapshots: tuple[int, ...]
    objects: int
    read: int
    bytes: int
    behind: int
    outputs: tuple[OutputComparison, ...]
    findings: tuple[Finding, ...]


def compare(
    store: Writer,
    copy: Writer,
    clock: Callable[[], datetime],
    progress: Progress,
    choice: Sample | StorePart | None = None,
    keys: Sequence[str] | None = None,
) -> Comparison:
    """Compare the stores; with `choice`, the bytes of only some objects are read.

    `keys` must have signed the outputs of both; None checks no signature. `progress` receives the
    number of bytes to read of one of the stores. Raises StoreError.
    """
    ours, theirs = Inventory.take(store, clock()), Inventory.take(copy, clock())
    both = tuple(number for number in ours.numbers if number in theirs.numbers)
    late = max(ours.numbers, default=0) > max(theirs.numbers, default=0)
    comparison = CopyComparison(store, copy, both, late, keys)
    outputs = [output.compare(comparison) for output in OUTPUTS]
    named = (ours.names(both) | theirs.names(both)).union(*(result.names for result in outputs))
    here, there = _list_sizes(store, named), _list_sizes(copy, named)
    findings, behind = [finding for result in outputs for finding in result.findings], 0
    if not both:
        problem = f"it keeps no snapshot that {copy.address} keeps"
        findings.append(Finding("comparison-apart", store.address, problem))
    older = (
        output.copied for output, result in zip(OUTPUTS, outputs, strict=True) if result.is_older
    )
    lasting = (*LASTING, *chain.from_iterable(older))
    for key in sorted(here.keys() ^ there.keys()):
        holder, other = (store, copy) if key in here else (copy, store)
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
            try:
                first, _ = digest_object(store, key, advance)
                second, _ = digest_object(copy, key)
                if first != second:
                    problem = f"its SHA-256 is {first}, but {second} in {copy.address}"
                    findings.append(Finding("comparison-differs", key, problem))
            except MissingObject as error:
                problem = f"{error}; it was removed meanwhile"
                findings.append(Finding("comparison-missing", key, problem))
    return Comparison(both, len(common), len(chosen), size, behind, tuple(outputs), tuple(findings))


def _list_sizes(store: Writer, named: set[str]) -> dict[str, int]:
    """Return the sizes of the named objects that exist, and of all that no snapshot names."""
    entries = (entry for prefix in PLACES for entry in store.entries(prefix))
    return {e.key: e.bytes for e in entries if e.key in named or e.key.startswith(LASTING)}
