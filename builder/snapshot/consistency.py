"""Consistency checks within and between a store's pointer, manifests and leaves.

Pure: checks objects that were read, without access to the store.
"""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain, pairwise

from builder.store.findings import Finding
from functions.snapshot import figure_tables, instant, layout, schema
from functions.snapshot.manifest import DataFile, Key, Leaf, LeafReference, Manifest
from functions.snapshot.pointer import Pointer, PointerEntry

DISTINCT = frozenset({"records", layout.SINGLES, "copies", "sets", "dead", "hosts", "domains"})
"""Tables without two rows that have the same bounding columns (schema.KEY)."""
# Tables whose leaves all have a span.
_BY_RUN = frozenset({"records", "copies", "dead", "originals", "revisits", "words", *layout.PLAIN})
_AS_A_WHOLE = frozenset(
    {"records", "sets", *figure_tables.TABLES}
)  # the others are sorted by run or by leaf


def of_pointer(pointer: Pointer, now: datetime) -> Iterator[Finding]:
    """Check the pointer alone."""
    newest, key = pointer.newest(), layout.POINTER
    for entry in pointer.entries:
        if pointer.is_retired(entry.snapshot):
            yield Finding("pointer-wrong", key, f"snapshot {entry.snapshot} is retired as well")
    ends = [0, *(number for span in pointer.retired for number in span)]
    if any(later < earlier for earlier, later in pairwise(ends)):
        yield Finding("pointer-wrong", key, "its retired snapshots are not in order")
    if newest is None:  # before the first publish is complete
        if pointer.retired:
            yield Finding("pointer-wrong", key, "it names no snapshot, but some are retired")
        return
    if any(number > newest.snapshot for number in ends):
        yield Finding("pointer-wrong", key, f"snapshots after {newest.snapshot} are retired")
    if not pointer.settled and newest.effective <= now:
        yield Finding(
            "pointer-unsettled",
            key,
            f"snapshot {newest.snapshot} may have been published after its instant",
        )
    if pointer.expiry is not None and pointer.expiry.until <= now:
        until = instant.to_text(pointer.expiry.until)
        yield Finding("expiry-unfinished", key, f"an expiry should have ended by {until}")


def kept_snapshots(pointer: Pointer, skipped: Sequence[int]) -> list[int]:
    """Return the numbers of snapshots that must exist; `skipped` is from the newest manifest."""
    newest = pointer.newest()
    if newest is None:
        return []
    gone = set(skipped)
    return [
        number
        for number in range(1, newest.snapshot + 1)
        if number not in gone and not pointer.is_retired(number)
    ]


def of_manifest(
    number: int, manifest: Manifest, entries: Sequence[PointerEntry]
) -> Iterator[Finding]:
    """Check one manifest alone, and against the pointer's entries."""
    problems = chain(
        _root(number, manifest, entries),
        _sequences(manifest),
        _tables(manifest),
        _leaves(manifest),
    )
    for problem in problems:
        yield Finding("manifest-wrong", layout.manifest_key(number), problem)


def _root(number: int, manifest: Manifest, entries: Sequence[PointerEntry]) -> Iterator[str]:
    if manifest.snapshot != number:
        yield f"it declares snapshot {manifest.snapshot}"
    for entry in entries:
        if entry.snapshot == number and entry.effective != manifest.effective:
            yield (
                f"it is in effect from {instant.to_text(manifest.effective)}, but from "
                f"{instant.to_text(entry.effective)} in the pointer"
            )
    if any(skipped >= number for skipped in manifest.skipped):
        yield "it skips itself or a later snapshot"


def _sequences(manifest: Manifest) -> Iterator[str]:
    last, effective = 0, None
    for count, s in enumerate(manifest.sequences, 1):
        if s.number != count:
            yield f"sequence {s.number} is in place of {count}"
        if s.first != last + 1 or s.last < s.first:
            yield f"sequence {s.number} has positions {s.first} to {s.last} after {last}"
        if effective is not None and s.effective < effective:
            yield f"sequence {s.number} takes effect before the one before it"
        if any(n < 0 for n in s.records.values()) or sum(s.records.values()) > s.last - s.first + 1:
            yield f"sequence {s.number} counts records without positions"
        last, effective = s.last, s.effective
    if effective is not None and effective > manifest.effective:
        yield "its last sequence takes effect after it"
    for prefix, making in manifest.formats.items():
        if making.snapshot > manifest.snapshot or (making.since or manifest.effective) > (
            manifest.effective
        ):
            yield f"its format {prefix} takes effect after it"


def _tables(manifest: Manifest) -> Iterator[str]:
    starts, ends = {s.first for s in manifest.sequences}, {s.last for s in manifest.sequences}
    for table, references in manifest.tables.items():
        if table not in schema.TABLES:
            yield f"it has an unknown table {table}"
            continue
        for reference in references:
            if not (
                isinstance(reference.key, str)
                and reference.key == layout.leaf_key(layout.digest_of(reference.key) or "0" * 32)
            ):
                yield f"{table} has a leaf at {reference.key!r}"
        spans = [r.span for r in references if r.span is not None]
        lacking = table in _BY_RUN and len(spans) < len(references)
        if lacking or not all(
            isinstance(span, tuple) and [*map(type, span)] == [int, int] for span in spans
        ):
            yield f"a run of {table} has no first and last position"
        elif not all(a in starts and b in ends and a <= b for a, b in spans):
            yield f"a run of {table} does not consist of complete publishes"
        elif any(b[0] <= a[1] for a, b in pairwise(dict.fromkeys(spans))):
            yield f"the runs of {table} are not in order"


