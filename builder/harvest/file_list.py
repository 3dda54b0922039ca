"""List of records from the data files of a snapshot, rendered here.

The list is that of ListRecords in the same snapshot, in the same order. What is read is checked:
the manifest against Identify, files by their names, row groups by their checksums.
"""

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from builder.harvest import file_rows
from builder.harvest.errors import FilesError
from builder.harvest.file_rows import RecordColumns
from builder.harvest.offer import FileOffer, check_root
from functions.config.configuration import Configuration
from functions.oai.answer import Answer, RecordList
from functions.oai.format import Formats
from functions.oai.render import check, reproduction
from functions.oai.render.pieces import NoColumnsError
from functions.oai.repository import PublishedRecord, RecordSelection
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore
from functions.snapshot.manifest import Leaf, Manifest, Span
from functions.snapshot.store import Reader
from functions.store.client import WebClient
from functions.store.connection import BucketConnection
from functions.store.slice import open_reader
from functions.store.store_reader import BucketReader

_MARK = b"\x00records\x00"
_FIRST, _MOST, _BYTES = 1024, 8192, 16 << 20
"""Records that are rendered at once: at first, at most, and for about so many bytes of XML."""
_LARGEST = 3_900_000
"""Bytes of a record up to which every server sends it."""
_DOCUMENT = 64 << 20
"""Bytes of a manifest or a leaf."""
_LEAVES = layout.SNAPSHOTS + "leaves/"


def never() -> bool:
    """Return False."""
    return False


@dataclass(frozen=True, slots=True)
class FileAccess:
    """How data files are read: settings and environment of this machine, and `jobs` processes.

    `stop` returns true once the harvest has to end; it is not for these processes.
    """

    settings: Configuration
    environment: Mapping[str, str]
    jobs: int
    stop: Callable[[], bool] = never


@dataclass(frozen=True, slots=True)
class RecordSource:
    """The snapshot of an offer, in a format; two are the same however they are read."""

    offer: FileOffer
    prefix: str
    access: FileAccess = field(compare=False)


class CheckedReader:
    """Reads a store and checks each data file by its name, each row group by its checksum.

    The checksums are in the manifest and its leaves, which their digests protect. Implements
    functions.snapshot.store.Reader. Every method raises DamagedStore besides.
    """

    def __init__(self, reader: Reader, manifest: Manifest) -> None:
        self._reader = reader
        self._checks: dict[str, Mapping[int, int | None]] = {}
        self._right: set[tuple[Path, int, int]] = set()
        self.open, self.close = reader.open, reader.close
        for leaf in manifest.leaves.values():
            self._note(leaf)

    @property
    def address(self) -> str:
        """The store's address."""
        return self._reader.address

    def read(self, key: str) -> bytes:
        """Return the whole object."""
        data = read_some(self._reader, key)
        if key.startswith(_LEAVES):
            self._note(Leaf.from_json(data))
        return data

    def _note(self, leaf: Leaf) -> None:
        for file in leaf.files:
            self._checks[file.key] = {group.offset: group.check for group in file.groups}

    def local(self, key: str, spans: Sequence[tuple[int, int]] | None = None) -> Path:
        """Return a file of the whole object."""
        path = self._reader.local(key)
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            seen = path, status.st_ino, status.st_mtime_ns
            if seen not in self._right:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                if digest[:32] != layout.digest_of(key):
                    raise DamagedStore(f"{self.address}/{key} does not match its name")
                self._right.add(seen)
        return path

    def parts(self, key: str, size: int, spans: Sequence[tuple[int, int]]) -> Sequence[Path]:
        """Return files that hold the spans, which are row groups."""
        known = self._checks.get(key, {})
        checks = [known.get(offset) for offset, _ in spans]
        if None in checks or 2 * sum(length for _, length in spans) > size:
            return [self.local(key)]
        paths = self._reader.parts(key, size, spans)
        each = paths if len(paths) == len(spans) else [paths[0]] * len(spans)
        for path, (offset, length), expected in zip(each, spans, checks, strict=True):
            with path.open("rb") as file:
                if _checksum(file, offset, length) != expected:
                    raise DamagedStore(f"{self.address}/{key} has a row group that was altered")
        return paths


def read_some(reader: Reader, key: str) -> bytes:
    """Return a document of a store that is not trusted. Raises FilesError if it is too large."""
    with reader.open(key) as file:
        data = file.read(_DOCUMENT + 1)
    if len(data) > _DOCUMENT:
        raise FilesError(f"{reader.address}/{key} is larger than {_DOCUMENT >> 20} MB")
    return data


def _checksum(file: BinaryIO, offset: int, length: int) -> int:
    file.seek(offset)
    return zlib.crc32(file.read(length))


