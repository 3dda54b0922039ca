"""Checks of the dumps: each object that the index names exists and has its bytes."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime

from builder.outputs.dumps.clean import list_strays, read_superseded
from builder.outputs.dumps.keys import is_intact
from builder.outputs.dumps.listing import DumpState, list_parts
from builder.store.durable import digest_object
from builder.store.findings import Finding
from functions.snapshot import dumps
from functions.snapshot.dumps import DumpIndex, DumpPart, FormatDumps, StoredDump
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Reader, Writer

_ABSENT = "dumps/index.json names it, but it does not exist"


def dump_findings(
    store: Writer, pointer: Pointer, is_read: Callable[[str], bool], now: datetime
) -> Iterator[Finding]:
    """Yield what is wrong with the dumps; `is_read` tells by key which objects are read.

    Raises StoreError if the store cannot be read.
    """
    try:
        data = store.read(dumps.INDEX)
        index = DumpIndex.from_json(data)
    except MissingObject:
        return
    except DamagedStore as error:
        yield Finding("dump-altered", dumps.INDEX, str(error))
        return
    newest = pointer.newest()
    if newest is not None and index.snapshot < newest.snapshot:
        problem = f"it ends with snapshot {index.snapshot}, and the newest is {newest.snapshot}"
        yield Finding("dumps-behind", dumps.INDEX, problem)
    if left := set(index.removed).intersection(store.keys(dumps.FOLDER)):
        problem = f"{len(left):,} objects that it replaced are still there"
        yield Finding("dumps-behind", dumps.INDEX, problem)
    findings = [*_check_objects(store, index, is_read)]
    for name in read_superseded(store, now):
        if store.size(dumps.FOLDER + name) is None:
            problem = "dumps/superseded.json names it for readers that began with it"
            findings.append(Finding("dump-missing", dumps.FOLDER + name, problem))
    # What is missing may have been removed by a withdrawal that replaced the index meanwhile.
    is_current = store.read(dumps.INDEX) == data
    yield from (finding for finding in findings if is_current or finding.code != "dump-missing")
    try:
        strays = list_strays(store, DumpState.read(store), now)
    except (DamagedStore, MissingObject):
        return  # reported above
    for key in strays:
        yield Finding("orphan", key, "dumps/index.json does not name it")


def _check_objects(
    store: Writer, index: DumpIndex, is_read: Callable[[str], bool]
) -> Iterator[Finding]:
    sizes = {stored.key: stored.bytes for stored in store.entries(dumps.FOLDER)}
    for entry in index.formats.values():
        try:
            digest = entry.list.rpartition("-")[2].removesuffix(dumps.MANIFEST)
            if finding := _check_document(store, entry.list, digest, sizes):
                yield finding
            else:
                for dump in FormatDumps.from_json(store.read(dumps.FOLDER + entry.list)).all:
                    yield from _check_dump(store, dump, sizes, is_read)
        except MissingObject as error:  # it was there when objects were listed
            yield Finding("dump-missing", dumps.FOLDER + entry.list, str(error))


def _check_document(store: Reader, name: str, digest: str, sizes: dict[str, int]) -> Finding | None:
    """Return what is wrong with a list or manifest whose SHA-256 begins with `digest`."""
    key = dumps.FOLDER + name
    if key not in sizes:
        return Finding("dump-missing", key, _ABSENT)
    if not hashlib.sha256(store.read(key)).hexdigest().startswith(digest):
        return Finding("dump-altered", key, "its content differs from its SHA-256")
    return None


def _check_dump(
    store: Reader, dump: StoredDump, sizes: dict[str, int], is_read: Callable[[str], bool]
) -> Iterator[Finding]:
    if dump.has_manifest and (finding := _check_document(store, dump.name, dump.sha256, sizes)):
        yield finding
        return
    try:
        parts = list_parts(store, dump)
    except DamagedStore as error:
        yield Finding("dump-altered", dumps.INDEX, str(error))
        return
    for part in parts:
        yield from _check_part(store, part, sizes, is_read)


def _check_part(
    store: Reader, part: DumpPart, sizes: dict[str, int], is_read: Callable[[str], bool]
) -> Iterator[Finding]:
    key = dumps.FOLDER + part.name
    for named in (key, key + dumps.KEYS):
        if named not in sizes:
            yield Finding("dump-missing", named, _ABSENT)
    if key in sizes and sizes[key] != part.bytes:
        problem = f"it has {sizes[key]:,} bytes, but {part.bytes:,} in the index"
        yield Finding("dump-altered", key, problem)
    elif key in sizes and is_read(key) and digest_object(store, key)[0] != part.sha256:
        yield Finding("dump-altered", key, "its content differs from its SHA-256 in the index")
    key += dumps.KEYS
    if key in sizes and is_read(key) and not is_intact(store.read(key)):
        yield Finding("dump-altered", key, "its content differs from the SHA-256 at its end")
