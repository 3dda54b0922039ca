"""Strategy that stores files as one zip below `filesets/`, packed here or by the platform."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from builder.filesets import manifest_file as files
from builder.filesets.item import (
    ArchiveStrategyResult,
    FileMeta,
    FilesetManifestFile,
    FilesetPlatformItem,
    Terminal,
)
from builder.filesets.protocols import FilesetError
from builder.filesets.strategies import record
from builder.filesets.strategies.bundle import ZIP, Packing, pack_again, reconcile
from builder.filesets.strategies.keys import BUNDLE
from builder.filesets.strategies.record import KeepingRecord, KeptObject
from builder.filesets.strategies.s3 import FILESET, ObjectStrategy
from builder.filesets.strategies.strategy import ArchivingStrategy
from builder.filesets.strategies.transfer import Quota
from builder.filesets.strategies.zip_reader import Ranges, directory, read
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
        members, others = (
            replace(item, manifest=tuple(f for f in item.files if (f.path in within) == is_member))
            for is_member in (True, False)
        )
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

    asked: Bundled
    item: FilesetPlatformItem
    base: str
    earlier: KeepingRecord | None

    @property
    def key(self) -> str:
        """The key of the bundle."""
        return self.base + BUNDLE

    def archive(self) -> KeepingRecord:
        """Create the bundle and return its record. Raises FilesetError and StoreError."""
        try:
            return self._download() if self._is_foreign() else self._pack()
        except Conflict:
            if (first := self.find_existing()) is None:  # another run was first
                raise
            return first

    def _is_foreign(self) -> bool:
        """Return whether the bundle comes from the platform."""
        if self.earlier is not None:
            return self.earlier.archived.bundle_terminal is not None
        strategy = self.asked.settings["fileset.strategy"]
        return bool(self.item.web_bundle_url and strategy["platform_bundle"])

    def find_existing(self) -> KeepingRecord | None:
        """Return the record of an existing bundle that holds the files as listed, or None.

        A bundle that differs and was never recorded is removed, because no result mentions it.
        """
        there = [e.key for e in self.asked.store.entries(self.key)]
        if self.key not in there:
            return None
        if self.earlier is not None:
            return self.earlier
        try:
            return self._examine(None)
        except FilesetError as error:
            if error.status in ("deadline-exceeded", "cancelled"):
                raise
            record.forget(self.asked.store, self.base, self.key)
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
        most = self.asked.settings["fileset.limits"]["bytes"]
        received = self.asked.downloader.download(
            wanted, most, lambda: self.asked.store.creating(self.key, wanted.size or most)
        )
        if self.earlier is not None:
            return self.earlier
        try:
            return self._examine(files.terminal(received))
        except FilesetError:
            record.forget(self.asked.store, self.base, self.key)
            raise

    def _examine(self, terminal: Terminal | None) -> KeepingRecord:
        """Return the record of a bundle that this run did not pack. Raises FilesetError."""
        store, go_on = self.asked.store, self.asked.go_on
        try:
            most = self.asked.settings["fileset.limits"]["bytes"]
            entries = directory(Ranges(store, self.key), most)
            with store.open(self.key) as stream:
                members = list(read(entries, stream, go_on))
        except FilesetError as error:
            raise FilesetError(error.status, error.detail, item=self.item) from error
        partial = terminal is not None and bool(self.asked.settings["fileset.partial"])
        manifest = reconcile(self.item, members, self.key, partial=partial)
        whole = files.compute_digests(record.chunks(store, self.key, go_on))
        of = FileMeta(
            size_bytes=whole.size,
            md5hex=whole.of("md5"),
            sha1hex=whole.of("sha1"),
            sha256hex=whole.of("sha256"),
            mimetype=ZIP,
        )
        return self._record(manifest, of, terminal)

    def _pack(self) -> KeepingRecord:
        """Pack the files into a bundle one by one, and return its record.

        If a large member restarts from its beginning, the bundle written so far is spoilt, and
        packing starts again. In the last try a bundle is made without each such member.
        """
        return pack_again(
            lambda failed, is_last: self._once(failed, is_last=is_last), self.asked.settings
        )

    def _once(self, failed: dict[str, FilesetError], *, is_last: bool) -> KeepingRecord:
        asked, earlier = self.asked, self.earlier
        with asked.store.creating(
            self.key, Quota(self.item.files, asked.settings).most_written
        ) as sink:
            pack = Packing(
                asked.downloader,
                asked.settings,
                sink,
                tuple(record.archived_files(earlier).values()),
                failed,
                is_last=is_last,
            )
            kept = pack.finish(pack.keep_all(self.item), self.key)
            of = pack.meta()
            if earlier is not None:
                if earlier.archived.bundle_file_meta != of:
                    detail = f"{self.key} is missing; a new bundle would differ from it"
                    raise FilesetError("mismatch-existing", detail, item=self.item)
                return earlier
        return self._record(kept, of, None)

    def _record(
        self, manifest: Sequence[FilesetManifestFile], of: FileMeta, terminal: Terminal | None
    ) -> KeepingRecord:
        archived = ArchiveStrategyResult(
            ingest_strategy=NAME,
            status=record.success_status(self.item, NAME, manifest),
            manifest=tuple(manifest),
            bundle_file_meta=of,
            bundle_terminal=terminal,
            location=self.key,
        )
        objects = (KeptObject(self.key, of.size_bytes, of.sha256hex),)
        return record.of(self.item, archived, objects)
