"""Move of a store of an earlier schema to another place, where it is upgraded."""

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from datetime import datetime

from builder.runtime import Advance
from builder.upgrade import documents
from functions.snapshot import layout
from functions.snapshot.errors import Conflict, MissingObject, StoreError
from functions.snapshot.store import Writer

_CHUNK = 1 << 20  # bytes


class OccupiedTarget(StoreError):
    """The target holds something other than a part of the source."""


def move(
    source: Writer,
    target: Writer,
    now: datetime,
    progress: Callable[[int], AbstractContextManager[Advance]],
) -> int:
    """Copy all objects of a store as they are, the pointer last; return how many were copied.

    The target's answers are valid as of `now` until a snapshot is published to it, as those of a
    copy. `progress` receives the number of bytes. Raises OccupiedTarget, NewerSchema and
    StoreError.
    """
    data = _read(source, layout.POINTER)
    found = documents.parse(data, layout.POINTER) if data else {}
    pointer = documents.convert_pointer(found) if found else None
    newest = pointer.newest() if pointer else None
    last = newest.snapshot if newest else 0
    if _read(target, layout.POINTER) is not None:
        _check_same(source, target, last)
        return 0
    wanted = {e.key: e.bytes for e in source.entries("") if _is_copied(e.key, last)}
    there = {entry.key: entry.bytes for entry in target.entries("")}
    if strange := sorted({*there} - {*wanted}):
        raise OccupiedTarget(f"{target.address} has {strange[0]}: choose an empty place")
    left = [key for key in wanted if there.get(key) != wanted[key]]
    with progress(sum(wanted[key] for key in left)) as advance:
        for key in left:
            _copy(source, target, key, advance)
    if pointer is not None:
        stands = replace(pointer, copied=pointer.copied or now)
        target.replace(layout.POINTER, documents.write_pointer(stands, found["schema"]), None)
    return len(left)


def _is_copied(key: str, last: int) -> bool:
    """Return whether an object belongs to the store up to snapshot `last`."""
    number = layout.snapshot_of(key)
    if number is not None and number > last:
        return False  # of an interrupted publish
    return not key.startswith((layout.POINTER, layout.TEMPORARY))


def _check_same(source: Writer, target: Writer, last: int) -> None:
    """Check that the target is the source, moved by an earlier run. Raises OccupiedTarget."""
    key = layout.manifest_key(last)
    data = _read(source, key)
    if data is None or _read(target, key) != data:
        raise OccupiedTarget(f"{target.address} has another store: choose an empty place")


def _copy(source: Writer, target: Writer, key: str, advance: Advance) -> None:
    target.remove(key)  # if it is there, its size differs
    try:
        with closing(source.open(key)) as stream, target.creating(key, source.size(key)) as sink:
            while chunk := stream.read(_CHUNK):
                sink.write(chunk)
                advance(len(chunk))
    except Conflict as error:
        raise OccupiedTarget(f"{target.address}: another process writes {key}") from error


def _read(store: Writer, key: str) -> bytes | None:
    try:
        return store.read(key)
    except MissingObject:
        return None
