"""Records of what is kept: one JSON document a place, written last.

What has no record is unfinished and told to nobody. A record says what came of archiving, and of
which objects it is made, so that whoever reads it can tell whether they are as they were.
"""

import dataclasses
import hashlib
import json
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from builder.filesets.item import (
    ArchiveStrategyResult,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.filesets.place import RECORD
from builder.filesets.seam import FilesetError
from functions.snapshot.errors import Conflict, MissingObject
from functions.snapshot.store import Reader, Writer

SCHEMA = 1
"""Of the document; a later one may hold what this program cannot know."""
_CHUNK = 1 << 20

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kept:
    """An object of the store: its key, bytes, and SHA-256 in hexadecimal digits."""

    key: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What was archived of a dataset, with the status of the first time, and its objects.

    `archived` has no files that the platform withholds: those may be others each time.
    """

    platform_name: str
    platform_domain: str | None = None
    platform_id: str | None = None
    version: str | None = None
    archived: ArchiveStrategyResult
    objects: tuple[Kept, ...] = ()


def of(
    item: FilesetPlatformItem, archived: ArchiveStrategyResult, objects: tuple[Kept, ...]
) -> Record:
    """Return the record of what was just archived of an item."""
    kept = tuple(file for file in archived.manifest if file.status != "withheld")
    return Record(
        platform_name=item.platform_name,
        platform_domain=item.platform_domain,
        platform_id=item.platform_id,
        version=item.version,
        archived=replace(archived, manifest=kept),
        objects=tuple(sorted(objects, key=lambda one: one.key)),
    )


def written(record: Record) -> bytes:
    """Return the document: JSON in UTF-8, the same bytes for the same record."""
    document = {"schema": SCHEMA, **_plain(record)}
    return (json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def parse(data: bytes, key: str) -> Record:
    """Return what the document at `key` says. Raises FilesetError (error-store-verify)."""
    try:
        document = json.loads(data)
        if not isinstance(document, dict) or document.pop("schema", None) != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        return _built(Record, document)
    except (ValueError, TypeError, RecursionError) as error:
        raise FilesetError("error-store-verify", f"{key} is no record: {error}") from error


def read(store: Reader, base: str) -> Record | None:
    """Return the record of the place `base`, None where it is unfinished.

    Raises FilesetError (error-store-verify) and StoreError.
    """
    try:
        return parse(store.read(base + RECORD), base + RECORD)
    except MissingObject:
        return None


def write(store: Writer, base: str, record: Record) -> Record:
    """Write the record of a place, all of whose objects are there and verified; return it.

    If another run was first, its record is returned, for the bytes are the same. Raises
    FilesetError (mismatch-existing) where they are not, and StoreError.
    """
    try:
        store.create(base + RECORD, written(record))
    except Conflict:
        if (first := read(store, base)) is None:
            raise
        mine = {(f.path, f.size, f.sha256) for f in record.archived.manifest}
        if mine != {(f.path, f.size, f.sha256) for f in first.archived.manifest}:
            detail = f"{base} was archived by another run meanwhile, with other bytes"
            raise FilesetError("mismatch-existing", detail) from None
        return first
    return record


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
        return _altered(record, item, missing, altered)
    if missing:
        return None
    return told(replace(record.archived, status="success-existing"), item)


def state(
    store: Writer,
    record: Record,
    *,
    check: str = "digest",
    go_on: Callable[[], None] = lambda: None,
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the keys of the record's objects that are missing, and of those that are altered."""
    missing, altered = set(), set()
    for kept in record.objects:
        found = {entry.key: entry.bytes for entry in store.entries(kept.key)}.get(kept.key)
        if found is None:
            missing.add(kept.key)
        elif found != kept.bytes:
            altered.add(kept.key)
        elif check == "digest":
            try:
                if sha256(store, kept.key, go_on) != kept.sha256:
                    altered.add(kept.key)
            except MissingObject:
                missing.add(kept.key)
    return frozenset(missing), frozenset(altered)


def told(archived: ArchiveStrategyResult, item: FilesetPlatformItem) -> ArchiveStrategyResult:
    """Return the result with the files that the platform withholds now, in the item's order."""
    by_path = {file.path: file for file in (*item.withheld, *archived.manifest)}
    order = [file.path for file in item.manifest or () if file.path in by_path]
    rest = [path for path in by_path if path not in set(order)]
    return replace(archived, manifest=tuple(by_path[path] for path in (*order, *rest)))


def succeeded(item: FilesetPlatformItem, strategy: str) -> str:
    """Return the status of an item all of whose given files were archived by a strategy."""
    if item.withheld:
        return "success-partial"
    return "success-file" if strategy.endswith("-file") else "success"


def sha256(store: Reader, key: str, go_on: Callable[[], None] = lambda: None) -> str:
    """Return the SHA-256 of an object, which is read with little of it in memory."""
    digest = hashlib.sha256()
    for chunk in chunks(store, key, go_on):
        digest.update(chunk)
    return digest.hexdigest()


def chunks(store: Reader, key: str, go_on: Callable[[], None] = lambda: None) -> Iterator[bytes]:
    """Yield an object's bytes, a little at a time. Raises MissingObject and StoreError."""
    with store.open(key) as stream:
        while chunk := stream.read(_CHUNK):
            go_on()
            yield chunk


def _altered(
    record: Record, item: FilesetPlatformItem, missing: frozenset[str], altered: frozenset[str]
) -> ArchiveStrategyResult:
    def status(file: FilesetManifestFile) -> str:
        if file.key in altered:
            return "mismatch-existing"
        return "pending" if file.key in missing else "exists"

    files = tuple(replace(f, status=status(f)) for f in record.archived.manifest)
    detail = f"{', '.join(sorted(altered))}: altered since it was archived; remove it to have it "
    return told(
        replace(
            record.archived,
            status="mismatch-existing",
            manifest=files,
            detail=detail + "fetched again",
        ),
        item,
    )


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, without fields that are as they are by default."""
    if dataclasses.is_dataclass(value):
        return {
            f.name: _plain(one)
            for f in dataclasses.fields(value)
            if not _is_default(f, one := getattr(value, f.name))
        }
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    return value


def _is_default(spec: "dataclasses.Field[Any]", value: Any) -> bool:
    if spec.default_factory is not dataclasses.MISSING:
        return bool(value == spec.default_factory())
    return spec.default is not dataclasses.MISSING and bool(value == spec.default)


def _built(kind: type[T], given: Any) -> T:
    """Return a dataclass of `kind` out of its JSON. Raises ValueError or TypeError."""
    if not isinstance(given, dict):
        raise ValueError(f"a {kind.__name__} is no object")
    hints = get_type_hints(kind)
    if unknown := sorted(given.keys() - hints.keys()):
        raise ValueError(f"a {kind.__name__} has no {unknown[0]}")
    return kind(**{name: _value(hints[name], name, value) for name, value in given.items()})


def _value(hint: Any, name: str, value: Any) -> Any:
    kinds = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for kind in kinds:
        if value is None and kind is type(None):
            return None
        if dataclasses.is_dataclass(kind) and value is not None:
            return _built(kind, value)  # type: ignore[arg-type]
        if get_origin(kind) is tuple and isinstance(value, list):
            return tuple(_value(get_args(kind)[0], name, one) for one in value)
        plain = get_origin(kind) or kind
        if plain is Mapping and isinstance(value, dict):
            return value
        if isinstance(plain, type) and isinstance(value, plain) and not isinstance(value, bool):
            return value
    raise ValueError(f"{name} is not what it should be")
