"""Dumps: all records of a snapshot, or those since an instant, as compressed files.

A dump is a folder of parts of bounded size, and of manifest.json with their digests. Records come
by position, each item once, with its state in that snapshot. So a dump since the instant of an
earlier one, applied to it by identifier, gives the dump of the later snapshot.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from functions.archive import zstd
from functions.oai.repository import PublishedRecord, RecordSelection, Repository
from functions.snapshot import instant
from functions.snapshot.manifest import Manifest, Span

SCHEMA = 1
"""Version of manifest.json."""
MANIFEST = "manifest.json"
CODINGS = {"zstd": ".zst", "gzip": ".gz"}
"""Compressions, with the endings of names."""
_BATCH = 2_000
_GZIP_LEVEL = 5

Frame = Callable[[Sequence[PublishedRecord]], bytes]
"""Returns the bytes of records; those of a part are the bytes of its batches in order."""


@dataclass(frozen=True, slots=True)
class DumpPart:
    """A part: name, records, of them deleted ones, bytes as stored, and their SHA-256."""

    name: str
    records: int
    deleted: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class DumpFormat:
    """How records become bytes: `frame` takes up to `batch` records at a time.

    `name` and `ending` are parts of file names.
    """

    name: str
    ending: str
    frame: Frame
    batch: int = _BATCH


def select_records(
    manifest: Manifest,
    kinds: Sequence[str],
    of_set: str | None,
    since: datetime | None,
    prefix: str,
) -> RecordSelection:
    """Return the records of a dump; `since` is the first datestamp, in the format `prefix`."""
    chosen = manifest.select(since, None, prefix)
    span = Span(chosen[0].first, chosen[-1].last) if chosen else Span(1, 0)
    return RecordSelection(tuple(kinds), span, of_set)


def write_parts(
    repository: Repository,
    manifest: Manifest,
    selection: RecordSelection,
    form: DumpFormat,
    folder: Path,
    coding: str,
    most: int,
    advance: Callable[[int], object],
) -> list[DumpPart]:
    """Write a selection in parts of up to `most` records; the last one may be empty if it is alone.

    The same snapshot gives the same bytes. Raises StoreError and OSError.
    """
    found: list[DumpPart] = []
    batches = _read(repository, manifest, selection, min(form.batch, most), most)
    batch = next(batches, None)
    while batch is not None or not found:
        path = folder / f"{form.name}-{len(found):05}{form.ending}{CODINGS[coding]}"
        records = deleted = 0
        with path.open("wb") as file, _compress(file, coding) as out:
            while batch is not None and records + len(batch) <= most:
                out.write(form.frame(batch))
                records += len(batch)
                deleted += sum(record.deleted for record in batch)
                advance(len(batch))
                batch = next(batches, None)
            if not records:
                out.write(form.frame(()))
        with path.open("rb") as made:
            digest = hashlib.file_digest(made, "sha256").hexdigest()
        found.append(DumpPart(path.name, records, deleted, path.stat().st_size, digest))
    return found


def write_manifest(
    folder: Path, manifest: Manifest, parts: Sequence[DumpPart], told: Mapping[str, Any]
) -> None:
    """Write manifest.json; `told` are its members besides those of the snapshot and the parts."""
    whole = {
        "schema": SCHEMA,
        "namespace": manifest.namespace,
        "store": manifest.store,
        "snapshot": manifest.snapshot,
        "effective": instant.to_text(manifest.effective),
        **told,
        "records": sum(part.records for part in parts),
        "deleted": sum(part.deleted for part in parts),
        "parts": [asdict(part) for part in parts],
    }
    text = json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
    (folder / MANIFEST).write_text(text, "utf-8")


def frame_lines(records: Sequence[PublishedRecord]) -> bytes:
    """Return records as JSON lines, in UTF-8; fields without a value are left out."""
    return b"".join(_line(record) for record in records)


def _read(
    repository: Repository, manifest: Manifest, selection: RecordSelection, batch: int, most: int
) -> Iterator[Sequence[PublishedRecord]]:
    """Yield the records in batches, of which each part of `most` records has whole ones."""
    left = most
    while not selection.is_empty:
        some = repository.page(manifest, selection, min(batch, left), headers=False)
        if not some:
            return
        yield some
        left = left - len(some) or most
        selection = selection.behind(some[-1].position)


def _compress(file: BinaryIO, coding: str) -> BinaryIO:
    if coding == "zstd":
        return zstd.open_compressor(file)
    return cast(
        BinaryIO,
        gzip.GzipFile(filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=file, mtime=0),
    )


def _line(record: PublishedRecord) -> bytes:
    told: dict[str, Any] = {
        "identifier": record.identifier,
        "datestamp": instant.to_text(record.datestamp),
        "kind": record.kind,
        "sets": list(record.sets),
    }
    if record.deleted:
        told["deleted"] = True
    else:
        told |= {name: value for name, value in record.fields.items() if value is not None}
    return json.dumps(told, ensure_ascii=False, default=_plain).encode() + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return instant.to_text(value) if value.tzinfo else f"{value:%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} has no form in JSON")
