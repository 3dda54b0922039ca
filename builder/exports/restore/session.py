"""Session of a restore: fetches the missing files of a plan into a folder."""

import errno
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from builder.exports.restore import captures, pages
from builder.exports.restore.captures import CaptureSource, MissingError, RebuildError
from builder.exports.restore.folder import RestoreFolder
from builder.exports.restore.manifest import (
    ManifestEntries,
    ManifestEntry,
    RestoreReport,
    of_file,
)
from builder.exports.restore.names import MANIFEST
from builder.exports.restore.plan import Plan, Planned
from builder.runtime import Advance, Progress
from builder.store.durable import sync_file
from builder.threads import map_in_order
from functions.content.replay.page_bytes import KINDS

_WAITING = 4
"""Number of waiting files for each file that is being fetched."""


@dataclass(frozen=True, slots=True)
class RestoreJob:
    """Options: `jobs` files are fetched at once, each of at most `largest` bytes.

    `converted` rewrites links, `linked` makes files with the same bytes one file on disk.
    """

    jobs: int = 4
    largest: int = 1 << 31
    converted: bool = False
    linked: bool = False


@dataclass(slots=True)
class RestoreSession:
    """Restores the files of a plan. `advance` is called with the number of files since its last
    call. `part` opens the progress of one file, by its declared bytes.

    Setting `stop` ends all requests, including those of the source.
    """

    source: CaptureSource
    plan: Plan
    folder: RestoreFolder
    entries: ManifestEntries
    job: RestoreJob
    advance: Callable[[int], None] = lambda many: None
    stop: threading.Event = field(default_factory=threading.Event)
    part: Progress = lambda declared: nullcontext(lambda count: None)
    report: RestoreReport = field(init=False, default_factory=RestoreReport)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _journal: BinaryIO = field(init=False)
    _mark: str | None = field(init=False, default=None)

    def restore(self) -> RestoreReport:
        """Fetch the missing files, and write the manifest.

        Raises SheafError if the source becomes unavailable, and OSError if the disk is full. Files
        restored until then are kept and are not fetched again.
        """
        if (earlier := self.folder.manifest()) is not None:
            with earlier:
                self.entries.load(earlier)
        self._mark = self.plan.fingerprint() if self.job.converted else None
        with self.folder.journal() as self._journal:
            self._journal.write(b"\n")  # ends a line that was cut off
            self._clear()
            self._fetch()
        self._write_manifest()
        return self.report

    def _clear(self) -> None:
        """Remove files of an earlier restore that are not planned at that path."""
        for path in self.entries.paths():
            if self.plan.holds(path):
                continue
            entry = self.entries.of(path)
            if entry and self._is_unchanged(path, entry):
                self.folder.remove(path)
                self.report.removed += 1
            self.entries.remove(path)

    def _fetch(self) -> None:
        jobs = self.job.jobs
        entries = map_in_order(
            lambda lacking: self._restore(*lacking),
            self._lacking(),
            jobs,
            jobs * _WAITING,
            self.stop,
        )
        with closing(entries):
            for entry in entries:
                self.report.add(entry)
                self.advance(1)

    def _lacking(self) -> Iterator[tuple[Planned, ManifestEntry | None]]:
        for file in self.plan.files():
            entry = self.entries.of(file.path)
            if (
                entry
                and entry.missing is None
                and (entry.identifier, entry.url) == (file.identifier, file.url)
                and entry.renamed == (file.why or None)
                and entry.converted in (None, self._mark)
                and (entry.converted is not None or not self._is_page(file))
                and self._is_unchanged(file.path, entry)
            ):
                self.report.add(entry, is_there=True)
                with self.part(_size_of(file)):
                    self.advance(1)
            else:
                yield file, entry

    def _is_unchanged(self, path: str, entry: ManifestEntry) -> bool:
        """Return whether the file at a path is that of its entry, by size and time."""
        time = None if entry.mtime is None else entry.mtime * 10**9
        return self.folder.state(path) == (entry.size, time)

    def _is_page(self, file: Planned) -> bool:
        return self.job.converted and file.media_type in KINDS

    def _restore(self, file: Planned, before: ManifestEntry | None) -> ManifestEntry:
        """Restore a file to its path, and return its entry."""
        ours = before is not None and (
            before.missing is None or self._is_unchanged(file.path, before)
        )
        entry = of_file(file)
        try:
            if not ours and not self.folder.is_free(file.path):
                raise MissingError("in-the-way", f"{file.path} already exists")
            with self.folder.write() as (out, name), self.part(_size_of(file)) as came:
                entry = self._write(file, entry, out, came)
                return self._place(entry, name, over=ours)
        except MissingError as error:
            entry = replace(of_file(file), missing=error.code, detail=str(error))
            if before is not None and self._is_unchanged(file.path, before):
                entry = replace(entry, size=before.size, mtime=before.mtime)  # it is still there
            self._note(entry)
            return entry
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise
            raise RebuildError(f"{file.path} cannot be written: {error.strerror}") from error

    def _write(
        self, file: Planned, entry: ManifestEntry, out: BinaryIO, came: Advance
    ) -> ManifestEntry:
        with self.source.open(file.identifier, file.digest) as content:
            if content.size is not None and content.size > self.job.largest:
                raise MissingError("too-large", f"it has {content.size:,} bytes")
            sha256 = self._copy(content.stream, out, came)
        headers: Mapping[str, str] = content.headers
        mark = None
        if self._is_page(file):
            written = pages.convert(out, file, headers, self.plan)
            if written is not None:
                mark, sha256 = self._mark, written
        size = out.seek(0, os.SEEK_END)
        out.flush()
        changed = captures.modification_time(headers, file.stamp)
        mtime = int(os.fstat(out.fileno()).st_mtime) if changed is None else changed
        os.utime(out.fileno(), ns=(mtime * 10**9, mtime * 10**9))
        mtime = int(os.fstat(out.fileno()).st_mtime)  # file systems round times
        return replace(entry, size=size, mtime=mtime, sha256=sha256, converted=mark)

    def _copy(self, stream: BinaryIO, out: BinaryIO, came: Advance) -> str:
        digest, size = hashlib.sha256(), 0
        while data := stream.read(1 << 18):
            size += len(data)
            if size > self.job.largest:
                raise MissingError("too-large", f"it has more than {self.job.largest:,} bytes")
            if self.stop.is_set():
                raise RebuildError("the restore was stopped")
            digest.update(data)
            out.write(data)
            came(len(data))
        return digest.hexdigest()

    def _place(self, entry: ManifestEntry, name: str, *, over: bool) -> ManifestEntry:
        assert entry.path is not None
        # An existing file with the same bytes is linked.
        twin = self.entries.alike(entry.sha256 or "", entry.path) if self.job.linked else None
        if (
            twin is not None
            and twin.path is not None
            and not twin.missing
            and self._is_unchanged(twin.path, twin)
        ):
            linked = replace(entry, mtime=twin.mtime)
            self._note(linked)
            if self.folder.link(twin.path, entry.path, over=over):
                with self._lock:
                    self.report.linked += 1
                return linked
        self._note(entry)
        self.folder.place(name, entry.path, over=over)
        return entry

    def _note(self, entry: ManifestEntry) -> None:
        """Write an entry to the journal, before its file exists: an unlisted file is not ours."""
        with self._lock:
            self._journal.write(entry.line())
            self._journal.flush()
        self.entries.add(entry)

    def _write_manifest(self) -> None:
        with self.folder.write() as (out, name):
            for file in self.plan.files():
                entry = self.entries.of(file.path)
                assert entry is not None
                out.write(entry.line())
            for led in self.plan.redirects():
                fields = led.url, led.identifier, led.stamp, led.path, led.status
                out.write(ManifestEntry(*fields, redirect=led.goal).line())
                self.report.redirects += 1
            sync_file(out)
            self.folder.place(name, MANIFEST, over=True)


def _size_of(file: Planned) -> int:
    return max(file.length or 0, 0)
