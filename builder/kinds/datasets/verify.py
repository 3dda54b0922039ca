"""Audit of filesets: reads the stored files of datasets and checks them against their records.

Listings and records are checked first, which is quick. Then every object that a record names is
read. An object without a record is unfinished. An object at a place that Sheaf never writes is a
stray. Readers see neither of them. A record can be changed together with its objects, so both are
compared with the newest snapshot, which is the root of trust.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, groupby, starmap

from builder.kinds.kind import KindAudit
from builder.runtime import Advance
from builder.snapshot.audit import SnapshotContents, StoreAudit
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies import record as records
from builder.sources.datasets.strategies.keys import (
    BUNDLE,
    FILES,
    FILESETS,
    LEASES,
    RECORD,
    WARCS,
    part,
    prefix_of,
)
from builder.sources.datasets.strategies.platform_answers import ANSWERS
from builder.sources.datasets.strategies.record import KeepingRecord, KeptObject
from builder.store.durable import digest_object
from builder.store.findings import DAMAGE, Finding
from builder.text import tally
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import ListedObject
from functions.store import engine

_ALGORITHMS = ("sha256", "sha1", "md5")
_WARC = re.compile(rf"{WARCS}[^/]+-[0-9a-f]{{12}}-[0-9]{{14}}\.warc\.gz")
_LISTED = """
SELECT key, path, place, compression, bytes, sha256, sha1, md5
FROM {} WHERE key IS NOT NULL ORDER BY key, place, path
"""
_STEP = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class _PublishedFile:
    """A row of the table `files`: object, path, place in the object, bytes and digests."""

    key: str
    path: str
    place: int | None
    compression: str | None
    bytes: int
    sha256: str | None
    sha1: str | None
    md5: str | None

    @property
    def is_plain(self) -> bool:
        """Whether the bytes are not packed."""
        return self.compression in (None, "stored")


@dataclass
class FilesetAudit(KindAudit):
    """Report: datasets with a record, objects that the records name."""

    nouns = ("archived dataset", "archived datasets")
    keys = ("datasets", "kept", "kept_read")
    _sizes: dict[str, int] = field(default_factory=dict)
    _due: list[KeptObject] = field(default_factory=list)
    _digests: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the objects that were read."""
    _records: dict[tuple[str, str], dict[str, str | None]] = field(default_factory=dict)
    """Digests of files by key and path, as the records have them."""
    _unread: set[str] = field(default_factory=set)
    """Places whose record cannot be read."""

    @staticmethod
    def begin(audit: StoreAudit) -> "FilesetAudit":
        """Check all but the bytes of objects."""
        check = FilesetAudit(audit)
        if not audit.listed:
            return check
        check._sizes = {entry.key: entry.bytes for entry in audit.store.entries(WARCS)}
        warcs, listed = {*check._sizes}, audit.store.entries(FILESETS)
        for base, entries in groupby(listed, key=lambda entry: prefix_of(entry.key)):
            warcs -= check._place(base, list(entries))
        for key in sorted(warcs):
            if _WARC.fullmatch(key):
                check._find("fileset-unfinished", key, "no record of a dataset names it")
            else:
                check._find("fileset-stray", key, "no dataset's WARC has such a name")
        return check

    def finish(self, advance: Advance) -> None:
        """Read the chosen objects and add findings on their content."""
        for stored in self._due:
            try:
                digest, _ = digest_object(self.store, stored.key, advance)
            except MissingObject:
                self._find("fileset-missing", stored.key, "it was removed during the check")
                continue
            except DamagedStore as error:
                self._find("fileset-altered", stored.key, str(error))
                continue
            self.read += 1
            self._digests[stored.key] = digest
            if digest != stored.sha256:
                self._find("fileset-altered", stored.key, "its SHA-256 differs from its record")
        damaged = {finding.object for finding in self.findings if finding.kind == DAMAGE}
        published: dict[str, Finding] = {}
        if self.audit.newest is not None and self.audit.listed:
            with suppress(DamagedStore, MissingObject):  # reported with the snapshot's own files
                for finding in self._check_listed(self.audit.read_snapshot(self.audit.newest)):
                    if finding.object not in damaged:
                        published.setdefault(finding.object, finding)
        # What is published is no remainder that may be removed.
        others = [finding for finding in self.findings if finding.object not in published]
        self.findings = [*published.values(), *others]

    def _check_listed(self, snapshot: SnapshotContents) -> Iterator[Finding]:
        """Check the objects that a snapshot lists."""
        paths = [str(self.store.local(file.key)) for file in snapshot.files("files")]
        if not paths:
            return
        sql = _LISTED.format(engine.table("$files"))
        with self.audit.open_database() as (connection, _), engine.reading("the table files"):
            rows = engine.batches(connection, sql, {"files": paths})
            for file in starmap(_PublishedFile, chain.from_iterable(rows)):
                yield from self._check_file(file)

    def _check_file(self, file: "_PublishedFile") -> Iterator[Finding]:
        """Compare a published file with its object and with the record that names it."""
        size, shown = self._size(file.key), "the newest snapshot lists it"
        if size is None:
            yield Finding("fileset-missing", file.key, f"{shown}, but it does not exist")
            return
        # Of packed files, only the offset is known.
        end = (file.place or 0) + (file.bytes if file.is_plain else 0)
        if size < end or (file.place is None and size != end):
            problem = f"it has {size:,} bytes, but {end:,} in the newest snapshot"
            yield Finding("fileset-wrong", file.key, problem)
            return
        base = prefix_of(file.key)
        recorded = self._records.get((file.key, file.path))
        if recorded is None:
            if base not in self._unread:
                problem = f"{shown} with {file.path}, but no record of a dataset has that file"
                yield Finding("fileset-missing", base + RECORD if base else file.key, problem)
            return
        digests = zip(_ALGORITHMS, (file.sha256, file.sha1, file.md5), strict=True)
        if any(value and value != recorded[name] for name, value in digests):
            problem = f"its digests of {file.path} differ from those that were published"
            yield Finding("fileset-wrong", base + RECORD if base else file.key, problem)
        read = self._digests.get(file.key)
        if read is not None and file.is_plain and file.sha256 is not None:
            if file.place is not None:
                read = self._read_range(file)
            if read != file.sha256:
                problem = f"the SHA-256 of {file.path} differs from the one that was published"
                yield Finding("fileset-altered", file.key, problem)

    def _read_range(self, file: "_PublishedFile") -> str:
        """Return the SHA-256 of a file that is stored unpacked in a bundle."""
        place = file.place or 0
        with self.store.local(file.key, [(place, file.bytes)]).open("rb") as source:
            source.seek(place)
            digest, left = hashlib.sha256(), file.bytes
            while left and (piece := source.read(min(left, _STEP))):
                digest.update(piece)
                left -= len(piece)
        return digest.hexdigest()

    def _place(self, base: str | None, entries: list[ListedObject]) -> set[str]:
        """Check the objects at one place (None: at no place); return the keys in its record."""
        sizes = {entry.key: entry.bytes for entry in entries}
        self._sizes |= sizes
        own = base or ""
        for key in sizes:
            if key.startswith(LEASES):
                continue
            name = key.removeprefix(own)
            if not base or not (name in (RECORD, BUNDLE) or name.startswith((FILES, ANSWERS))):
                self._find("fileset-stray", key, "no dataset has a file there")
        if base is None:
            return set()
        if base + RECORD not in sizes:
            there = f"{tally(len(sizes), 'object')}, {tally(sum(sizes.values()), 'byte')}"
            problem = f"{there}, and no {RECORD}"
            self._find("fileset-unfinished", base, problem)
            return set()
        self.count += 1
        try:
            record = records.read(self.store, base)
        except (FilesetError, DamagedStore) as error:
            problem = error.detail if isinstance(error, FilesetError) else str(error)
            self._find("fileset-wrong", base + RECORD, problem)
            self._unread.add(base)
            return set()
        if record is None:
            self._find("fileset-missing", base + RECORD, "it was removed during the check")
            return set()
        return self._check_record(base, record, sizes)

    def _check_record(self, base: str, record: KeepingRecord, sizes: Mapping[str, int]) -> set[str]:
        """Check the objects of a record; return their keys."""
        named = {stored.key for stored in record.objects}
        for file in record.archived.manifest:
            if file.key is not None:
                self._records[file.key, file.path] = {
                    name: getattr(file, name) for name in _ALGORITHMS
                }
        for problem in _contradictions(base, record, named):
            self._find("fileset-wrong", base + RECORD, problem)
        for stored in record.objects:
            self.objects += 1
            size = self._size(stored.key)
            if size is None:
                self._find("fileset-missing", stored.key, f"{base}{RECORD} names it")
            elif size != stored.bytes:
                problem = f"it has {size:,} bytes, but {stored.bytes:,} in its record"
                self._find("fileset-altered", stored.key, problem)
            elif self.audit.is_read(stored.key):
                self.bytes += size
                self._due.append(stored)
        for key in sorted(sizes.keys() - named - {base + RECORD}):
            if not key.removeprefix(base).startswith((FILES, BUNDLE, ANSWERS)):
                continue
            if self.store.size(key) is not None:  # a run removes such objects when it ends
                self._find("fileset-stray", key, "its dataset's record does not name it")
        return named

    def _size(self, key: str) -> int | None:
        """Return an object's size; ask the store for objects written after the listing."""
        size = self._sizes.get(key)
        return self.store.size(key) if size is None else size

    def _find(self, code: str, key: str, problem: str) -> None:
        self.findings.append(Finding(code, key, problem))


def _contradictions(base: str, record: KeepingRecord, named: set[str]) -> Iterator[str]:
    parts = (record.platform_name, record.platform_domain or "", record.platform_id or "")
    if not base.startswith(FILESETS + "".join(part(text) + "/" for text in parts)):
        yield "it belongs to another dataset"
    if any(prefix_of(key) != base and not key.startswith(WARCS) for key in named):
        yield "it names an object outside of its dataset's place"
    lost = [f.path for f in record.archived.manifest if f.key is not None and f.key not in named]
    if lost:
        yield f"the file {lost[0]} is not in any object that it names"
