"""Strategy that stores each file as one object below `filesets/`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from builder.filesets import manifest_file as files
from builder.filesets.item import (
    ArchiveStrategyResult,
    FilesetManifestFile,
    FilesetPlatformItem,
    Terminal,
)
from builder.filesets.protocols import Downloader, FilesetError
from builder.filesets.strategies import record
from builder.filesets.strategies.keys import file_keys as keys_of
from builder.filesets.strategies.keys import place
from builder.filesets.strategies.record import KeepingRecord, KeptObject
from builder.http.settings import Settings
from functions.snapshot.errors import Conflict
from functions.snapshot.store import Writer

FILE, FILESET = "s3-file", "s3-fileset"


@dataclass(frozen=True, slots=True)
class ObjectStrategy:
    """The strategies s3-file and s3-fileset, of which `name` is one.

    `go_on` is called now and then while the store is read, and may raise a FilesetError.
    """

    name: str
    store: Writer
    downloader: Downloader
    settings: Settings
    go_on: Callable[[], None] = lambda: None

    def check_existing(self, item: FilesetPlatformItem) -> ArchiveStrategyResult | None:
        """Return what is archived of exactly this item; None if it is missing or incomplete."""
        with files.wrap_store_errors(item, "error-store-verify"):
            return record.existing(
                self.store,
                place(item),
                item,
                check=self.settings["fileset.check"],
                go_on=self.go_on,
            )

    def process(self, item: FilesetPlatformItem) -> ArchiveStrategyResult:
        """Archive each of the item's files as an object. Raises FilesetError.

        It completes what an interrupted run left, and restores missing objects of a record.
        """
        with files.wrap_store_errors(item):
            known = record.of_strategy(self.store, place(item), self.name)
            run = _FileRun(self, item, known)
            kept = tuple(files.each(item, run.keep, item.files))
            run.verify(kept)
            if known is None:
                known = record.write(self.store, place(item), run.record(kept), item)
            return record.add_withheld(known.archived, item)


class _FileRun:
    """One attempt to archive an item; `known` is its record, if it was complete before."""

    def __init__(
        self, asked: ObjectStrategy, item: FilesetPlatformItem, known: KeepingRecord | None
    ) -> None:
        self._asked = asked
        self._item = item
        self._base = place(item)
        self._keys = keys_of(self._base, [file.path for file in item.files])
        self._there = {entry.key: entry.bytes for entry in asked.store.entries(self._base)}
        self._known = {f.path: f for f in known.archived.manifest} if known else {}
        self._left: int = asked.settings["fileset.limits"]["bytes"]
        self._terminal: Terminal | None = None

    def keep(self, file: FilesetManifestFile) -> FilesetManifestFile:
        """Return the file once its object is stored."""
        key = self._keys[file.path]
        known = self._known.get(file.path)
        found = self._reuse(file, key, known) if key in self._there else None
        if found is None:
            found = self._fetch(file, key, known)
        self._left -= found.size or 0
        return found

    def _reuse(
        self, file: FilesetManifestFile, key: str, known: FilesetManifestFile | None
    ) -> FilesetManifestFile | None:
        """Return a file whose object exists, None if it must be downloaded.

        An unrecorded object with other bytes is removed, because no result mentions it. Raises
        FilesetError (mismatch-existing) if a recorded object was altered.
        """
        if known is not None:
            if self._there[key] != known.size:
                detail = (
                    f"{key} has {self._there[key]:,} bytes, but had {known.size:,} when it was "
                    "archived; remove it to fetch it again"
                )
                raise FilesetError("mismatch-existing", detail)
            return known
        digests = files.compute_digests(record.chunks(self._asked.store, key, self._asked.go_on))
        if digests.mismatch(file):
            record.forget(self._asked.store, self._base, key)
            return None
        return replace(files.with_digests(file, digests), key=key)

    def _fetch(
        self, file: FilesetManifestFile, key: str, known: FilesetManifestFile | None
    ) -> FilesetManifestFile:
        wanted = file
        if known is not None:  # the same bytes as the first time, whatever the platform lists now
            wanted = files.like(file, known)
        limit = min(self._asked.settings["fileset.limits"]["file_bytes"], self._left)
        try:
            received = self._asked.downloader.download(
                wanted, limit, lambda: self._asked.store.creating(key)
            )
        except Conflict:  # another run wrote it meanwhile
            self._there |= {e.key: e.bytes for e in self._asked.store.entries(key) if e.key == key}
            found = self._reuse(file, key, known) if key in self._there else None
            if found is None:
                raise
            return found
        self._terminal = files.terminal(received)
        return known or replace(files.add_received(file, received), key=key)

    def verify(self, kept: tuple[FilesetManifestFile, ...]) -> None:
        """Check that the store lists the objects. Raises FilesetError (error-store-verify)."""
        there = {entry.key: entry.bytes for entry in self._asked.store.entries(self._base)}
        for file in kept:
            if there.get(file.key or "") != file.size:
                had = there.get(file.key or "")
                detail = f"{file.key} has {had} bytes, but {file.size} were written"
                raise FilesetError("error-store-verify", detail, item=self._item)

    def record(self, kept: tuple[FilesetManifestFile, ...]) -> KeepingRecord:
        """Return the record of all files."""
        alone = kept[0] if self._asked.name == FILE else None
        archived = ArchiveStrategyResult(
            ingest_strategy=self._asked.name,
            status=record.success_status(self._item, self._asked.name),
            manifest=kept,
            file_file_meta=files.meta(alone) if alone else None,
            file_terminal=self._terminal if alone else None,
            location=alone.key if alone else self._base,
        )
        objects = tuple(KeptObject(f.key or "", f.size or 0, f.sha256 or "") for f in kept)
        return record.of(self._item, archived, objects)