def _leaves(manifest: Manifest) -> Iterator[str]:
    named = {reference.key for references in manifest.tables.values() for reference in references}
    for key, leaf in manifest.leaves.items():
        if key not in named:
            yield f"it describes {key}, which none of its tables names"
        elif not is_named_by(leaf.to_json(), key):
            yield f"its entry for the leaf {key} does not match the leaf's name"


def succession(older: Manifest, newer: Manifest) -> Iterator[Finding]:
    """Check that a snapshot follows from an earlier one."""
    key = layout.manifest_key(newer.snapshot)
    if newer.effective <= older.effective:
        yield Finding("manifest-wrong", key, f"it takes effect before snapshot {older.snapshot}")
    if newer.namespace != older.namespace:
        yield Finding("manifest-wrong", key, f"its namespace is {newer.namespace}")
    if newer.store_of(older.snapshot) != older.store:
        yield Finding("manifest-wrong", key, f"it belongs to another store than {older.snapshot}")
    if newer.prefix != older.prefix and older.prefix:
        yield Finding("manifest-wrong", key, f"its templates' identifiers begin {newer.prefix}")
    if newer.run < older.run:
        yield Finding("manifest-wrong", key, f"it shows no run after {newer.run}")
    if len(newer.sequences) < len(older.sequences):
        yield Finding("manifest-wrong", key, f"it lacks sequences of snapshot {older.snapshot}")
    for before, after in zip(older.sequences, newer.sequences, strict=False):
        moved = before.effective != after.effective
        # A snapshot that came too late for its instant gets a later one.
        if moved and before.effective == older.effective < after.effective:
            moved = False
        if (before.first, before.last) != (after.first, after.last) or moved:
            yield Finding(
                "manifest-wrong",
                key,
                f"sequence {before.number} differs from that of snapshot {older.snapshot}",
            )


def of_leaf(table: str, reference: LeafReference, leaf: Leaf) -> Iterator[Finding]:
    """Check a leaf against its reference, and its row groups' order."""
    for problem in (*_reference(reference, leaf), *_files(table, reference, leaf.files)):
        yield Finding("leaf-wrong", reference.key, problem)


def is_of(table: str, file: DataFile) -> bool:
    """Return whether the file's key has the form of the table's keys."""
    digest = layout.digest_of(file.key)
    return digest is not None and file.key == layout.data_key(table, digest)


def is_named_by(data: bytes, key: str) -> bool:
    """Return whether the object's key contains the hash of its data."""
    return hashlib.sha256(data).hexdigest()[:32] == layout.digest_of(key)


def _reference(reference: LeafReference, leaf: Leaf) -> Iterator[str]:
    groups = [group for file in leaf.files for group in file.groups]
    if not groups:
        yield "it describes no rows"
        return
    described = {
        "rows": sum(file.rows for file in leaf.files),
        "files": len(leaf.files),
        "bytes": sum(file.bytes for file in leaf.files),
        "first": groups[0].first,
        "last": groups[-1].last,
    }
    for name, value in described.items():
        if getattr(reference, name) != value:
            yield f"{name} are {value!r}, but {getattr(reference, name)!r} in the manifest"


def _files(table: str, reference: LeafReference, files: Sequence[DataFile]) -> Iterator[str]:
    for file in files:
        if not is_of(table, file):
            yield f"{file.key} is not a file of {table}"
        if any(group.rows < 1 for group in file.groups):
            yield f"{file.key} has an empty row group"
    bounds = [(group.first, group.last) for file in files for group in file.groups]
    if not _ascending(table, bounds):
        yield f"its row groups are not in the order of {table}"
    span = reference.span
    if table == "records" and span is not None and bounds:
        first, last = bounds[0][0], bounds[-1][1]
        if not span[0] <= _number(first) <= _number(last) <= span[1]:
            yield f"its positions are outside of its run, {span[0]} to {span[1]}"


def of_table(
    snapshot: int, table: str, leaves: Sequence[tuple[LeafReference, Leaf]]
) -> Iterator[Finding]:
    """Check the order of a table's leaves: within each run, or in the whole table."""
    for (before, _), (after, _) in pairwise(leaves):
        same_run = before.span is not None and before.span == after.span
        bounds = [(before.first, before.last), (after.first, after.last)]
        if (table in _AS_A_WHOLE or same_run) and not _ascending(table, bounds):
            problem = f"{after.key} of {table} is out of order"
            yield Finding("manifest-wrong", layout.manifest_key(snapshot), problem)


def _ascending(table: str, bounds: Sequence[tuple[Key, Key]]) -> bool:
    try:
        return all(first <= last for first, last in bounds) and all(  # type: ignore[operator]
            a < b if table in DISTINCT else a <= b  # type: ignore[operator]
            for (_, a), (b, _) in pairwise(bounds)
        )
    except TypeError:
        return False


def _number(key: Key) -> int:
    return key if isinstance(key, int) else -1
