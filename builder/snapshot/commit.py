"""Commit of a snapshot: the manifest gets its number and instant, and the pointer is moved to it.

The pointer must be written before the instant at which the snapshot takes effect. The pointer is
first written as unsettled. Its writer then checks the clock again and settles it. If the pointer
was written too late, readers may already have answered from the old snapshot as of that instant.
Then a later instant is chosen: by the same process or, if that has ended, by the next process that
finds the pointer unsettled.

If two publishers race, the first to replace the pointer wins. The other gets Conflict, and
builder.snapshot.transaction builds its change again on the winner's snapshot.
"""

import contextlib
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from builder.runtime import Runtime
from builder.snapshot import recovery, views
from builder.snapshot.expiry import complete
from functions.snapshot import instant, layout, seal
from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.snapshot.manifest import Leaf, Manifest
from functions.snapshot.pointer import Pointer, PointerEntry
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue

_FARTHEST = timedelta(hours=2)  # publish.lead is an hour at most
_LEAST_BYTES = 40
"""Bytes that a data file or a row group takes in a leaf, at least."""
_LONG_WAIT = 60
"""Seconds beyond the lead from which a publish announces that it waits."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A complete manifest that lacks only its number and instant.

    Sequences and formats whose instant is `since` or later take effect with this snapshot. `keys`
    are the objects that were written for it. `catalogue` has the leaves that were read or written.
    `before` is the last snapshot, None before the first.
    """

    manifest: Manifest
    since: datetime
    keys: tuple[str, ...]
    catalogue: Catalogue
    before: Manifest | None


def commit(
    store: Writer, runtime: Runtime, pointer: Pointer, tag: str | None, ready: Ready, lead: int
) -> Manifest:
    """Write the manifest, move the pointer, and wait until the snapshot is in effect.

    The change was built on `pointer`, whose tag was `tag`. The witness is written only after
    the pointer was in place before its instant. Raises Conflict if another process published
    meanwhile or removed an object that this snapshot needs.
    """
    base = pointer.newest()
    mine: list[PointerEntry] = []  # entries that this process wrote
    if tag is None:
        # From now on, a missing pointer means that the pointer was lost.
        pointer = replace(pointer, store=ready.manifest.store)
        tag = store.replace(layout.POINTER, pointer.to_json(), None)
    skipped: list[int] = []
    number = base.snapshot if base else 0
    while True:
        newest = pointer.newest()
        number += 1
        now = runtime.clock()
        effective = _choose_instant(now, lead, newest)
        manifest = _stamp(ready, number, effective, skipped, runtime.publisher)
        _announce(runtime, newest, effective, lead)
        if not _claim(store, ready, manifest, tag):
            skipped.append(number)  # left by an interrupted publish
            continue
        lead *= 2  # for the next try, if this one comes too late
        if runtime.clock() >= effective:
            skipped.append(number)
            continue
        entry = PointerEntry(number, effective)
        keys = (*ready.keys, layout.views_key(number), layout.manifest_key(number))
        mine.append(entry)
        try:
            pointer, tag = _move_pointer(store, runtime, pointer, tag, entry, keys, manifest.store)
        except Conflict:
            later = _find_successor(store, mine)
            if later is None:
                raise
            return _wait_for_effect(runtime, later)
        if runtime.clock() < effective:
            break
    # If this fails, the snapshot is in effect anyway; the next change gives it a new instant.
    with contextlib.suppress(StoreError):
        settle(store, pointer, tag)
        remove_leftovers(store, skipped)
    return _wait_for_effect(runtime, manifest)


def _announce(
    runtime: Runtime, newest: PointerEntry | None, effective: datetime, lead: int
) -> None:
    """Announce a wait much longer than the lead, with its reason and the remedy."""
    wait = (effective - runtime.clock()).total_seconds()
    if newest is None or wait < lead + _LONG_WAIT:
        return
    runtime.say(
        f"this publish waits {wait / 60:.0f} minutes, until {instant.to_text(effective)}: "
        f"snapshot {newest.snapshot} takes effect just before that. The clock of its publisher "
        "was ahead, this clock is behind, or its publish.lead is long. Once the instant of this "
        "snapshot is shown, Ctrl-C ends the wait: the snapshot still takes effect "
        "(docs/operations/operate.md, Clocks)"
    )


def _wait_for_effect(runtime: Runtime, manifest: Manifest) -> Manifest:
    when = manifest.effective
    runtime.say(f"snapshot {manifest.snapshot} takes effect at {instant.to_text(when)}")
    runtime.sleep(max(0.0, (when - runtime.clock()).total_seconds()))
    return manifest


def _find_successor(store: Writer, mine: Collection[PointerEntry]) -> Manifest | None:
    """Return the newest manifest if one of `mine` was published and another process built on it.

    This happens if the response to our write was lost, or if our pointer came too late.
    """
    catalogue = Catalogue(store)
    pointer = catalogue.pointer()
    newest = pointer.newest()
    if newest is None or not set(mine) & set(pointer.entries):
        return None
    return catalogue.manifest(newest.snapshot)


def remove_leftovers(store: Writer, numbers: Iterable[int]) -> None:
    """Remove the files of snapshots that never took effect and never will."""
    for number in numbers:
        store.remove(layout.manifest_key(number), layout.views_key(number))


