"""Strategy that stores the platform's responses in one WARC for each request."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from builder.http.limits import Stop
from builder.sources.datasets import manifest_file as files
from builder.sources.datasets.download.exchanges import digits
from builder.sources.datasets.item import (
    WITHIN,
    FilesetManifestFile,
    FilesetPlatformItem,
)
from builder.sources.datasets.protocols import FilesetError, Received
from builder.sources.datasets.strategies import record, warc
from builder.sources.datasets.strategies.bundle import ZIP, examine
from builder.sources.datasets.strategies.keys import BUNDLE, RECORD, WARCS, warc_key
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

    def archive(
        self, item: FilesetPlatformItem, base: str, first: KeepingRecord | None = None
    ) -> KeepingRecord:
        """Archive the responses for the item's files or its platform's bundle."""
        keys = [stored.key for stored in first.objects] if first else []
        key = warc_key(item, digits(self.wall()), [key for key in keys if key.startswith(WARCS)])
        if self.name == BUNDLED and first is None:
            return self._capture_bundle(item, key)
        lacking = record.lacking(first, item) if first else item.manifest
        return self._capture_files(replace(item, manifest=lacking), key)

    def complete(self, item: FilesetPlatformItem, base: str, first: KeepingRecord) -> KeepingRecord:
        """Archive the responses for the files that the record lacks."""
        if record.lacking(first, item):
            # Super without arguments does not work in a class with slots.
            return ArchivingStrategy.complete(self, item, base, first)
        # Another run has archived it meanwhile.
        return replace(first, archived=replace(first.archived, status="success-existing"))

    def _capture_files(self, item: FilesetPlatformItem, key: str) -> KeepingRecord:
        """Archive one response for each file. Raises FilesetError and StoreError.

        Files are fetched in parallel, and their records are written in order.
        """
        quota = Quota(item.files, self.settings)
        memory = _MEMORY // ahead_of(self.settings)
        spools: set[FileSpool] = set()
        captured: list[tuple[Received, Placed]] = []

        def fetch(file: FilesetManifestFile, stop: Stop) -> tuple[Received, FileSpool]:
            # A spool first, because a WARC record states its length before its bytes.
            spool = FileSpool(self.scratch, memory, self.go_on)
            spools.add(spool)
            return self.downloader.download(file, quota.limit(file), spool.open, stop=stop), spool

        def keep(
            file: FilesetManifestFile, fetched: tuple[Received, FileSpool]
        ) -> FilesetManifestFile:
            received, spool = fetched
            quota.take(received.size)
            placed = records.response(received, spool.pieces)
            spools.discard(spool)
            spool.close()
            captured[:] = [(received, placed)]
            return replace(
                files.add_received(file, received),
                key=key,
                offset=placed.offset,
                compression=warc.WARC,
                extra={**file.extra, warc.LENGTH: placed.bytes},
            )

        with self._records(item, key, quota) as records:
            try:
                stored = transfer(item, fetch, keep, item.files, self.settings, together=True)
                manifest = tuple(stored)
            finally:
                for spool in spools:
                    spool.close()
        ((received, placed),) = captured
        return record.of_files(
            item,
            self.name,
            manifest,
            [_object(key, records)],
            terminal=files.terminal(received),
            cdx=warc.cdx(received, placed, key),
            location=key,
        )

    def _capture_bundle(self, item: FilesetPlatformItem, key: str) -> KeepingRecord:
        """Archive the platform's bundle. Raises FilesetError and StoreError."""
        if not item.web_bundle_url:
            raise FilesetError("not-implemented", "the platform offers no bundle")
        wanted = FilesetManifestFile(path=BUNDLE, mimetype=ZIP, platform_url=item.web_bundle_url)
        quota = Quota(item.files, self.settings)
        memory = _MEMORY // ahead_of(self.settings)
        with (
            self._records(item, key, quota) as records,
            closing(FileSpool(self.scratch, memory, self.go_on)) as spool,
        ):
            received = self.downloader.download(wanted, quota.most, spool.open)
            partial = bool(self.settings["fileset.partial"])
            manifest = examine(item, spool.file, spool.file, key, self, partial)
            placed = records.response(received, spool.pieces)
        return record.of_files(
            item,
            BUNDLED,
            [_within(file, placed) for file in manifest],
            [_object(key, records)],
            terminal=files.terminal(received),
            cdx=warc.cdx(received, placed, key),
            bundle=files.meta(files.add_received(wanted, received)),
            location=key,
        )

    @contextmanager
    def _records(self, item: FilesetPlatformItem, key: str, quota: Quota) -> Iterator[WarcRecords]:
        names = (item.platform_name, item.platform_domain, item.platform_id)
        about = f"files of {' '.join(name for name in names if name)}"
        at = key.removesuffix(".warc.gz")[-14:]
        try:
            with self.store.creating(key, quota.most_written) as sink:
                yield WarcRecords(sink, key, at, about)
        except Conflict as error:
            detail = f"{key} was there first, of another run or of one that was killed: run again"
            raise FilesetError("error-store-upload", detail) from error


def _object(key: str, records: WarcRecords) -> KeptObject:
    meta = records.meta()
    return KeptObject(key, meta.size_bytes, meta.sha256hex)


def _within(file: FilesetManifestFile, placed: Placed) -> FilesetManifestFile:
    """Return a file inside a bundled response with the place of the bundle's record."""
    if file.key is None:
        return file
    place = {WITHIN: file.offset, warc.LENGTH: placed.bytes}
    extra = {"member": file.path, **file.extra, **place}
    return replace(file, offset=placed.offset, compression=warc.WARC, extra=extra)
