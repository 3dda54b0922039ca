"""Records of archived datasets: one JSON document for each key prefix, written last.

Without a record the dataset is unfinished and no result mentions it. A record holds the result and
the objects with their digests, so that readers can verify them.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any

from builder.http.secrets import clean_document
from builder.sources.datasets import status
from builder.sources.datasets.item import (
    NOT_TRIED,
    ArchiveStrategyResult,
    Cdx,
    FileMeta,
    FilesetManifestFile,
    FilesetPlatformItem,
    Terminal,
)
from builder.sources.datasets.manifest_file import meta
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.result import to_json
from builder.sources.datasets.strategies import platform_answers
from builder.sources.datasets.strategies.keys import BUNDLE, RECORD, place, version_prefix
from builder.sources.datasets.strategies.keys import prefix_of as place_of
from builder.store.documents import build, write_indented
from functions.snapshot.errors import Conflict, MissingObject
from functions.snapshot.store import Reader, Writer

SCHEMA = 1
"""Schema version of the document; readers reject other versions."""
_KEY = attrgetter("key")
Files = Iterable[FilesetManifestFile]


@dataclass(frozen=True, slots=True)
class KeptObject:
    """An object of the store: its key, bytes, and SHA-256 in hexadecimal digits."""

    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepingRecord:
    """The first result of archiving a dataset, and its objects.

    `archived` omits files that were not fetched at all, because these may change. `described` has
    title, creators, licences, DOI and version with their sources (platform_answers). It is empty in
    records from before it existed.
    """

    platform_name: str
    platform_domain: str | None = None
    platform_id: str | None = None
    version: str | None = None
    archived: ArchiveStrategyResult
    objects: tuple[KeptObject, ...] = ()
    described: Mapping[str, Any] = field(default_factory=dict)


def of_files(
    item: FilesetPlatformItem,
    strategy: str,
    manifest: Files,
    objects: Iterable[KeptObject] = (),
    *,
    terminal: Terminal | None = None,
    cdx: Cdx | None = None,
    bundle: FileMeta | None = None,
    location: str | None = None,
    archiveorg_item: str | None = None,
) -> KeepingRecord:
    """Create the record of an item that was archived; its status follows from those of its files.

    `terminal` and `cdx` are those of the only file, or of the `bundle`.
    """
    files = tuple(manifest)
    alone = files[0] if strategy.endswith("-file") else None
    archived = ArchiveStrategyResult(
        ingest_strategy=strategy,
        status=_status(item, strategy, files),
        manifest=tuple(file for file in files if file.status not in NOT_TRIED),
        file_file_meta=meta(alone) if alone else None,
        file_terminal=terminal if alone else None,
        file_cdx=cdx if alone else None,
        bundle_file_meta=bundle,
        bundle_terminal=terminal if bundle else None,
        bundle_cdx=cdx if bundle else None,
        bundle_archiveorg_path=BUNDLE if bundle and archiveorg_item else None,
        archiveorg_item_name=archiveorg_item,
        location=location,
    )
    return KeepingRecord(
        platform_name=item.platform_name,
        platform_domain=item.platform_domain,
        platform_id=item.platform_id,
        version=item.version,
        archived=archived,
        objects=tuple(sorted(objects, key=_KEY)),
    )


def serialize(record: KeepingRecord) -> bytes:
    """Return the document: JSON in UTF-8, the same bytes for the same record."""
    return write_indented({"schema": SCHEMA, **clean_document(to_json(record))}) + b"\n"


def parse(data: bytes, key: str) -> KeepingRecord:
    """Parse the document at `key`. Raises FilesetError (error-store-verify)."""
    try:
        document = json.loads(data)
        if not isinstance(document, dict) or document.pop("schema", None) != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        if unknown := document.keys() - {field.name for field in fields(KeepingRecord)}:
            raise ValueError(f"it has no {min(unknown)}")
        return build(KeepingRecord, document)
    except (ValueError, RecursionError) as error:
        raise FilesetError("error-store-verify", f"{key} is not a valid record: {error}") from error


def read(store: Reader, base: str) -> KeepingRecord | None:
    """Return the record below the prefix `base`, None if the dataset is unfinished.

    Raises FilesetError (error-store-verify) and StoreError.
    """
    try:
        return parse(store.read(base + RECORD), base + RECORD)
    except MissingObject:
        return None


def locate(store: Writer, item: FilesetPlatformItem) -> str:
    """Return the key prefix below which the item is archived, or is to be archived.

    It is that of its manifest. If that has no record, it is that of an earlier manifest of the same
    version with fewer files, as long as those are still listed with the same sizes and digests. So
    files that become available later join the others. Raises FilesetError (error-store-verify).
    """
    base = place(item)
    if store.tag(base + RECORD) is not None:
        return base
    listed = {file.path: file for file in item.files}
    earlier: list[tuple[int, str]] = []
    for key in store.keys(
        version_prefix(item.platform_name, item.platform_domain, item.platform_id, item.version)
    ):
        if key.endswith(f"/{RECORD}") and (record := read(store, key.removesuffix(RECORD))):
            archived = archived_files(record)
            if all(p in listed and _agrees(listed[p], file) for p, file in archived.items()):
                earlier.append((len(archived), key.removesuffix(RECORD)))
    return max(earlier)[1] if earlier else base


def archived_files(record: KeepingRecord | None) -> dict[str, FilesetManifestFile]:
    """Return the files that a record has the bytes of, by path."""
    files = record.archived.manifest if record else ()
    return {f.path: f for f in files if status.of(f.status or "").hit}


def split(
    item: FilesetPlatformItem, paths: Collection[str]
) -> tuple[FilesetPlatformItem, FilesetPlatformItem]:
    """Return the item with its files at the paths alone, and with its other files alone."""
    inside = tuple(file for file in item.files if file.path in paths)
    outside = tuple(file for file in item.files if file.path not in paths)
    return replace(item, manifest=inside), replace(item, manifest=outside)


def lacking(record: KeepingRecord, item: FilesetPlatformItem) -> tuple[FilesetManifestFile, ...]:
    """Return the files that the platform gives and the record does not have."""
    archived = archived_files(record)
    return tuple(file for file in item.files if file.path not in archived)


def _agrees(listed: FilesetManifestFile, file: FilesetManifestFile) -> bool:
    """Return whether the platform lists the very bytes of an archived file, as far as it says."""
    names = ("size", "md5", "sha1", "sha256", "sha512")
    facts = [(getattr(listed, name), getattr(file, name)) for name in names]
    return any(now for now, _ in facts) and all(now == then for now, then in facts if now and then)


def begun_by(store: Writer, base: str) -> str | None:
    """Return the strategy that archived files below `base`, if all its objects are there.

    What the dataset lacks is archived by the same strategy, whatever is configured now. Raises
    FilesetError (error-store-verify) and StoreError.
    """
    record = read(store, base)
    if record is None or state(store, record, check="size")[0]:
        return None
    return several(record.archived.ingest_strategy)


def several(strategy: str) -> str:
    """Return the strategy for several files that keeps them as the given one keeps them."""
    return strategy.removesuffix("-file") + "-fileset" if strategy.endswith("-file") else strategy


def of_strategy(store: Writer, base: str, strategy: str) -> KeepingRecord | None:
    """Return the record of an incomplete dataset if that strategy made it, or None.

    Another strategy's record is removed, because objects that it names are missing; archiving
    starts again. Raises FilesetError (error-store-verify) if no object is missing: another run
    completed it.
    """
    record = read(store, base)
    if record is None or record.archived.ingest_strategy == strategy:
        return record
    is_whole = bool(record.objects) and not any(state(store, record, check="size"))
    if is_whole and several(record.archived.ingest_strategy) == several(strategy):
        return record
    if is_whole:
        raise _rival_error(base)
    store.remove(base + RECORD)
    return None


def _rival_error(base: str) -> FilesetError:
    return FilesetError("error-store-verify", f"another run archived {base} at the same time")


def extend(
    store: Writer,
    base: str,
    first: KeepingRecord,
    item: FilesetPlatformItem,
    later: Sequence[FilesetManifestFile],
    objects: Sequence[KeptObject] = (),
) -> KeepingRecord:
    """Add what a later run archived, in `objects`, to the record below `base`, and return it.

    Files that failed again have the status of the later run, but are not written for that alone.
    Raises FilesetError (error-store-verify) if another run changed the record, and StoreError.
    """
    tag = store.tag(base + RECORD)
    had = archived_files(first)
    files = {file.path: file for file in (*first.archived.manifest, *later)} | had
    manifest = tuple(file for file in files.values() if file.status not in NOT_TRIED)
    by_key = {stored.key: stored for stored in (*objects, *first.objects)}
    strategy = first.archived.ingest_strategy
    archived = replace(first.archived, manifest=manifest)
    if len(manifest) > 1 and strategy.endswith("-file"):
        archived = replace(
            archived,
            ingest_strategy=several(strategy),
            file_file_meta=None,
            file_terminal=None,
            file_cdx=None,
            location=base if strategy == "s3-file" else archived.location,
        )
    archived = replace(archived, status=_status(item, archived.ingest_strategy, manifest))
    record = replace(first, archived=archived, objects=tuple(sorted(by_key.values(), key=_KEY)))
    if archived_files(record).keys() == had.keys():
        # Whose object is gone is not archived now; but what it was stays in the record.
        gone = {f.path: f for f in later if f.path in had and f.status in status.FAIL_ALONE}
        manifest = tuple(gone.get(file.path, file) for file in manifest)
        now = _status(item, archived.ingest_strategy, manifest)
        return replace(record, archived=replace(archived, manifest=manifest, status=now))
    _verify_sizes(store, objects)
    if read(store, base) != first:
        raise _rival_error(base)
    record = _add_answers(store, base, record, item)
    try:
        store.replace(base + RECORD, serialize(record), tag)
    except Conflict as error:
        raise _rival_error(base) from error
    return record


def write(
    store: Writer, base: str, record: KeepingRecord, item: FilesetPlatformItem
) -> KeepingRecord:
    """Write the record of a dataset whose objects are all stored and verified; return it.

    What the platform sent of the item is stored first. If another run was first with the same
    bytes, its record is returned. Other objects below the prefix, left by interrupted or different
    runs, are removed. Raises FilesetError (mismatch-existing) if the bytes differ,
    (error-store-verify) if an object was removed meanwhile, and StoreError.
    """
    first = None
    _verify_sizes(store, record.objects)
    record = _add_answers(store, base, record, item)
    try:
        store.create(base + RECORD, serialize(record))
    except Conflict:
        if (first := read(store, base)) is None:
            raise
        mine = {(f.path, f.size, f.sha256) for f in record.archived.manifest}
        if mine != {(f.path, f.size, f.sha256) for f in first.archived.manifest}:
            detail = f"another run archived {base} at the same time, with other bytes"
            raise FilesetError("mismatch-existing", detail) from None
        lost_race = set(map(_KEY, record.objects)) - set(map(_KEY, first.objects))
        store.remove(*(key for key in lost_race if not key.startswith(base)))
        record = first
    named = {base + RECORD, *map(_KEY, record.objects)}
    there = {entry.key for entry in store.entries(base)}
    lost = sorted(key for key in named - there if key.startswith(base))
    if lost and first is None:
        store.remove(base + RECORD)
        raise FilesetError("error-store-verify", f"another run removed {lost[0]} at the same time")
    store.remove(*(there - named))
    return record


def _verify_sizes(store: Writer, objects: Iterable[KeptObject]) -> None:
    """Check that the store lists what was written. Raises FilesetError (error-store-verify)."""
    for key, is_whole in _check_sizes(store, objects, lambda: None):
        if not is_whole:
            detail = f"{key} is missing, or has another size than was written"
            raise FilesetError("error-store-verify", detail)


def _add_answers(
    store: Writer, base: str, record: KeepingRecord, item: FilesetPlatformItem
) -> KeepingRecord:
    if not item.sent:
        return record
    name, data = platform_answers.pack(item)
    with contextlib.suppress(Conflict):  # the name depends on the bytes
        store.create(base + name, data)
    answers = KeptObject(base + name, len(data), hashlib.sha256(data).hexdigest())
    objects = tuple(sorted({*record.objects, answers}, key=_KEY))
    return replace(record, objects=objects, described=platform_answers.describe(item))


def forget(store: Writer, key: str) -> None:
    """Remove an object below a dataset's prefix that no record names; no result mentions it.

    Raises FilesetError (error-store-verify) if another run has written the record meanwhile.
    """
    base = place_of(key) or ""
    if read(store, base) is not None:
        raise _rival_error(base)
    store.remove(key)


def judge(
    record: KeepingRecord,
    item: FilesetPlatformItem,
    missing: Collection[str],
    altered: Collection[str],
    *,
    place: Callable[[FilesetManifestFile], str | None] = lambda file: file.key,
    detail: str = "altered since it was archived, not overwritten; remove it to fetch it again",
) -> ArchiveStrategyResult | None:
    """Return an archived result by the places that are missing or altered; None to fetch files.

    The status is success-existing, with the first manifest, or mismatch-existing if a place was
    altered. `place` returns that of a file, and `detail` introduces the altered ones.
    """
    if not altered:
        if missing or lacking(record, item):
            return None
        return add_withheld(replace(record.archived, status="success-existing"), item)
    archived = archived_files(record)

    def state_of(file: FilesetManifestFile) -> str | None:
        if file.path not in archived:
            return file.status
        at = place(file)
        return "mismatch-existing" if at in altered else "pending" if at in missing else "exists"

    files = tuple(replace(f, status=state_of(f)) for f in record.archived.manifest)
    listed = f"{detail}: {', '.join(sorted(altered))}"
    result = replace(record.archived, status="mismatch-existing", manifest=files, detail=listed)
    return add_withheld(result, item)


def state(
    store: Writer,
    record: KeepingRecord,
    *,
    check: str = "digest",
    go_on: Callable[[], None] = lambda: None,
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the keys of the record's missing objects and of its altered objects.

    `check` selects how objects are compared: by digest, which reads them, or by size. `go_on` is
    called now and then, and may raise.
    """
    look = _read if check == "digest" else _check_sizes
    missing, altered = set(), set()
    for key, is_it in look(store, record.objects, go_on):
        if is_it is None:
            name = key.removeprefix(place_of(key) or "")
            # What a platform sent once is not to be had again.
            if not name.startswith(platform_answers.ANSWERS):
                missing.add(key)
        elif not is_it:
            altered.add(key)
    return frozenset(missing), frozenset(altered)


