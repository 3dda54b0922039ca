"""Copy of the log to another store. The checkpoint is written last, so no copy leads its tiles."""

from collections.abc import Iterable
from dataclasses import dataclass

from builder.proofs.checkpoint import open_checkpoint
from builder.proofs.errors import ProofError
from builder.proofs.index import NEWEST, index_key, run_keys
from builder.proofs.tiles import CHECKPOINT, WIDTH, list_tiles, tile_key
from functions.snapshot.errors import Conflict, DamagedStore, MissingObject, StoreError
from functions.snapshot.store import Writer


@dataclass(slots=True)
class LogCopy:
    """Counts of a copy: objects and bytes that were copied, and objects that were there."""

    objects: int = 0
    bytes: int = 0
    there: int = 0


def copy_log(source: Writer, target: Writer, snapshots: Iterable[int]) -> LogCopy:
    """Copy the log, with the indexes of these snapshots as far as they exist.

    Raises DamagedStore if the source's log is damaged, and StoreError if the target has more.
    """
    done = LogCopy()
    try:
        checkpoint = source.read(CHECKPOINT)
    except MissingObject:
        return done
    size = _size_of(source, checkpoint)
    if (tag := target.tag(CHECKPOINT)) and _size_of(target, target.read(CHECKPOINT)) > size:
        raise StoreError(f"the log of {target.address} has more entries: choose an empty place")
    for level, number, width in list_tiles(size):
        key = tile_key(level, number, width)
        try:
            data = source.read(key)
        except MissingObject as error:
            if width == WIDTH:
                raise DamagedStore(f"{error}, which is part of the log") from error
            key = tile_key(level, number)  # a later entry completed it
            data = source.read(key)
        _put(target, key, data, done)
    for number in snapshots:
        try:
            data = source.read(index_key(number))
        except MissingObject:
            continue  # it was not signed
        for key in sorted(run_keys(data)):
            _put(target, key, source.read(key), done)
        _put(target, index_key(number), data, done)
    _replace(target, CHECKPOINT, checkpoint, tag, done)
    newest = source.read(NEWEST)
    for key in sorted(run_keys(newest)):
        _put(target, key, source.read(key), done)
    _replace(target, NEWEST, newest, target.tag(NEWEST), done)
    return done


def _size_of(store: Writer, checkpoint: bytes) -> int:
    try:
        return open_checkpoint(checkpoint.decode("utf-8", "replace"), None).size
    except ProofError as error:
        raise DamagedStore(f"{CHECKPOINT} of {store.address}: {error}") from error


def _put(target: Writer, key: str, data: bytes, done: LogCopy) -> None:
    try:
        target.create(key, data)
    except Conflict:
        _replace(target, key, data, target.tag(key), done)
    else:
        done.objects += 1
        done.bytes += len(data)


def _replace(target: Writer, key: str, data: bytes, tag: str | None, done: LogCopy) -> None:
    if tag is not None and target.read(key) == data:
        done.there += 1
        return
    target.replace(key, data, tag)
    done.objects += 1
    done.bytes += len(data)
