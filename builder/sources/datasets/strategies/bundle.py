"""Bundles: the strategy that stores files as one zip below `filesets/`, packed or checked here.

Files of a platform are packed one after the other, or its own bundle is compared with its list.
"""

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from builder.http.limits import Stop
from builder.http.settings import http_settings
from builder.sources.datasets import manifest_file as files
from builder.sources.datasets.item import (
    LEFT_OUT,
    PACKED,
    FileMeta,
    FilesetManifestFile,
    FilesetPlatformItem,
    Terminal,
)
from builder.sources.datasets.manifest_file import MeasuredSink, with_digests
from builder.sources.datasets.protocols import FilesetError, OpenSink, Received, ZipSink
from builder.sources.datasets.strategies import record
from builder.sources.datasets.strategies.keys import BUNDLE
from builder.sources.datasets.strategies.record import KeepingRecord, KeptObject
from builder.sources.datasets.strategies.s3 import FILESET, ObjectStrategy
from builder.sources.datasets.strategies.strategy import ArchivingStrategy
from builder.sources.datasets.strategies.transfer import (
    Quota,
    ahead_of,
    fails_alone,
    refill,
    skip_others,
    transfer,
)
from builder.sources.datasets.strategies.zip_reader import ArchivedMember, Ranges, directory, read
from builder.zip import STORED, Bundle
from functions.snapshot.errors import Conflict

ZIP = "application/zip"
_MEMORY = 16 << 20
"""Bytes of all small files that were fetched and are not in the bundle yet."""
MISSING, EXTRA = "bundle-missing-member", "bundle-extra-member"


class Spoilt(Exception):
    """The bundle written so far is useless: the download of a large member has restarted."""


@dataclass(slots=True)
class Packing:
    """Downloads files into a bundle for a strategy; `archived` are those that it had, by path.

    Small files are fetched in parallel. Large ones are streamed, one after the other. If a member
    larger than a part restarts from its beginning, the bundle is spoilt, and Spoilt is raised. A
    file that fails alone but has spoilt the bundle is noted in `failed`, and the next bundle is
    made without it. With `is_last`, so is each file that has spoilt the bundle.
    """

    by: ArchivingStrategy
    sink: MeasuredSink
    archived: Mapping[str, FilesetManifestFile]
    failed: dict[str, FilesetError]
    is_last: bool
    _bundle: Bundle = field(init=False)
    _spoilt: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._bundle = Bundle(self.sink)

    def keep_all(self, item: FilesetPlatformItem) -> tuple[FilesetManifestFile, ...]:
        """Download the item's files into the bundle, by path. Raises FilesetError and Spoilt."""
        listed = sorted(item.files, key=lambda file: file.path)
        quota = Quota(listed, self.by.settings)
        small = _MEMORY // ahead_of(self.by.settings)

        def fetch(file: FilesetManifestFile, stop: Stop) -> tuple[Received, io.BytesIO] | None:
            wanted = self._narrow(file)
            if wanted.size is None or wanted.size > small:
                return None
            buffer = io.BytesIO()
            limit = quota.limit(wanted)
            received = self.by.downloader.download(wanted, limit, lambda: refill(buffer), stop=stop)
            return received, buffer

        def keep(
            file: FilesetManifestFile, fetched: tuple[Received, io.BytesIO] | None
        ) -> FilesetManifestFile:
            if fetched is None:
                received = self._stream(file, quota.limit(self._narrow(file)))
            else:
                received, buffer = fetched
                with self._member(file.path) as opened:
                    opened.write(buffer.getvalue())
            quota.take(received.size)
            return files.add_received(file, received)

        return tuple(transfer(item, fetch, keep, listed, self.by.settings, together=True))

    def _narrow(self, file: FilesetManifestFile) -> FilesetManifestFile:
        """Return the file as it must be. Raises FilesetError if the bundle was made without it."""
        earlier = self.archived.get(file.path)
        if file.path in self.failed:
            raise self.failed[file.path]
        return files.like(file, earlier) if earlier else file

    def _stream(self, file: FilesetManifestFile, limit: int) -> Received:
        wanted = self._narrow(file)
        try:
            received = self.by.downloader.download(wanted, limit, lambda: self._member(file.path))
        except FilesetError as error:
            if not (self._spoilt and fails_alone(error, self.by.settings)):
                raise
            self.failed[file.path] = error
            raise Spoilt from error
        if self._spoilt:
            broken = FilesetError("error-platform-download", "each attempt broke off")
            if not fails_alone(broken, self.by.settings):
                raise broken
            self.failed[file.path] = broken
            raise Spoilt
        return received

    @contextmanager
    def _member(self, path: str) -> Iterator[ZipSink]:
        if self._spoilt and not self.is_last:
            raise Spoilt
        if self._spoilt:
            with Path(os.devnull).open("wb") as nowhere:
                yield nowhere
            return
        with self._bundle.member(path) as opened:
            whole = False
            try:
                yield opened
                whole = True
            finally:
                self._spoilt = not whole and opened.spilt

    def finish(
        self, manifest: Sequence[FilesetManifestFile], key: str
    ) -> tuple[tuple[FilesetManifestFile, ...], FileMeta]:
        """Complete the bundle at `key`; return the files with their places, and the bundle."""
        members = {member.name: member for member in self._bundle.end()}
        placed = []
        for file in manifest:
            if (member := members.get(file.path)) is not None:
                if (member.size, member.crc32) != (file.size, file.crc32):
                    detail = f"{file.path} differs from the received bytes"
                    raise FilesetError("error-store-verify", detail)
                file = replace(file, key=key, offset=member.offset, compression=STORED)
            placed.append(file)
        return tuple(placed), self.sink.meta()