def _choose_instant(now: datetime, lead: int, newest: PointerEntry | None) -> datetime:
    """Return a whole second at least `lead` ahead and later than every earlier instant.

    Raises StoreError if the newest instant is so far ahead that one of the clocks must be wrong.
    """
    chosen = datetime.fromtimestamp(math.ceil(now.timestamp()) + lead, UTC)
    if newest is not None and newest.effective > now + _FARTHEST:
        raise StoreError(
            f"snapshot {newest.snapshot} takes effect at {instant.to_text(newest.effective)}, but "
            f"it is {instant.to_text(now)} now: the clock of its publisher or this clock is wrong "
            "(see docs/operations/operate.md, Clocks)"
        )
    if newest is not None and chosen <= newest.effective:
        chosen = newest.effective + timedelta(seconds=1)
    return chosen


def _stamp(
    ready: Ready, number: int, effective: datetime, skipped: list[int], publisher: str
) -> Manifest:
    """Return the manifest as snapshot `number`; its new sequences and formats get the instant."""
    return replace(
        ready.manifest,
        snapshot=number,
        effective=effective,
        sequences=tuple(
            seal.replace(s, effective=effective) if s.effective >= ready.since else s
            for s in ready.manifest.sequences
        ),
        skipped=(*ready.manifest.skipped, *skipped),
        publisher=publisher,  # so another process's manifest of the same second is not taken for it
        formats={
            prefix: seal.replace(m, since=effective, snapshot=number)
            if m.since is not None and m.since >= ready.since
            else m
            for prefix, m in ready.manifest.formats.items()
        },
    )


def _claim(store: Writer, ready: Ready, manifest: Manifest, tag: str | None) -> bool:
    """Write the snapshot's views and manifest; return False if other files have their keys.

    Raises Conflict if a leaf is gone and the pointer's tag has changed.
    """
    number = manifest.snapshot
    try:
        statements = views.store_views(ready.catalogue, manifest, ready.before)
    except MissingObject as error:
        if store.tag(layout.POINTER) == tag:
            raise
        raise Conflict("an expiry removed objects that this snapshot needs") from error
    leaves = inline_leaves(manifest, ready.catalogue)
    whole = replace(manifest, leaves=leaves, views=views.digest(statements))
    documents = {
        layout.views_key(number): statements.encode(),
        layout.manifest_key(number): whole.to_json(),
    }
    return all(_create(store, key, data) for key, data in documents.items())


def inline_leaves(manifest: Manifest, catalogue: Catalogue) -> dict[str, Leaf]:
    """Return the leaves inlined in the manifest: of each served table the small ones that fit.

    So the runs of later publishes cost no further request.
    """
    leaves: dict[str, Leaf] = {}
    left = layout.INLINED
    for table in layout.SERVED:
        for reference in sorted(manifest.tables.get(table, ()), key=lambda r: (r.rows, r.key)):
            groups = reference.rows // layout.group_rows(table)
            if _LEAST_BYTES * (reference.files + groups) > left:
                break  # not read, because it does not fit
            leaf = catalogue.leaf(reference)
            size = len(leaf.to_json())
            if size > left:
                break
            leaves[reference.key] = leaf
            left -= size
    return leaves


def instant_line(when: datetime) -> bytes:
    """Return the content of `settled` beside a snapshot that takes effect then."""
    return f"{instant.to_text(when)}\n".encode()


def _create(store: Writer, key: str, data: bytes) -> bool:
    """Return whether the object has this content now: not if another process wrote it before."""
    try:
        store.create(key, data)
    except Conflict:
        try:
            return store.read(key) == data
        except MissingObject:
            return False
    return True


def _move_pointer(
    store: Writer,
    runtime: Runtime,
    pointer: Pointer,
    tag: str | None,
    entry: PointerEntry,
    keys: tuple[str, ...],
    store_id: str,
) -> tuple[Pointer, str]:
    """Move the pointer to `entry`; return it and its tag. Raises Conflict.

    A process that settles or trims the pointer, or expires snapshots, is not a conflict. After any
    expiry has ended, the pointer is still moved if two conditions hold: the newest snapshot is the
    one that this snapshot was built on, and the objects of this snapshot still exist.
    """
    while True:
        target = pointer.move_to(entry, runtime.clock(), store_id)
        try:
            return target, store.replace(layout.POINTER, target.to_json(), tag)
        except Conflict:
            moved, tag = complete(store, runtime)
            if moved.newest() != pointer.newest():
                raise
            if not all(store.tag(key) for key in keys):
                raise
            pointer = moved


def settle(store: Writer, pointer: Pointer, tag: str | None) -> None:
    """Record that the pointer was in time, unless another process has moved it on.

    It is recorded in the witness and beside the snapshot, where it remains if the pointer is lost.
    """
    recovery.write_witness(store, pointer)
    newest = pointer.newest()
    if newest is not None and not pointer.settled:
        _create(store, layout.settled_key(newest.snapshot), instant_line(newest.effective))
    while pointer.newest() == newest and not pointer.settled:
        try:
            store.replace(layout.POINTER, replace(pointer, settled=True).to_json(), tag)
            return
        except Conflict:
            tag = store.tag(layout.POINTER)
            pointer = Catalogue(store).pointer()