def _read(
    store: Writer, objects: Iterable[KeptObject], go_on: Callable[[], None]
) -> Iterator[tuple[str, bool | None]]:
    """Yield each key and whether the object's digest matches; None if it is missing."""
    for stored in objects:
        digest = hashlib.sha256()
        try:
            for chunk in chunks(store, stored.key, go_on):
                digest.update(chunk)
        except MissingObject:
            yield stored.key, None
        else:
            yield stored.key, digest.hexdigest() == stored.sha256


def _check_sizes(
    store: Writer, objects: Iterable[KeptObject], go_on: Callable[[], None]
) -> Iterator[tuple[str, bool | None]]:
    """Yield each key and whether the object's size matches; None if it is missing."""
    listings: dict[str, dict[str, int]] = {}
    for stored in objects:
        go_on()
        if (base := place_of(stored.key)) is None:
            size = store.size(stored.key)
        else:
            if base not in listings:
                listings[base] = {entry.key: entry.bytes for entry in store.entries(base)}
            size = listings[base].get(stored.key)
        yield stored.key, None if size is None else size == stored.bytes


def add_withheld(
    archived: ArchiveStrategyResult, item: FilesetPlatformItem
) -> ArchiveStrategyResult:
    """Add the files that the platform withholds now, in the item's order, and judge all of them."""
    by_path = {file.path: file for file in (*item.withheld, *archived.manifest)}
    order = [file.path for file in item.manifest or () if file.path in by_path]
    rest = [path for path in by_path if path not in set(order)]
    archived = replace(archived, manifest=tuple(by_path[path] for path in (*order, *rest)))
    name = archived.status
    if status.of(name).hit:
        states = [file.status for file in archived.manifest]
        existing = name == "success-existing"
        name = status.of_dataset(archived.ingest_strategy, states, existing=existing)
    return replace(archived, status=name)


