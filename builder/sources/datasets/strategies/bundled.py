"""Strategy that stores files as one zip below `filesets/`, packed here or by the platform."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from builder.sources.datasets import manifest_file as files
from builder.sources.datasets.item import (
    FileMeta,
    FilesetManifestFile,
    FilesetPlatformItem,
    Terminal,
)
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies import record
from builder.sources.datasets.strategies.bundle import ZIP, examine, pack
from builder.sources.datasets.strategies.keys import BUNDLE
from builder.sources.datasets.strategies.record import KeepingRecord, KeptObject
from builder.sources.datasets.strategies.s3 import FILESET, ObjectStrategy
from builder.sources.datasets.strategies.strategy import ArchivingStrategy
from builder.sources.datasets.strategies.transfer import Quota
from builder.sources.datasets.strategies.zip_reader import Ranges
from functions.snapshot.errors import Conflict

NAME = "s3-fileset-bundled"


@dataclass(frozen=True, slots=True)
class Bundled(ArchivingStrategy):
    """The strategy s3-fileset-bundled.

    The bundle is written atomically. With `platform_bundle` of fileset.strategy it is the
    platform's own bundle. Files that the bundle lacks become objects beside it later.
    """

    name: str = field(default=NAME, init=False)

    def archive(self, item: FilesetPlatformItem, base: str) -> KeepingRecord:
        """Archive the item's files as one zip."""
        run = _BundleRun(self, item, base, None)
        return run.find_existing() or run.archive()

    def complete(self, item: FilesetPlatformItem, base: str, first: KeepingRecord) -> KeepingRecord:
        """Archive a missing bundle again, and files that it lacks as objects beside it."""
        key = base + BUNDLE
        within = {f.path for f in record.archived_files(first).values() if f.key == key}
        members, others = record.split(item, within)
        run = _BundleRun(self, members, base, first)
        stored = run.find_existing() or run.archive()
        if not others.manifest:
            return stored
        files = ObjectStrategy(
            FILESET, self.store, self.downloader, self.settings, go_on=self.go_on
        )
        return self.extend(item, base, first, lambda: files.keep(others, base, first))


@dataclass(frozen=True, slots=True)
class _BundleRun:
    """One attempt to bundle an item below `base`; `earlier` is its record, if it has one."""

    strategy: Bundled
    item: FilesetPlatformItem
    base: str
    earlier: KeepingRecord | None

    @property
    def key(self) -> str:
        """The key of the bundle."""
        return self.base + BUNDLE

    def archive(self) -> KeepingRecord:
        """Create the bundle and return its record. Raises FilesetError and StoreError."""
        is_foreign = self.strategy.settings["fileset.strategy"]["platform_bundle"]
        is_foreign = bool(is_foreign and self.item.web_bundle_url)
        if self.earlier is not None:
            is_foreign = self.earlier.archived.bundle_terminal is not None
        try:
            return self._download() if is_foreign else self._pack()
        except Conflict:
            if (first := self.find_existing()) is None:  # another run was first
                raise
            return first

    def find_existing(self) -> KeepingRecord | None:
        """Return the record of an existing bundle that holds the files as listed, or None.

        A bundle that differs and was never recorded is removed, because no result mentions it.
        """
        if self.key not in (entry.key for entry in self.strategy.store.entries(self.key)):
            return None
        if self.earlier is not None:
            return self.earlier
        try:
            return self._examine(None)
        except FilesetError as error:
            if error.status in ("deadline-exceeded", "cancelled"):
                raise
            record.forget(self.strategy.store, self.base, self.key)
            return None

    def _download(self) -> KeepingRecord:
        """Download the platform's bundle and return its record. Raises FilesetError."""
        earlier = self.earlier.archived.bundle_file_meta if self.earlier else None
        wanted = FilesetManifestFile(
            path=BUNDLE,
            size=earlier.size_bytes if earlier else None,
            sha256=earlier.sha256hex if earlier else None,
            mimetype=ZIP,
            platform_url=self.item.web_bundle_url,
        )
        most = self.strategy.settings["fileset.limits"]["bytes"]
        received = self.strategy.downloader.download(
            wanted, most, lambda: self.strategy.store.creating(self.key, wanted.size or most)
        )
        if self.earlier is not None:
            return self.earlier
        try:
            return self._examine(files.terminal(received))
        except FilesetError:
            record.forget(self.strategy.store, self.base, self.key)
            raise

    def _examine(self, terminal: Terminal | None) -> KeepingRecord:
        """Return the record of a bundle that this run did not pack. Raises FilesetError."""
        by, store, key = self.strategy, self.strategy.store, self.key
        partial = terminal is not None and bool(by.settings["fileset.partial"])
        with store.open(key) as stream:
            manifest = examine(self.item, Ranges(store, key), stream, key, by, partial)
        whole = files.compute_digests(record.chunks(store, key, by.go_on))
        archive = files.with_digests(FilesetManifestFile(path=BUNDLE, mimetype=ZIP), whole)
        return self._record(manifest, files.meta(archive), terminal)

    def _pack(self) -> KeepingRecord:
        """Pack the files into a bundle one by one, and return its record."""
        most = Quota(self.item.files, self.strategy.settings).most_written
        manifest, meta = pack(
            self.item,
            self.strategy,
            lambda: self.strategy.store.creating(self.key, most),
            self.key,
            self.earlier,
        )
        return self.earlier or self._record(manifest, meta, None)

    def _record(
        self, manifest: Sequence[FilesetManifestFile], of: FileMeta, terminal: Terminal | None
    ) -> KeepingRecord:
        archived = record.result_of(
            self.item, NAME, manifest, terminal=terminal, bundle=of, location=self.key
        )
        objects = (KeptObject(self.key, of.size_bytes, of.sha256hex),)
        return record.of(self.item, archived, objects)
