"""Records of what is kept: one JSON document a place, written last.

What has no record is unfinished and told to nobody. A record says what came of archiving, and of
which objects it is made, so that whoever reads it can tell whether they are as they were.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from builder.filesets.codec import build, plain
from builder.filesets.item import (
    ArchiveStrategyResult,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.filesets.protocols import FilesetError
from builder.filesets.strategies.keys import RECORD
from builder.filesets.strategies.keys import of as place_of
from functions.snapshot.errors import Conflict, MissingObject
from functions.snapshot.store import Reader, Writer

SCHEMA = 1
"""Of the document; a later one may hold what this program cannot know."""
_CHUNK = 1 << 20
_ALTERED = "altered since it was archived, left as it is; remove it to have it fetched again"


@dataclass(frozen=True, slots=True)
class KeptObject:
    """An object of the store: its key, bytes, and SHA-256 in hexadecimal digits."""

    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepingRecord:
    """What was archived of a dataset, with the status of the first time, and its objects.

    `archived` has no files that the platform withholds: those may be others each time.
    """

    platform_name: str
    platform_domain: str | None = None
    platform_id: str | None = None
    version: str | None = None
    archived: ArchiveStrategyResult
    objects: tuple[KeptObject, ...] = ()


def of(
    item: FilesetPlatformItem, archived: ArchiveStrategyResult, objects: tuple[KeptObject, ...]
) -> KeepingRecord:
    """Return the record of what was just archived of an item."""
    kept = tuple(file for file in archived.manifest if file.status != "withheld")
    return KeepingRecord(
        platform_name=item.platform_name,
        platform_domain=item.platform_domain,
        platform_id=item.platform_id,
        version=item.version,
        archived=replace(archived, manifest=kept),
        objects=tuple(sorted(objects, key=lambda one: one.key)),
    )


def serialize(record: KeepingRecord) -> bytes:
    """Return the document: JSON in UTF-8, the same bytes for the same record."""
    document = {"schema": SCHEMA, **plain(record)}
    text = json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    return text.encode("utf-8", "backslashreplace")  # half characters, as JSON escapes them


def parse(data: bytes, key: str) -> KeepingRecord:
    """Return what the document at `key` says. Raises FilesetError (error-store-verify)."""
    try:
        document = json.loads(data)
        if not isinstance(document, dict) or document.pop("schema", None) != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        return build(KeepingRecord, document)
    except (ValueError, TypeError, RecursionError) as error:
        raise FilesetError("error-store-verify", f"{key} is no record: {error}") from error


def read(store: Reader, base: str) -> KeepingRecord | None:
    """Return the record of the place `base`, None where it is unfinished.

    Raises FilesetError (error-store-verify) and StoreError.
    """
    try:
        return parse(store.read(base + RECORD), base + RECORD)
    except MissingObject:
        return None


def of_strategy(store: Writer, base: str, strategy: str) -> KeepingRecord | None:
    """Return the record of a place of which objects are missing, if that strategy made it.

    Another strategy's is removed: what it told of is not there, and the place begins anew. Raises
    FilesetError (error-store-verify) where all of it is there: another run was at it meanwhile.
    """
    if (record := read(store, base)) is None or record.archived.ingest_strategy == strategy:
        return record
    if record.objects and not any(state(store, record, check="size")):
        raise FilesetError("error-store-verify", f"another run archived {base} meanwhile")
    store.remove(base + RECORD)
    return None


def write(store: Writer, base: str, record: KeepingRecord) -> KeepingRecord:
    """Write the record of a place, all of whose objects are there and verified; return it.

    If another run was first, its record is returned, for the bytes are the same. What lies there
    besides, of runs that did not end or went another way, is removed. Raises FilesetError
    (mismatch-existing) where the bytes are not the same, (error-store-verify) where an object went
    meanwhile, and StoreError.
    """
    first = None
    try:
        store.create(base + RECORD, serialize(record))
    except Conflict:
        if (first := read(store, base)) is None:
            raise
        mine = {(f.path, f.size, f.sha256) for f in record.archived.manifest}
        if mine != {(f.path, f.size, f.sha256) for f in first.archived.manifest}:
            detail = f"{base} was archived by another run meanwhile, with other bytes"
            raise FilesetError("mismatch-existing", detail) from None
        record = first
    named = {base + RECORD, *(kept.key for kept in record.objects)}
    there = {entry.key for entry in store.entries(base)}
    lost = sorted(key for key in named - there if key.startswith(base))
    if lost and first is None:
        store.remove(base + RECORD)
        raise FilesetError("error-store-verify", f"{lost[0]} was removed by another run meanwhile")
    store.remove(*(there - named))
    return record


def forget(store: Writer, base: str, key: str) -> None:
    """Remove an object of a place that no record names, for it was told to nobody.

    Raises FilesetError (error-store-verify) where another run has recorded the place meanwhile.
    """
    if read(store, base) is not None:
        raise FilesetError("error-store-verify", f"another run archived {base} meanwhile")
    store.remove(key)


def existing(
    store: Writer,
    base: str,
    item: FilesetPlatformItem,
    *,
    check: str = "digest",
    go_on: Callable[[], None] = lambda: None,
) -> ArchiveStrategyResult | None:
    """Return what is kept at a place, if all of it is there; its strategy may be any.

    `check` is by what an object is told to be as it was: digest, for which it is read, or size.
    The status is success-existing, with the manifest of the first time, or mismatch-existing where
    an object was altered. `go_on` is called now and then, and may raise. Raises FilesetError and
    StoreError.
    """
    if (record := read(store, base)) is None:
        return None
    missing, altered = state(store, record, check=check, go_on=go_on)
    if altered:
        return _mismatch(record, item, missing, altered)
    if missing:
        return None
    return add_withheld(replace(record.archived, status="success-existing"), item)


def state(
    store: Writer,
    record: KeepingRecord,
    *,
    check: str = "digest",
    go_on: Callable[[], None] = lambda: None,
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the keys of the record's objects that are missing, and of those that are altered."""
    look = _read if check == "digest" else _check_sizes
    missing, altered = set(), set()
    for key, is_it in look(store, record.objects, go_on):
        if is_it is None:
            missing.add(key)
        elif not is_it:
            altered.add(key)
    return frozenset(missing), frozenset(altered)


