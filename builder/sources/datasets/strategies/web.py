"""Strategy that stores the platform's responses in one WARC for each request."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from builder.http.limits import Stop
from builder.sources.datasets import manifest_file as files
from builder.sources.datasets.download.exchanges import digits
from builder.sources.datasets.item import (
    WITHIN,
    ArchiveStrategyResult,
    Cdx,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.sources.datasets.protocols import FilesetError, Received
from builder.sources.datasets.strategies import record, warc
from builder.sources.datasets.strategies.bundle import ZIP, examine
from builder.sources.datasets.strategies.keys import BUNDLE, RECORD, WARCS
from builder.sources.datasets.strategies.keys import warc_key as key_of
from builder.sources.datasets.strategies.record import KeepingRecord, KeptObject
from builder.sources.datasets.strategies.strategy import ArchivingStrategy
from builder.sources.datasets.strategies.transfer import FileSpool, Quota, ahead_of, transfer
from builder.sources.datasets.strategies.warc import Placed, WarcRecords
from functions.snapshot.errors import Conflict

FILE, FILESET, BUNDLED = "web-file", "web-fileset", "web-fileset-bundled"

_MEMORY = 16 << 20
"""Bytes of all fetched files kept in memory; larger ones go to this machine's disk."""


@dataclass(frozen=True, slots=True)
class Captured(ArchivingStrategy):
    """The strategies web-file, web-fileset and web-fileset-bundled, of which `name` is one.

    `wall` counts seconds since 1970; its time is part of the WARC's name. The WARC is written
    atomically, one more for files that failed before.
    """

    scratch: Path
    wall: Callable[[], float]

    def begin(self, base: str) -> KeepingRecord | None:
        """Return the record below `base`; a new WARC has another name than a missing one."""
        first = record.of_strategy(self.store, base, self.name)
        if first is None or not record.state(self.store, first, check="size")[0]:
            return first
        self.store.remove(base + RECORD)
        return None

    def archive(self, item: FilesetPlatformItem, base: str) -> KeepingRecord:
        """Archive the responses for the item's files or its platform's bundle."""
        run = _WebRun(self, item, self._key(item, ()))
        return run.bundle() if self.name == BUNDLED else run.each()

    def complete(self, item: FilesetPlatformItem, base: str, first: KeepingRecord) -> KeepingRecord:
        """Archive the responses for the files that the record lacks."""
        if not (lacking := record.lacking(first, item)):  # another run has archived it meanwhile
            return replace(first, archived=replace(first.archived, status="success-existing"))
        run = _WebRun(self, replace(item, manifest=lacking), self._key(item, first.objects))
        return self.extend(item, base, first, run.each)

    def _key(self, item: FilesetPlatformItem, objects: Sequence[KeptObject]) -> str:
        now = digits(self.wall())
        return key_of(item, now, (stored.key for stored in objects if stored.key.startswith(WARCS)))


class _WebRun:
    """One attempt to archive an item's files in the WARC at `key`."""

    def __init__(self, strategy: Captured, item: FilesetPlatformItem, key: str) -> None:
        self.key = key
        self._strategy = strategy
        self._item = item
        self._quota = Quota(item.files, strategy.settings)
        self._memory = _MEMORY // ahead_of(strategy.settings)
        self._open: set[FileSpool] = set()
        self._last: tuple[Received, Cdx] | None = None

    def each(self) -> KeepingRecord:
        """Archive one response for each file. Raises FilesetError and StoreError."""
        with self._records() as records:
            manifest = self._transfer(records)
        assert self._last is not None
        received, line = self._last
        archived = record.result_of(
            self._item,
            self._strategy.name,
            manifest,
            terminal=files.terminal(received),
            cdx=line,
            location=self.key,
        )
        return self._record(archived, records)

    def bundle(self) -> KeepingRecord:
        """Archive the platform's bundle. Raises FilesetError and StoreError."""
        if not self._item.web_bundle_url:
            raise FilesetError("not-implemented", "the platform offers no bundle", item=self._item)
        wanted = FilesetManifestFile(
            path=BUNDLE, mimetype=ZIP, platform_url=self._item.web_bundle_url
        )
        with self._records() as records, closing(self._spool()) as spool:
            by = self._strategy
            received = by.downloader.download(wanted, self._quota.most, spool.open)
            partial = bool(by.settings["fileset.partial"])
            manifest = examine(self._item, spool.file, spool.file, self.key, by, partial)
            placed = records.response(received, spool.pieces)
        archived = record.result_of(
            self._item,
            BUNDLED,
            [_within(file, placed) for file in manifest],
            terminal=files.terminal(received),
            cdx=warc.cdx(received, placed, self.key),
            bundle=files.meta(files.add_received(wanted, received)),
            location=self.key,
        )
        return self._record(archived, records)

    @contextmanager
    def _records(self) -> Iterator[WarcRecords]:
        names = (self._item.platform_name, self._item.platform_domain, self._item.platform_id)
        about = f"files of {' '.join(name for name in names if name)}"
        at = self.key.removesuffix(".warc.gz")[-14:]
        try:
            with self._strategy.store.creating(self.key, self._quota.most_written) as sink:
                yield WarcRecords(sink, self.key, at, about)
        except Conflict as error:
            detail = f"another run stores it in {self.key}"
            raise FilesetError("error-store-upload", detail, item=self._item) from error

    def _transfer(self, records: WarcRecords) -> tuple[FilesetManifestFile, ...]:
        """Fetch the files in parallel, and write their records in order."""
        item, settings = self._item, self._strategy.settings

        def keep(
            file: FilesetManifestFile, fetched: tuple[Received, FileSpool]
        ) -> FilesetManifestFile:
            received, spool = fetched
            self._quota.take(received.size)
            placed = records.response(received, spool.pieces)
            self._open.discard(spool)
            spool.close()
            self._last = received, warc.cdx(received, placed, self.key)
            return replace(
                files.add_received(file, received),
                key=self.key,
                offset=placed.offset,
                compression=warc.WARC,
                extra={**file.extra, warc.LENGTH: placed.bytes},
            )

        try:
            return tuple(transfer(item, self._fetch, keep, item.files, settings, together=True))
        finally:
            for spool in self._open:
                spool.close()

    def _fetch(self, file: FilesetManifestFile, stop: Stop) -> tuple[Received, FileSpool]:
        """Download a file to a spool first: a WARC record states its length before its bytes."""
        spool = self._spool()
        self._open.add(spool)
        limit = self._quota.limit(file)
        return self._strategy.downloader.download(file, limit, spool.open, stop=stop), spool

    def _spool(self) -> FileSpool:
        return FileSpool(self._strategy.scratch, self._memory, self._strategy.go_on)

    def _record(self, archived: ArchiveStrategyResult, records: WarcRecords) -> KeepingRecord:
        meta = records.meta()
        stored = KeptObject(self.key, meta.size_bytes, meta.sha256hex)
        return record.of(self._item, archived, (stored,))


def _within(file: FilesetManifestFile, placed: Placed) -> FilesetManifestFile:
    """Return a file inside a bundled response with the place of the bundle's record."""
    if file.key is None:
        return file
    place = {WITHIN: file.offset, warc.LENGTH: placed.bytes}
    extra = {"member": file.path, **file.extra, **place}
    return replace(file, offset=placed.offset, compression=warc.WARC, extra=extra)