def pack(
    item: FilesetPlatformItem,
    by: ArchivingStrategy,
    open_sink: OpenSink,
    key: str,
    earlier: KeepingRecord | None = None,
) -> tuple[tuple[FilesetManifestFile, ...], FileMeta]:
    """Pack an item into a bundle at `key`; return its files with their places, and the bundle.

    If a large member restarts from its beginning, the bundle is spoilt, and packing starts again
    with a new sink. A try that only showed which file fails does not count, and the last one makes
    a bundle without each such member. The bundle must be that of the record `earlier`, or else
    FilesetError (mismatch-existing) is raised before the sink ends.
    """
    archived = record.archived_files(earlier)
    failed: dict[str, FilesetError] = {}
    left = http_settings(by.settings, "fileset").tries
    while True:
        before = len(failed)
        try:
            with open_sink() as sink:
                measured = MeasuredSink(sink, ZIP)
                bundle = Packing(by, measured, archived, failed, is_last=left <= 1)
                files, meta = bundle.finish(bundle.keep_all(item), key)
                if earlier is not None and earlier.archived.bundle_file_meta != meta:
                    detail = f"{key} is missing; a new bundle would differ from it"
                    raise FilesetError("mismatch-existing", detail)
                return files, meta
        except Spoilt:
            left -= len(failed) == before


def examine(
    item: FilesetPlatformItem,
    random: BinaryIO | Ranges,
    forward: BinaryIO,
    key: str,
    by: ArchivingStrategy,
    partial: bool,
) -> tuple[FilesetManifestFile, ...]:
    """Return the item's files with their places in a bundle at `key` that this run did not pack.

    Its directory is read from `random`, and its members from `forward`, which may be the same.
    Raises FilesetError as the zip reader and `reconcile` do.
    """
    entries = directory(random, by.settings["fileset.limits"]["bytes"])
    if forward.seekable():
        forward.seek(0)
    return reconcile(item, list(read(entries, forward, by.go_on)), key, partial=partial)


def reconcile(
    item: FilesetPlatformItem,
    members: Sequence[ArchivedMember],
    key: str,
    *,
    partial: bool = False,
) -> tuple[FilesetManifestFile, ...]:
    """Return the item's files with their places in the bundle at `key`, and its extra files.

    A platform's bundle may lack large or restricted files, and may have files of the platform's
    own. With `partial`, listed files that it lacks or has otherwise have the status of that, as
    long as it has others. Otherwise raises FilesetError with all files in its manifest:
    bundle-missing-member, mismatch-size, mismatch-md5 and so on. Correct files are then marked as
    skipped, because the bundle is not kept.
    """
    by_path = _by_path(item, members)
    manifest = []
    for file in item.manifest or ():
        member = by_path.pop(file.path, None)
        if file.status in LEFT_OUT and member is None:
            manifest.append(file)
        elif member is None:
            manifest.append(replace(file, status=MISSING))
        elif wrong := member.digests.mismatch(file):
            manifest.append(replace(file, status=wrong))
        else:
            manifest.append(_place(with_digests(file, member.digests), member, key))
    for path, member in by_path.items():
        extra = with_digests(FilesetManifestFile(path=path), member.digests)
        manifest.append(replace(_place(extra, member, key), status=EXTRA))
    faults = [f for f in manifest if f.status == MISSING or str(f.status).startswith("mismatch-")]
    if faults and not (partial and len(faults) < len(item.files)):
        shown = ", ".join(file.path for file in faults[:5])
        detail = f"{len(faults)} of {len(item.files)} files are missing from the bundle or differ "
        states = skip_others(item, {file.path: file for file in faults})
        raise FilesetError(str(faults[0].status), f"{detail}listed: {shown}", manifest=states)
    return tuple(manifest)


def _by_path(
    item: FilesetPlatformItem, members: Sequence[ArchivedMember]
) -> dict[str, ArchivedMember]:
    """Return the members by path, without a common top folder that the manifest does not have."""
    by_path = {member.entry.path: member for member in members}
    listed = {file.path for file in item.manifest or ()}
    heads = {path.partition("/")[0] for path in by_path}
    if len(heads) == 1 and not listed & by_path.keys():
        within = {path.partition("/")[2]: member for path, member in by_path.items()}
        if listed & within.keys():
            return within
    return by_path


