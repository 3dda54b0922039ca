"""Packages of datasets: a version with its files, what its platform sent, and a description.

The files are below `data/`, what the platform sent is below `metadata/`, and an RO-Crate describes
both. The same package becomes a folder, a bag, or a version of an OCFL object.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote

from builder.exports import crate
from builder.exports.crate import Entity
from builder.exports.restore.dataset_paths import package_paths
from builder.exports.staging import PackageFile
from builder.obi import content
from builder.progress import ProgressBar
from builder.sources.datasets.strategies.keys import RECORD
from builder.sources.datasets.strategies.platform_answers import ANSWERS
from builder.sources.datasets.strategies.record import KeptRecord
from builder.text import visible
from functions.content import stored
from functions.content.protocols import ContentError
from functions.reading.repository import PublishedRecord
from functions.snapshot.errors import DamagedStore
from functions.snapshot.instant import from_digits
from functions.snapshot.store import Writer
from functions.store.slice import Slices

PAYLOAD = "data/"
"""Folder of the files of the dataset, which is that of a bag's payload (RFC 8493, 2.1.2)."""
METADATA = "metadata/"
"""Folder of what the platform sent, and of the record of the archiving."""

_NAME = re.compile(r"[^A-Za-z0-9.]+")
_LARGE = 64 << 20
"""Bytes of a file whose progress is shown."""
_ARCHIVEORG = "https://archive.org/download/"


@dataclass(frozen=True, slots=True)
class DatasetPackage:
    """A version of a dataset as a package. `elsewhere` counts files that are not in the store.

    `name` depends on the identifier and on the digests of all files. `archived` is when its last
    file was downloaded. `tags` are what the platform sent, and the RO-Crate.
    """

    identifier: str
    title: str
    version: str | None
    doi: str | None
    name: str
    archived: datetime
    data: tuple[PackageFile, ...]
    tags: tuple[PackageFile, ...]
    elsewhere: int

    @property
    def files(self) -> tuple[PackageFile, ...]:
        """All files, those of the dataset first."""
        return (*self.data, *self.tags)


def pack(
    record: PublishedRecord, slices: Slices, store: Writer, archiving: KeptRecord | None, by: str
) -> DatasetPackage:
    """Return the package of a record, with the bytes in `slices` and `store`.

    `archiving` is the record of that, if it is known, and `by` the name of the archive.
    """
    files: list[Mapping[str, Any]] = record.fields.get("files") or []
    own = [file for file in files if file.get("key")]
    paths = package_paths([file["path"] for file in own])
    data = tuple(
        PackageFile(
            PAYLOAD + paths[file["path"]],
            file["bytes"],
            file["sha256"],
            partial(_read_file, slices, record, file),
        )
        for file in own
    )
    metadata = tuple(_pack_metadata(store, archiving)) if archiving else ()
    dates = [file["terminal_dt"] for file in files if file.get("terminal_dt")]
    archived = from_digits(max(dates)) if dates else record.datestamp
    description = crate.describe(
        record.fields,
        record.identifier,
        (
            *(_describe_file(file, PAYLOAD + paths[file["path"]]) for file in own),
            *_list_elsewhere(record, files),
            *map(_describe_metadata, metadata),
        ),
        f"{archived:%Y-%m-%d}",
        by,
    )
    rows = [f"{file['path']} {file.get('sha256') or file.get('md5')}" for file in files]
    digest = hashlib.sha256("\n".join([record.identifier, *rows]).encode()).hexdigest()
    parts = (record.fields.get(name) for name in ("host", "id", "version"))
    head = _NAME.sub("-", "-".join(part for part in parts if part))[:100].strip("-.")
    return DatasetPackage(
        identifier=record.identifier,
        title=record.fields.get("title") or "A dataset",
        version=record.fields.get("version"),
        doi=record.fields.get("doi"),
        name=f"{head}-{digest[:12]}",
        archived=archived,
        data=data,
        tags=(*metadata, _pack_bytes(crate.FILE, description)),
        elsewhere=len(files) - len(own),
    )


def _read_file(slices: Slices, record: PublishedRecord, file: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the bytes of a file; a large one has a progress bar of its own.

    Raises DamagedStore, at the end if its digest is another.
    """
    size = file["bytes"]
    try:
        holding = stored.hold_file(record, file)
        with stored.open_stored(slices, holding, checked=True) as pieces:
            if size < _LARGE:
                yield from pieces
                return
            with ProgressBar(visible(file["path"]), size, " bytes") as advance:
                for piece in pieces:
                    yield piece
                    advance(len(piece))
    except ContentError as error:
        raise DamagedStore(f"{record.identifier}: {file['path']}: {error}") from error


def _pack_metadata(store: Writer, archiving: KeptRecord) -> Iterator[PackageFile]:
    """Yield the record of the archiving, and the answers of the platform that are there."""
    yield _pack_bytes(METADATA + RECORD, store.read(archiving.base + RECORD))
    for stored_object in archiving.record.objects:
        name = stored_object.key.rpartition("/")[2]
        if name.startswith(ANSWERS) and store.size(stored_object.key) is not None:
            read = partial(content.read_parts, store, stored_object.key, stored_object.sha256)
            yield PackageFile(METADATA + name, stored_object.bytes, stored_object.sha256, read)


def _pack_bytes(path: str, data: bytes) -> PackageFile:
    return PackageFile(path, len(data), hashlib.sha256(data).hexdigest(), partial(iter, [data]))


def _describe_file(file: Mapping[str, Any], path: str) -> Entity:
    return crate.describe_file(
        path,
        file.get("original") or file["path"],
        file["bytes"],
        file.get("sha256"),
        file.get("mimetype"),
        file.get("platform_url"),
    )


def _describe_metadata(file: PackageFile) -> Entity:
    name, media_type = (
        ("Record of the archiving", "application/json")
        if file.path == METADATA + RECORD
        else ("Answers of the platform", "application/warc")
    )
    return crate.describe_file(file.path, name, file.size, file.sha256, media_type)


def _list_elsewhere(
    record: PublishedRecord, files: Iterable[Mapping[str, Any]]
) -> Iterator[Entity]:
    """Yield files that archive.org keeps, by their addresses there."""
    item = record.fields.get("archiveorg_item")
    folder = f"{item}/{stored.BUNDLE}" if record.fields.get("bundle") else item
    for file in files:
        if item and not file.get("key"):
            yield _describe_file(file, _ARCHIVEORG + quote(f"{folder}/{file['path']}"))