def _read(
    store: Writer, objects: Iterable[KeptObject], go_on: Callable[[], None]
) -> Iterator[tuple[str, bool | None]]:
    """Yield keys with whether the object has the digest, None where it is missing."""
    for kept in objects:
        digest = hashlib.sha256()
        try:
            for chunk in chunks(store, kept.key, go_on):
                digest.update(chunk)
        except MissingObject:
            yield kept.key, None
        else:
            yield kept.key, digest.hexdigest() == kept.sha256


def _check_sizes(
    store: Writer, objects: Iterable[KeptObject], go_on: Callable[[], None]
) -> Iterator[tuple[str, bool | None]]:
    """Yield the same by sizes alone."""
    found: dict[str, dict[str, int]] = {}
    for kept in objects:
        go_on()
        if (base := place_of(kept.key)) is None:
            size = store.size(kept.key)
            yield kept.key, None if size is None else size == kept.bytes
            continue
        if base not in found:
            found[base] = {entry.key: entry.bytes for entry in store.entries(base)}
        size = found[base].get(kept.key)
        yield kept.key, None if size is None else size == kept.bytes


def add_withheld(
    archived: ArchiveStrategyResult, item: FilesetPlatformItem
) -> ArchiveStrategyResult:
    """Return the result with the files that the platform withholds now, in the item's order."""
    by_path = {file.path: file for file in (*item.withheld, *archived.manifest)}
    order = [file.path for file in item.manifest or () if file.path in by_path]
    rest = [path for path in by_path if path not in set(order)]
    return replace(archived, manifest=tuple(by_path[path] for path in (*order, *rest)))


def success_status(item: FilesetPlatformItem, strategy: str) -> str:
    """Return the status of an item all of whose given files were archived by a strategy."""
    if item.withheld:
        return "success-partial"
    return "success-file" if strategy.endswith("-file") else "success"


def chunks(store: Reader, key: str, go_on: Callable[[], None] = lambda: None) -> Iterator[bytes]:
    """Yield an object's bytes, a little at a time. Raises MissingObject and StoreError."""
    with store.open(key) as stream:
        while chunk := stream.read(_CHUNK):
            go_on()
            yield chunk


def _mismatch(
    record: KeepingRecord,
    item: FilesetPlatformItem,
    missing: frozenset[str],
    altered: frozenset[str],
) -> ArchiveStrategyResult:
    def status(file: FilesetManifestFile) -> str:
        if file.key in altered:
            return "mismatch-existing"
        return "pending" if file.key in missing else "exists"

    files = tuple(replace(f, status=status(f)) for f in record.archived.manifest)
    keys = ", ".join(sorted(altered))
    return add_withheld(
        replace(
            record.archived,
            status="mismatch-existing",
            manifest=files,
            detail=f"{_ALTERED}: {keys}",
        ),
        item,
    )
