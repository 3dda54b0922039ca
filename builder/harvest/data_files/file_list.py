"""List of records from the data files of a snapshot, rendered here.

The list is that of ListRecords in the same snapshot, in the same order. What is read is checked:
the manifest against Identify, files by their names, row groups by their checksums.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from builder.harvest.data_files import file_rows
from builder.harvest.data_files.offer import FileOffer, check_root
from builder.harvest.data_files.record_columns import RecordColumns
from builder.harvest.errors import FilesError
from builder.parquet.pieces import NoColumnsError
from builder.parquet.stored_columns import (
    StoredGroup,
    choose_rows,
    distinct,
    map_values,
    read_groups,
)
from builder.store.checked_reader import CheckedReader, read_some
from functions.config.configuration import Configuration
from functions.oai.answer import Answer, RecordList
from functions.oai.format import Formats
from functions.oai.render import check, reproduction
from functions.oai.repository import PublishedRecord, RecordSelection
from functions.oai.repository_duckdb import record_rows
from functions.oai.repository_duckdb.record_rows import DOCUMENT
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.snapshot import instant, layout
from functions.snapshot.manifest import DataFile, Manifest, RowGroup, Span
from functions.snapshot.store import Reader
from functions.store.client import WebClient
from functions.store.connection import BucketConnection
from functions.store.slice import open_reader
from functions.store.store_reader import BucketReader

_MARK = b"\x00records\x00"
_FIRST, _MOST, _BYTES = 1024, 8192, 16 << 20
"""Records that are rendered at once: at first, at most, and for about so many bytes of XML."""
_GROUPS = 2
"""Row groups that are read at once."""
_LARGEST = 3_900_000
"""Bytes of a record up to which every server sends it."""


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
        self._fields = self._renderer.fields(row, self.manifest.kinds())
        self._reader = CheckedReader(reader, self.manifest)
        self.repository = DuckRepository(self._reader)
        since = self.manifest.since(self.prefix)
        self._stamps = {
            one.number: instant.to_text(max(one.effective, since or one.effective))
            for one in self.manifest.sequences
        }
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
        by_columns = self._pieces is not None and selection.set is None
        for rows in self._groups(selection) if by_columns else self._pages(selection):
            if rows.largest > _LARGEST:
                raise FilesError("a record may be too large for a page")
            yield rows

    def _pages(self, selection: RecordSelection) -> Iterator[RecordColumns]:
        """Yield the records of a selection by pages, as a server reads them."""
        since, many = self.manifest.since(self.prefix), _FIRST
        while not selection.is_empty:
            found = self.repository.page(
                self.manifest, selection, many, headers=False, fields=self._fields
            )
            if not found:
                return
            rows = self._rows(found, since)
            yield rows
            selection = selection.behind(found[-1].position)
            size = sum(map(len, rows.texts))
            many = max(1, min(_MOST, 2 * many, _BYTES * len(found) // (size + 1)))

    def _rows(self, found: Sequence[PublishedRecord], since: datetime | None) -> RecordColumns:
        if self._pieces is not None:
            with suppress(NoColumnsError):
                columns = file_rows.page_arrays(found, since)
                return file_rows.render(self._pieces, self._head, columns)
        body = self._render(found, since)
        return file_rows.read(self._head, body, self._tail, found, since)

    def _groups(self, selection: RecordSelection) -> Iterator[RecordColumns]:
        """Yield the records of a selection, of no set, by row groups."""
        span, manifest = selection.span, self.manifest
        living = record_rows.living_sequences(manifest, selection.kinds)
        for stretch in record_rows.find_spans(manifest, living, selection.kinds):
            first, last = max(span.first, stretch.first), min(span.last, stretch.last)
            if first > last:
                continue
            for file, groups in self.repository.catalogue.groups(manifest, "records", first, last):
                for start in range(0, len(groups), _GROUPS):
                    some = groups[start : start + _GROUPS]
                    low, high = int(str(some[0].first)), int(str(some[-1].last))
                    part = replace(selection, span=Span(max(first, low), min(last, high)))
                    yield from self._read(part, file, some)

    def _read(
        self, selection: RecordSelection, file: DataFile, groups: Sequence[RowGroup]
    ) -> Iterator[RecordColumns]:
        """Yield the records of a selection in row groups, by pages if they cannot be columns."""
        span, pieces = selection.span, self._pieces
        header = record_rows.columns(headers=False, of_set=False, fields=self._fields)
        names = [name for name in header if name != DOCUMENT]
        buried = self.repository.catalogue.groups(self.manifest, "dead", span.first, span.last)
        columns = choose_rows(
            read_groups(self._find_groups(file, groups), names),
            span.first,
            span.last,
            selection.kinds,
            [read_groups(self._find_groups(*found), ["position"]) for found in buried],
        )
        try:
            if pieces is None or not {*distinct(columns["kind"])} <= {"capture"}:
                raise NoColumnsError
            if len(columns["position"]):
                stamps = map_values(columns["sequence"], self._stamps)
                yield file_rows.render(pieces, self._head, {**columns, "datestamp": stamps})
        except NoColumnsError:
            yield from self._pages(selection)

    def _find_groups(self, file: DataFile, groups: Sequence[RowGroup]) -> Iterator[StoredGroup]:
        paths = self._reader.parts(file.key, file.bytes, [group.span for group in groups])
        each = paths if len(paths) == len(groups) else [paths[0]] * len(groups)
        for path, group in zip(each, groups, strict=True):
            yield StoredGroup(path, file.groups.index(group), len(file.groups))

    def _render(self, found: Sequence[PublishedRecord], since: datetime | None) -> bytes:
        sheet = self._renderer.sheet(self.offer.base_url)
        sheet.take(RecordList(found, self.format, None, since=since))
        return b"".join(sheet.finish())


@lru_cache(maxsize=1)
def open_snapshot(source: RecordSource) -> OfferedSnapshot:
    """Return the snapshot of an offer in a format; one stays open in a process."""
    return OfferedSnapshot(source)
