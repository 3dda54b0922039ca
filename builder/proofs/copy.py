"""Copy of the log to another store. The checkpoint is written last, so no copy leads its tiles."""

from collections.abc import Iterable
from dataclasses import dataclass

from builder.proofs.errors import ProofError
from builder.proofs.index import NEWEST, index_key, run_keys
from builder.proofs.signed_log import SignedLog, check_continuation, open_log
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

    Raises the errors of `check_target`, and DamagedStore if the source's log is damaged.
    """
    done = LogCopy()
    tag = target.tag(CHECKPOINT)
    log = check_target(source, target)
    if log is None:
        return done
    for level, number, width in list_tiles(log.checkpoint.size):
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
    _replace(target, CHECKPOINT, log.note.encode(), tag, done)
    try:
        newest = source.read(NEWEST)
    except MissingObject:
        return done  # the next publish writes it
    for key in sorted(run_keys(newest)):
        _put(target, key, source.read(key), done)
    _replace(target, NEWEST, newest, target.tag(NEWEST), done)
    return done


def check_target(source: Writer, target: Writer) -> SignedLog | None:
    """Return the log of the source, None without one; it must continue that of the target.

    A copy is evidence against a log that was cut off, or signed anew: so it is not overwritten.
    Raises DamagedStore if a log is damaged, and StoreError.
    """
    ours, theirs = _open(source), _open(target)
    try:
        check_continuation(ours, theirs, target.address)
    except ProofError as error:
        raise StoreError(
            f"{error}. Keep this copy, compare them by `sheaf verify --against`, and choose an "
            "empty place"
        ) from error
    return ours


def _open(store: Writer) -> SignedLog | None:
    try:
        return open_log(store, None)
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