def _place(file: FilesetManifestFile, member: ArchivedMember, key: str) -> FilesetManifestFile:
    extra: dict[str, Any] = dict(file.extra)
    entry = member.entry
    if (raw := entry.raw.decode("utf-8", "backslashreplace")) != file.path:
        extra["member"] = raw
    if entry.compression != "stored":
        extra[PACKED] = entry.packed
    return replace(file, key=key, offset=member.offset, compression=entry.compression, extra=extra)


NAME = "s3-fileset-bundled"


@dataclass(frozen=True, slots=True)
class Bundled(ArchivingStrategy):
    """The strategy s3-fileset-bundled.

    The bundle is written atomically. With `platform_bundle` of fileset.strategy it is the
    platform's own bundle. Files that the bundle lacks become objects beside it later.
    """

    name: str = field(default=NAME, init=False)

    def archive(
        self, item: FilesetPlatformItem, base: str, first: KeepingRecord | None
    ) -> KeepingRecord:
        """Archive the item's files as one zip, unless an earlier run has stored it."""
        key = base + BUNDLE
        if (existing := self._find(item, key, first)) is not None:
            return existing
        is_foreign = self.settings["fileset.strategy"]["platform_bundle"] and item.web_bundle_url
        if first is not None:
            is_foreign = first.archived.bundle_terminal is not None
        try:
            if is_foreign:
                return self._download(item, key, first)
            most = Quota(item.files, self.settings).most_written
            manifest, meta = pack(item, self, lambda: self.store.creating(key, most), key, first)
            return first or _record(item, key, manifest, meta)
        except Conflict:
            if (existing := self._find(item, key, first)) is None:  # another run was first
                raise
            return existing

    def complete(self, item: FilesetPlatformItem, base: str, first: KeepingRecord) -> KeepingRecord:
        """Archive a missing bundle again, and files that it lacks as objects beside it."""
        key = base + BUNDLE
        within = {f.path for f in record.archived_files(first).values() if f.key == key}
        members, others = record.split(item, within)
        stored = self.archive(members, base, first)
        if not others.manifest:
            return stored
        files = ObjectStrategy(
            FILESET, self.store, self.downloader, self.settings, go_on=self.go_on
        )
        return self.extend(item, base, first, lambda: files.archive(others, base, first))

    def _find(
        self, item: FilesetPlatformItem, key: str, first: KeepingRecord | None
    ) -> KeepingRecord | None:
        """Return the record of an existing bundle that holds the files as listed, or None.

        A bundle that differs and was never recorded is removed, because no result mentions it.
        """
        if key not in (entry.key for entry in self.store.entries(key)):
            return None
        if first is not None:
            return first
        try:
            return self._examine(item, key, None)
        except FilesetError as error:
            if error.status in ("deadline-exceeded", "cancelled"):
                raise
            record.forget(self.store, key)
            return None

    def _download(
        self, item: FilesetPlatformItem, key: str, first: KeepingRecord | None
    ) -> KeepingRecord:
        """Download the platform's bundle and return its record. Raises FilesetError."""
        earlier = first.archived.bundle_file_meta if first else None
        wanted = FilesetManifestFile(
            path=BUNDLE,
            size=earlier.size_bytes if earlier else None,
            sha256=earlier.sha256hex if earlier else None,
            mimetype=ZIP,
            platform_url=item.web_bundle_url,
        )
        most = self.settings["fileset.limits"]["bytes"]
        received = self.downloader.download(
            wanted, most, lambda: self.store.creating(key, wanted.size or most)
        )
        if first is not None:
            return first
        try:
            return self._examine(item, key, files.terminal(received))
        except FilesetError:
            record.forget(self.store, key)
            raise

    def _examine(
        self, item: FilesetPlatformItem, key: str, terminal: Terminal | None
    ) -> KeepingRecord:
        """Return the record of a bundle that this run did not pack. Raises FilesetError."""
        partial = terminal is not None and bool(self.settings["fileset.partial"])
        with self.store.open(key) as stream:
            manifest = examine(item, Ranges(self.store, key), stream, key, self, partial)
        whole = files.compute_digests(record.chunks(self.store, key, self.go_on))
        archive = files.with_digests(FilesetManifestFile(path=BUNDLE, mimetype=ZIP), whole)
        return _record(item, key, manifest, files.meta(archive), terminal)


def _record(
    item: FilesetPlatformItem,
    key: str,
    manifest: Sequence[FilesetManifestFile],
    of: FileMeta,
    terminal: Terminal | None = None,
) -> KeepingRecord:
    objects = [KeptObject(key, of.size_bytes, of.sha256hex)]
    return record.of_files(
        item, NAME, manifest, objects, terminal=terminal, bundle=of, location=key
    )