class OfferedSnapshot:
    """A snapshot that is offered, and its records in a format. Raises FilesError and SheafError."""

    def __init__(self, source: RecordSource) -> None:
        self.offer = offer = source.offer
        self.prefix = source.prefix
        reader = self._open_reader(source.access)
        data = read_some(reader, layout.manifest_key(offer.snapshot))
        if hashlib.sha256(data).hexdigest() != offer.manifest:
            raise FilesError(f"{offer.root} has another manifest of snapshot {offer.snapshot}")
        self.manifest = Manifest.from_json(data)
        configuration = reproduction.read_settings(offer.settings)
        formats, self._renderer = check.open_formats(configuration)
        row = formats.get(self.prefix)
        own = Formats((row,)) if row else Formats(())
        told = reproduction.digests(configuration, own, self._renderer, offer.base_url)
        if row is None or told[self.prefix] != offer.rendering:
            raise FilesError(f"this version of Sheaf renders {self.prefix} in another way")
        self.format = row
        self._fields = self._renderer.fields(row)
        self.repository = DuckRepository(CheckedReader(reader, self.manifest))
        self._head, self._tail = self._frame()
        self._pieces = file_rows.split(self._renderer, row, "capture", offer.base_url)

    def close(self) -> None:
        """Close the database; the local files go with the process."""
        self.repository.close()

    def _open_reader(self, access: FileAccess) -> Reader:
        """Return a reader of the store. Raises FilesError, StoreError."""
        root, settings = self.offer.root, access.settings
        plain = check_root(root, self.offer.asked)
        if root.startswith(layout.S3_SCHEME):
            return open_reader(root, Path(), settings, access.environment)
        try:
            at = layout.parse_web(root, plain=plain)
        except ValueError as error:
            raise FilesError(f"the address of data files cannot be used: {error}") from None
        client = WebClient(at, BucketConnection.of(settings))
        return BucketReader(at, client, settings["store.cache"] << 20)

    def _frame(self) -> tuple[bytes, bytes]:
        empty = RecordList((), self.format, None, made=(_MARK,))
        answer = Answer(datetime.now(UTC), self.offer.base_url, (), empty)
        head, _, tail = self._renderer.document(answer).partition(_MARK)
        return head, tail

    def spans(self, selection: RecordSelection, rows: int) -> list[Span]:
        """Return the span of a selection in pieces of about `rows` records, cut at row groups."""
        whole = selection.span
        count = -(-self.repository.size(self.manifest, selection) // rows)
        if count < 2:
            return [whole]
        files = self.repository.catalogue.groups(self.manifest, "records", whole.first, whole.last)
        starts = sorted({int(str(one.first)) for _, groups in files for one in groups})
        cuts = starts[:: -(-len(starts) // count)][1:]
        firsts = [whole.first, *(cut for cut in cuts if cut > whole.first)]
        lasts = [*(first - 1 for first in firsts[1:]), whole.last]
        return [Span(*both) for both in zip(firsts, lasts, strict=True)]

    def batches(self, selection: RecordSelection) -> Iterator[RecordColumns]:
        """Yield the records of a selection. Raises FilesError for one that is too large."""
        since, many = self.manifest.since(self.prefix), _FIRST
        while not selection.is_empty:
            found = self.repository.page(
                self.manifest, selection, many, headers=False, fields=self._fields
            )
            if not found:
                return
            rows = self._rows(found, since)
            sizes = [*map(len, rows.texts)]
            if sizes and max(sizes) > _LARGEST:
                identifier = rows.identifiers[sizes.index(max(sizes))]
                raise FilesError(f"{identifier} may be too large for a page")
            yield rows
            selection = selection.behind(found[-1].position)
            many = max(1, min(_MOST, 2 * many, _BYTES * len(found) // (sum(sizes) + 1)))

    def _rows(self, found: Sequence[PublishedRecord], since: datetime | None) -> RecordColumns:
        if self._pieces is not None:
            with suppress(NoColumnsError):
                return file_rows.render(self._pieces, self._head, found, since)
        body = self._render(found, since)
        return file_rows.read(self._head, body, self._tail, found, since)

    def _render(self, found: Sequence[PublishedRecord], since: datetime | None) -> bytes:
        sheet = self._renderer.sheet(self.offer.base_url)
        sheet.take(RecordList(found, self.format, None, since=since))
        return b"".join(sheet.finish())


@lru_cache(maxsize=1)
def open_snapshot(source: RecordSource) -> OfferedSnapshot:
    """Return the snapshot of an offer in a format; one stays open in a process."""
    return OfferedSnapshot(source)
