"""Strategy that stores each file as one object below `filesets/`.

Large files are streamed into the store. Small ones are written many at once while others are
fetched, because a disk takes longer to sync a small file than a network to bring it.
"""

import contextlib
import io
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from builder.http.limits import Stop
from builder.sources.datasets import manifest_file as files
from builder.sources.datasets.item import FilesetManifestFile, FilesetPlatformItem, Terminal
from builder.sources.datasets.protocols import FilesetError, ZipSink
from builder.sources.datasets.strategies import record
from builder.sources.datasets.strategies.keys import file_keys
from builder.sources.datasets.strategies.record import KeepingRecord, KeptObject
from builder.sources.datasets.strategies.strategy import ArchivingStrategy
from builder.sources.datasets.strategies.transfer import Quota, refill, transfer
from functions.snapshot.errors import Conflict, StoreError
from functions.snapshot.store import Writer

FILE, FILESET = "s3-file", "s3-fileset"
SMALL = 1 << 18
"""Bytes of an object that is written together with others."""
_MANY, _BYTES, _SECONDS = 1024, 8 << 20, 2.0
"""Objects, bytes and age at which they are written: a killed process loses no more."""


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A file that was fetched: where from, and its bytes if they are not stored yet."""

    file: FilesetManifestFile
    terminal: Terminal | None = None
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class ObjectStrategy(ArchivingStrategy):
    """The strategies s3-file and s3-fileset, of which `name` is one."""

    def archive(
        self, item: FilesetPlatformItem, base: str, first: KeepingRecord | None = None
    ) -> KeepingRecord:
        """Archive each file as an object; one in the record `first` only if its object is missing.

        Raises FilesetError and StoreError.
        """
        archived = record.archived_files(first)
        keys = file_keys(base, [file.path for file in item.files])
        keys |= {path: file.key for path, file in archived.items() if file.key}
        present = {entry.key for entry in self.store.entries(base)}
        quota = Quota(item.files, self.settings)
        terminals: list[Terminal] = []
        small = SmallObjects(self.store, self._check_rival)

        def fetch(file: FilesetManifestFile, stop: Stop) -> _Fetched:
            key, earlier = keys[file.path], archived.get(file.path)
            stored = self._reuse(file, key, earlier) if key in present else None
            return _Fetched(stored) if stored else self._download(file, key, earlier, quota, stop)

        def keep(file: FilesetManifestFile, fetched: _Fetched) -> FilesetManifestFile:
            quota.take(fetched.file.size or 0)
            terminals.extend(filter(None, [fetched.terminal]))
            if fetched.data is not None:
                small.add(fetched.file, fetched.data)
            return fetched.file

        try:
            stored = transfer(item, fetch, keep, item.files, self.settings, idle=small.write)
            manifest = tuple(stored)
        except FilesetError:
            with contextlib.suppress(StoreError, FilesetError):  # the first error says more
                small.write()  # a later run finds them
            raise
        small.write()
        return record.of_files(
            item,
            self.name,
            manifest,
            [KeptObject(f.key, f.size or 0, f.sha256 or "") for f in manifest if f.key],
            terminal=terminals[-1] if terminals else None,
            location=manifest[0].key if self.name == FILE else base,
        )

    def complete(self, item: FilesetPlatformItem, base: str, first: KeepingRecord) -> KeepingRecord:
        """Archive what an interrupted run left or what failed then, and missing objects again."""
        stored = self.archive(item, base, first)
        manifest = stored.archived.manifest
        return record.extend(self.store, base, first, item, manifest, stored.objects)

    def _reuse(
        self, file: FilesetManifestFile, key: str, earlier: FilesetManifestFile | None
    ) -> FilesetManifestFile | None:
        """Return a file whose object exists, None if it must be downloaded.

        An unrecorded object with other bytes is removed, because no result mentions it. Raises
        FilesetError (mismatch-existing) if a recorded object was altered.
        """
        if earlier is not None:
            if (size := self.store.size(key)) != earlier.size:
                detail = (
                    f"{key} has {size or 0:,} bytes, but had {earlier.size:,} when it was "
                    "archived; remove it to fetch it again"
                )
                raise FilesetError("mismatch-existing", detail)
            return earlier
        digests = files.compute_digests(record.chunks(self.store, key, self.go_on), file)
        if digests.mismatch(file):
            record.forget(self.store, key)
            return None
        return replace(files.with_digests(file, digests), key=key)

    def _download(
        self,
        file: FilesetManifestFile,
        key: str,
        earlier: FilesetManifestFile | None,
        quota: Quota,
        stop: Stop,
    ) -> _Fetched:
        # With a record, the same bytes as the first time, whatever the platform lists now.
        wanted = file if earlier is None else files.like(file, earlier)
        limit = quota.limit(wanted)
        most = limit if wanted.size is None else wanted.size
        is_small = len(quota.files) > 1 and wanted.size is not None and most <= SMALL
        buffer = io.BytesIO() if is_small else None

        def open_sink() -> AbstractContextManager[ZipSink]:
            return refill(buffer) if buffer else self.store.creating(key, most)

        try:
            received = self.downloader.download(wanted, limit, open_sink, stop=stop)
        except Conflict:  # another run wrote it meanwhile
            return _Fetched(self._check_rival(replace(file, key=key), earlier))
        stored = earlier or replace(files.add_received(file, received), key=key)
        return _Fetched(stored, files.terminal(received), buffer.getvalue() if buffer else None)

    def _check_rival(
        self, file: FilesetManifestFile, earlier: FilesetManifestFile | None = None
    ) -> FilesetManifestFile:
        """Return the file that another run has stored. Raises Conflict if it is another one."""
        key = file.key or ""
        exists = self.store.size(key) is not None
        if not exists or (stored := self._reuse(file, key, earlier)) is None:
            raise Conflict(f"{key} already exists")
        return stored


@dataclass(slots=True)
class SmallObjects:
    """Writes objects to a store; `settle` is called for one that was there already.

    All methods are for one thread, while others fetch. They raise StoreError, and what `settle`
    raises.
    """

    store: Writer
    settle: Callable[[FilesetManifestFile], object]
    _waiting: list[tuple[FilesetManifestFile, bytes]] = field(init=False, default_factory=list)
    _bytes: int = field(init=False, default=0)
    _since: float = field(init=False, default=0.0)

    def add(self, file: FilesetManifestFile, data: bytes) -> None:
        """Take a file with its key, and write if there are enough."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append((file, data))
        self._bytes += len(data)
        late = time.monotonic() - self._since >= _SECONDS
        if late or self._bytes >= _BYTES or len(self._waiting) >= _MANY:
            self.write()

    def write(self) -> None:
        """Write the waiting objects."""
        batch, self._waiting, self._bytes = self._waiting, [], 0
        objects = [(file.key or "", data) for file, data in batch]
        for (file, _), is_written in zip(batch, self.store.create_all(objects), strict=True):
            if not is_written:
                self.settle(file)
