"""Strategy that stores each file as one object below `filesets/`.

Large files are streamed into the store. Small ones are written many at once while others are
fetched, because a disk takes longer to sync a small file than a network to bring it.
"""

import contextlib
import io
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from builder.http.limits import Stop
from builder.sources.datasets import manifest_file as files
from builder.sources.datasets.item import FilesetManifestFile, FilesetPlatformItem, Terminal
from builder.sources.datasets.protocols import FilesetError, ZipSink
from builder.sources.datasets.strategies import record
from builder.sources.datasets.strategies.keys import file_keys as keys_of
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
class ObjectStrategy(ArchivingStrategy):
    """The strategies s3-file and s3-fileset, of which `name` is one."""

    def archive(self, item: FilesetPlatformItem, base: str) -> KeepingRecord:
        """Archive each of the item's files as an object."""
        return self.keep(item, base, None)

    def complete(self, item: FilesetPlatformItem, base: str, first: KeepingRecord) -> KeepingRecord:
        """Archive what an interrupted run left or what failed then, and missing objects again."""
        stored = self.keep(item, base, first)
        manifest = stored.archived.manifest
        return record.extend(self.store, base, first, item, manifest, stored.objects)

    def keep(
        self, item: FilesetPlatformItem, base: str, first: KeepingRecord | None
    ) -> KeepingRecord:
        """Store the item's files below `base`, and return their record, which is not written yet.

        Files in the record `first` are fetched only if their objects are missing.
        """
        run = _FileRun(self, item, base, first)
        return run.record(run.keep_all())


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A file that was fetched: where from, and its bytes if they are not stored yet."""

    file: FilesetManifestFile
    terminal: Terminal | None = None
    data: bytes | None = None


class _FileRun:
    """One attempt to archive an item below `base`; `earlier` is its record, if it has one."""

    def __init__(
        self,
        strategy: ObjectStrategy,
        item: FilesetPlatformItem,
        base: str,
        earlier: KeepingRecord | None,
    ) -> None:
        self._strategy = strategy
        self._item = item
        self._base = base
        self._many = len(item.files) > 1
        self._keys = keys_of(self._base, [file.path for file in item.files])
        self._there = {entry.key for entry in strategy.store.entries(self._base)}
        self._archived = record.archived_files(earlier)
        self._keys |= {path: file.key for path, file in self._archived.items() if file.key}
        self._quota = Quota(item.files, strategy.settings)
        self._small = SmallObjects(strategy.store, self._settle)
        self._taken: dict[str, FilesetManifestFile] = {}
        self._terminal: Terminal | None = None

    def keep_all(self) -> tuple[FilesetManifestFile, ...]:
        """Return all files once their objects are stored. Raises FilesetError and StoreError."""
        item, settings, begin = self._item, self._strategy.settings, self._small.begin
        try:
            manifest = tuple(
                transfer(item, self._fetch, self._keep, item.files, settings, idle=begin)
            )
        except FilesetError:
            with contextlib.suppress(StoreError, FilesetError):  # the first error says more
                self._small.finish()  # a later run finds them
            raise
        self._small.finish()
        return manifest

    def _fetch(self, file: FilesetManifestFile, stop: Stop) -> _Fetched:
        key = self._keys[file.path]
        earlier = self._archived.get(file.path)
        stored = self._reuse(file, key, earlier) if key in self._there else None
        return self._download(file, key, earlier, stop) if stored is None else _Fetched(stored)

    def _keep(self, file: FilesetManifestFile, fetched: _Fetched) -> FilesetManifestFile:
        self._quota.take(fetched.file.size or 0)
        self._terminal = fetched.terminal or self._terminal
        if fetched.data is not None:
            key = fetched.file.key or ""
            self._taken[key] = fetched.file
            self._small.add(key, fetched.data)
        return fetched.file

    def _settle(self, key: str) -> None:
        """Accept a small file that another run has stored. Raises Conflict if it is another one."""
        self._check_rival(self._taken[key], key, None)

    def _reuse(
        self, file: FilesetManifestFile, key: str, earlier: FilesetManifestFile | None
    ) -> FilesetManifestFile | None:
        """Return a file whose object exists, None if it must be downloaded.

        An unrecorded object with other bytes is removed, because no result mentions it. Raises
        FilesetError (mismatch-existing) if a recorded object was altered.
        """
        if earlier is not None:
            if (size := self._strategy.store.size(key)) != earlier.size:
                detail = (
                    f"{key} has {size or 0:,} bytes, but had {earlier.size:,} when it was "
                    "archived; remove it to fetch it again"
                )
                raise FilesetError("mismatch-existing", detail)
            return earlier
        chunks = record.chunks(self._strategy.store, key, self._strategy.go_on)
        digests = files.compute_digests(chunks, file)
        if digests.mismatch(file):
            record.forget(self._strategy.store, self._base, key)
            return None
        return replace(files.with_digests(file, digests), key=key)

    def _download(
        self, file: FilesetManifestFile, key: str, earlier: FilesetManifestFile | None, stop: Stop
    ) -> _Fetched:
        # With a record, the same bytes as the first time, whatever the platform lists now.
        wanted = file if earlier is None else files.like(file, earlier)
        limit = self._quota.limit(wanted)
        most = limit if wanted.size is None else wanted.size
        is_small = self._many and wanted.size is not None and most <= SMALL
        buffer = io.BytesIO() if is_small else None

        def open_sink() -> AbstractContextManager[ZipSink]:
            return refill(buffer) if buffer else self._strategy.store.creating(key, most)

        try:
            received = self._strategy.downloader.download(wanted, limit, open_sink, stop=stop)
        except Conflict:  # another run wrote it meanwhile
            return _Fetched(self._check_rival(file, key, earlier))
        stored = earlier or replace(files.add_received(file, received), key=key)
        return _Fetched(stored, files.terminal(received), buffer.getvalue() if buffer else None)

    def _check_rival(
        self, file: FilesetManifestFile, key: str, earlier: FilesetManifestFile | None
    ) -> FilesetManifestFile:
        """Return the file that another run has stored. Raises Conflict if it is another one."""
        exists = self._strategy.store.size(key) is not None
        if not exists or (stored := self._reuse(file, key, earlier)) is None:
            raise Conflict(f"{key} already exists")
        return stored

    def record(self, manifest: tuple[FilesetManifestFile, ...]) -> KeepingRecord:
        """Return the record of all files."""
        name = self._strategy.name
        location = manifest[0].key if name == FILE else self._base
        archived = record.result_of(
            self._item, name, manifest, terminal=self._terminal, location=location
        )
        objects = tuple(KeptObject(f.key, f.size or 0, f.sha256 or "") for f in manifest if f.key)
        return record.of(self._item, archived, objects)


@dataclass(slots=True)
class SmallObjects:
    """Writes objects to a store; `settle` is called for the key of one that was there already.

    All methods are for one thread, and raise what an earlier write raised: StoreError, and what
    `settle` raises. At most twice the bytes of a batch are in memory.
    """

    store: Writer
    settle: Callable[[str], None]
    _waiting: list[tuple[str, bytes]] = field(init=False, default_factory=list)
    _bytes: int = field(init=False, default=0)
    _since: float = field(init=False, default=0.0)
    _pool: ThreadPoolExecutor | None = field(init=False, default=None)
    _writing: Future[None] | None = field(init=False, default=None)

    def add(self, key: str, data: bytes) -> None:
        """Take an object, and begin to write if there are enough."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append((key, data))
        self._bytes += len(data)
        late = time.monotonic() - self._since >= _SECONDS
        if late or self._bytes >= _BYTES or len(self._waiting) >= _MANY:
            self.begin()

    def begin(self) -> None:
        """Begin to write the waiting objects, after those before them."""
        self._wait()
        batch, self._waiting, self._bytes = self._waiting, [], 0
        if batch:
            self._pool = self._pool or ThreadPoolExecutor(1, "small-objects")
            self._writing = self._pool.submit(self._write, batch)

    def finish(self) -> None:
        """Write all objects."""
        try:
            self.begin()
            self._wait()
        finally:
            if self._pool is not None:
                self._pool.shutdown()

    def _wait(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _write(self, batch: Sequence[tuple[str, bytes]]) -> None:
        for (key, _), written in zip(batch, self.store.create_all(batch), strict=True):
            if not written:
                self.settle(key)
