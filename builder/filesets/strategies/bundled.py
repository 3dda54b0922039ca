"""Strategy that stores files as one zip below `filesets/`, packed here or by the platform."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from builder.filesets import manifest_file as files
from builder.filesets.item import (
    ArchiveStrategyResult,
    FileMeta,
    FilesetManifestFile,
    FilesetPlatformItem,
    Terminal,
)
from builder.filesets.protocols import Downloader, FilesetError
from builder.filesets.strategies import record
from builder.filesets.strategies.bundle import ZIP, Packing, Spoilt, reconcile
from builder.filesets.strategies.keys import BUNDLE, place
from builder.filesets.strategies.record import KeepingRecord, KeptObject
from builder.filesets.strategies.transfer import Quota
from builder.filesets.strategies.zip_reader import Ranges, directory, read
from builder.http.settings import Settings, http_settings
from functions.snapshot.errors import Conflict
from functions.snapshot.store import Writer

NAME = "s3-fileset-bundled"


@dataclass(frozen=True, slots=True)
class Bundled:
    """The strategy s3-fileset-bundled.

    `go_on` is called now and then while the store is read, and may raise a FilesetError.
    """

    store: Writer
    downloader: Downloader
    settings: Settings
    go_on: Callable[[], None] = lambda: None

    @property
    def name(self) -> str:
        """Its ingest_strategy."""
        return NAME

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
        """Archive the item's files as one zip. Raises FilesetError.

        The bundle is written atomically. With `platform_bundle` of fileset.strategy it is the
        platform's own bundle, which must hold all files as listed.
        """
        with files.wrap_store_errors(item):
            known = record.of_strategy(self.store, place(item), NAME)
            run = _BundleRun(self, item, known)
            kept = run.find_existing() or run.archive()
            if known is None:
                known = record.write(self.store, place(item), kept, item)
            return record.add_withheld(known.archived, item)


class _BundleRun:
    """One attempt to archive an item; `known` is its record, if it was complete before."""

    def __init__(
        self, asked: Bundled, item: FilesetPlatformItem, known: KeepingRecord | None
    ) -> None:
        self._asked = asked
        self._item = item
        self._known = known
        self._key = place(item) + BUNDLE

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
        if self._known is not None:
            return self._known.archived.bundle_terminal is not None
        strategy = self._asked.settings["fileset.strategy"]
        return bool(self._item.web_bundle_url and strategy["platform_bundle"])

    def find_existing(self) -> KeepingRecord | None:
        """Return the record of an existing bundle that holds the files as listed, or None.

        A bundle that differs and was never recorded is removed, because no result mentions it.
        """
        there = [e.key for e in self._asked.store.entries(self._key)]
        if self._key not in there:
            return None
        if self._known is not None:
            return self._known
        try:
            return self._examine(None)
        except FilesetError as error:
            if error.status in ("deadline-exceeded", "cancelled"):
                raise
            record.forget(self._asked.store, place(self._item), self._key)
            return None

    def _download(self) -> KeepingRecord:
        """Download the platform's bundle and return its record. Raises FilesetError."""
        known = self._known.archived.bundle_file_meta if self._known else None
        wanted = FilesetManifestFile(
            path=BUNDLE,
            size=known.size_bytes if known else None,
            sha256=known.sha256hex if known else None,
            mimetype=ZIP,
            platform_url=self._item.web_bundle_url,
        )
        most = self._asked.settings["fileset.limits"]["bytes"]
        received = self._asked.downloader.download(
            wanted, most, lambda: self._asked.store.creating(self._key, wanted.size or most)
        )
        if self._known is not None:
            return self._known
        try:
            return self._examine(files.terminal(received))
        except FilesetError:
            record.forget(self._asked.store, place(self._item), self._key)
            raise

    def _examine(self, terminal: Terminal | None) -> KeepingRecord:
        """Return the record of a bundle that this run did not pack. Raises FilesetError."""
        store, go_on = self._asked.store, self._asked.go_on
        try:
            most = self._asked.settings["fileset.limits"]["bytes"]
            entries = directory(Ranges(store, self._key), most)
            with store.open(self._key) as stream:
                members = list(read(entries, stream, go_on))
        except FilesetError as error:
            raise FilesetError(error.status, error.detail, item=self._item) from error
        manifest = reconcile(self._item, members, self._key)
        whole = files.compute_digests(record.chunks(store, self._key, go_on))
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
        packing starts again. In the last try such a member is downloaded only to learn its status.
        """
        failed: dict[str, FilesetError] = {}
        for left in reversed(range(http_settings(self._asked.settings, "fileset").tries)):
            try:
                return self._once(failed, is_last=not left)
            except Spoilt:
                continue
        raise AssertionError("unreachable")

    def _once(self, failed: dict[str, FilesetError], *, is_last: bool) -> KeepingRecord:
        asked, known = self._asked, self._known
        with asked.store.creating(
            self._key, Quota(self._item.files, asked.settings).most_written
        ) as sink:
            pack = Packing(
                asked.downloader,
                asked.settings,
                sink,
                known.archived.manifest if known else (),
                failed,
                is_last=is_last,
            )
            kept = pack.finish(pack.keep_all(self._item), self._key)
            of = pack.meta()
            if known is not None:
                if known.archived.bundle_file_meta != of:
                    detail = f"{self._key} is missing; a new bundle would differ from it"
                    raise FilesetError("mismatch-existing", detail, item=self._item)
                return known
        self._verify(of.size_bytes)
        return self._record(kept, of, None)

    def _verify(self, size: int) -> None:
        there = {entry.key: entry.bytes for entry in self._asked.store.entries(self._key)}
        if (had := there.get(self._key)) != size:
            detail = f"{self._key} has {had} bytes, but {size} were written"
            raise FilesetError("error-store-verify", detail, item=self._item)

    def _record(
        self, manifest: Sequence[FilesetManifestFile], of: FileMeta, terminal: Terminal | None
    ) -> KeepingRecord:
        archived = ArchiveStrategyResult(
            ingest_strategy=NAME,
            status=record.success_status(self._item, NAME, manifest),
            manifest=tuple(manifest),
            bundle_file_meta=of,
            bundle_terminal=terminal,
            location=self._key,
        )
        objects = (KeptObject(self._key, of.size_bytes, of.sha256hex),)
        return record.of(self._item, archived, objects)
