"""Audit of filesets: reads the stored files of datasets and checks them against their records.

Listings and records are checked first, which is quick. Then every object that a record names is
read. An object without a record is unfinished. An object at a place that Sheaf never writes is a
stray. Readers see neither of them.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from builder.filesets.protocols import FilesetError
from builder.filesets.strategies import record as records
from builder.filesets.strategies.keys import (
    BUNDLE,
    FILES,
    FILESETS,
    LEASES,
    RECORD,
    WARCS,
    part,
    prefix_of,
)
from builder.filesets.strategies.platform_answers import ANSWERS
from builder.filesets.strategies.record import KeepingRecord, KeptObject
from builder.runtime import Advance
from builder.store.findings import Finding
from builder.text import tally
from functions.database import engine
from functions.snapshot.errors import MissingObject
from functions.snapshot.store import ListedObject, Writer

_WARC = re.compile(rf"{WARCS}[^/]+-[0-9a-f]{{12}}-[0-9]{{14}}\.warc\.gz")
# For packed or compressed files, only the offset is known.
_HELD = """
SELECT key, max(coalesce(place, 0) + if(compression IS NULL OR compression = 'stored', bytes, 0)),
    bool_and(place IS NULL)
FROM {} WHERE key IS NOT NULL GROUP BY key ORDER BY key
"""


@dataclass
class FilesetAudit:
    """Report: `places` with a record, `objects` that these name, and `bytes` to be read."""

    store: Writer
    chosen: Callable[[str], bool]
    places: int = 0
    objects: int = 0
    read: int = 0
    bytes: int = 0
    findings: list[Finding] = field(default_factory=list)
    _sizes: dict[str, int] = field(default_factory=dict)
    _due: list[KeptObject] = field(default_factory=list)

    @staticmethod
    def none(store: Writer) -> "FilesetAudit":
        """Return an audit without any checks."""
        return FilesetAudit(store, lambda key: False)

    @staticmethod
    def begin(store: Writer, chosen: Callable[[str], bool] = lambda key: True) -> "FilesetAudit":
        """Check all but the bytes of objects; `chosen` selects objects to read."""
        found = FilesetAudit(store, chosen)
        found._sizes = {entry.key: entry.bytes for entry in store.entries(WARCS)}
        warcs = {*found._sizes}
        for base, entries in groupby(
            store.entries(FILESETS), key=lambda entry: prefix_of(entry.key)
        ):
            warcs -= found._place(base, list(entries))
        for key in sorted(warcs):
            if _WARC.fullmatch(key):
                found._find("fileset-unfinished", key, "no record of a dataset names it")
            else:
                found._find("fileset-stray", key, "no dataset's WARC has such a name")
        return found

    def finish(self, advance: Advance) -> None:
        """Read the chosen objects and add findings on their content."""
        for kept in self._due:
            digest = hashlib.sha256()
            try:
                for chunk in records.chunks(self.store, kept.key):
                    digest.update(chunk)
                    advance(len(chunk))
            except MissingObject:
                self._find("fileset-missing", kept.key, "it was removed during the check")
                continue
            self.read += 1
            if digest.hexdigest() != kept.sha256:
                self._find("fileset-altered", kept.key, "its SHA-256 differs from its record")

    def check_listed(
        self, connection: engine.Connection, paths: Iterable[str]
    ) -> Iterator[Finding]:
        """Check the objects that a snapshot lists; `paths` are the files of its table `files`.

        There is at least one such file.
        """
        told = {finding.object for finding in self.findings}
        values = {"files": list(paths)}
        with engine.reading("the table files"):
            rows = connection.execute(_HELD.format(engine.table("$files")), values).fetchall()
        for key, end, whole in rows:
            size = self._size(key)
            if key in told:
                continue
            if size is None:
                problem = "the newest snapshot lists it, but it does not exist"
                yield Finding("fileset-missing", key, problem)
            elif size < end or (whole and size != end):
                problem = f"it has {size:,} bytes, but {end:,} in the newest snapshot"
                yield Finding("fileset-wrong", key, problem)

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
        self.places += 1
        try:
            record = records.read(self.store, base)
        except FilesetError as error:
            self._find("fileset-wrong", base + RECORD, error.detail)
            return set()
        if record is None:
            self._find("fileset-missing", base + RECORD, "it was removed during the check")
            return set()
        return self._check_record(base, record, sizes)

    def _check_record(self, base: str, record: KeepingRecord, sizes: Mapping[str, int]) -> set[str]:
        """Check the objects of a record; return their keys."""
        named = {kept.key for kept in record.objects}
        for problem in _contradictions(base, record, named):
            self._find("fileset-wrong", base + RECORD, problem)
        for kept in record.objects:
            self.objects += 1
            size = self._size(kept.key)
            if size is None:
                self._find("fileset-missing", kept.key, f"{base}{RECORD} names it")
            elif size != kept.bytes:
                problem = f"it has {size:,} bytes, but {kept.bytes:,} in its record"
                self._find("fileset-altered", kept.key, problem)
            elif self.chosen(kept.key):
                self.bytes += size
                self._due.append(kept)
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