def _status(item: FilesetPlatformItem, strategy: str, files: Files) -> str:
    """Return the status of an item whose available files were all archived by a strategy."""
    return status.of_dataset(strategy, [file.status for file in (*item.withheld, *files)])


def chunks(store: Reader, key: str, go_on: Callable[[], None] = lambda: None) -> Iterator[bytes]:
    """Yield an object's bytes in chunks. Raises MissingObject and StoreError."""
    with store.open(key) as stream:
        while chunk := stream.read(1 << 20):
            go_on()
            yield chunk


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """A record, and the key prefix that it is below."""

    base: str
    record: KeepingRecord


def find_record(store: Writer, fields: Mapping[str, Any]) -> KeptRecord | None:
    """Return the record with all the files in the document of a dataset, if it exists.

    It also has files that failed, or that were archived later. Without objects of its own (a WARC,
    archive.org), the prefix is looked for among those of the version. Raises FilesetError
    (error-store-verify) and StoreError.
    """
    files = fields.get("files") or ()
    wanted = {(file["path"], file.get("sha256")) for file in files}
    bases = {place_of(file["key"]) or "" for file in files if file.get("key")} - {""}
    if not bases:
        names = (fields[name] for name in ("platform", "host", "id", "version"))
        keys = store.keys(version_prefix(*names))
        bases = {key.removesuffix(RECORD) for key in keys if key.endswith(f"/{RECORD}")}
    for base in sorted(bases):
        record = read(store, base)
        if record and wanted and wanted <= {(f.path, f.sha256) for f in record.archived.manifest}:
            return KeptRecord(base, record)
    return None
