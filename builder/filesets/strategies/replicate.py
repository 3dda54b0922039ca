"""Copies archived datasets to another store.

The objects of a dataset are copied first and its record last, so no reader sees a part of it. The
bytes are verified against the record on the way. Unfinished datasets are not copied.
"""

import hashlib
from collections.abc import Iterator

from builder.filesets.protocols import FilesetError
from builder.filesets.strategies import record as records
from builder.filesets.strategies.keys import FILESETS, RECORD, WARCS, prefix_of
from builder.filesets.strategies.record import KeepingRecord, KeptObject
from builder.runtime import Advance
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Writer

PREFIXES = (FILESETS, WARCS)
_TELLS = "run `sheaf verify` to see what else is wrong"


class FilesetReplication:
    """Copy of datasets: `objects` and `bytes` to copy; `there` counts what the target has."""

    def __init__(self, source: Writer, target: Writer) -> None:
        """Compare the stores. Raises DamagedStore for a record that cannot be read."""
        self._source = source
        self._target = target
        self._sizes = {e.key: e.bytes for prefix in PREFIXES for e in target.entries(prefix)}
        self._lacking: list[str] = []
        self.objects = self.bytes = self.there = 0
        for base, record in self._places():
            lacking = [kept for kept in record.objects if not self._has(kept)]
            same = self._same(base)
            self.bytes += sum(kept.bytes for kept in lacking)
            self.objects += len(lacking) + (not same)
            self.there += len(record.objects) - len(lacking) + same
            if lacking or not same:
                self._lacking.append(base)

    def __call__(self, advance: Advance) -> None:
        """Copy the objects. Raises DamagedStore if bytes of the source differ from their record."""
        for base in self._lacking:
            record = self._read(base)
            if base + RECORD in self._sizes and not self._same(base):
                self._target.remove(base + RECORD)  # it describes an older state
            for kept in record.objects:
                if not self._has(kept):
                    self._copy(kept, advance)
            if not self._same(base):
                self._target.create(base + RECORD, self._source.read(base + RECORD))

    def _places(self) -> Iterator[tuple[str, KeepingRecord]]:
        for key in self._source.keys(FILESETS):
            base = prefix_of(key)
            if base is not None and key == base + RECORD:
                yield base, self._read(base)

    def _read(self, base: str) -> KeepingRecord:
        try:
            record = records.read(self._source, base)
        except FilesetError as error:
            raise DamagedStore(f"{error.detail}: {_TELLS}") from error
        if record is None:
            raise DamagedStore(f"{self._source.address} no longer has {base}{RECORD}")
        return record

    def _has(self, kept: KeptObject) -> bool:
        return self._sizes.get(kept.key) == kept.bytes

    def _same(self, base: str) -> bool:
        """Return whether the target has the same record."""
        key = base + RECORD
        return self._target.tag(key) is not None and self._target.read(key) == self._source.read(
            key
        )

    def _copy(self, kept: KeptObject, advance: Advance) -> None:
        if kept.key in self._sizes:
            self._target.remove(kept.key)  # its size differs, so it is damaged
        digest = hashlib.sha256()
        with self._target.creating(kept.key, kept.bytes) as sink:
            for chunk in records.chunks(self._source, kept.key):
                digest.update(chunk)
                sink.write(chunk)
                advance(len(chunk))
            if digest.hexdigest() != kept.sha256:
                raise DamagedStore(
                    f"{kept.key} of {self._source.address} differs from its record: {_TELLS}"
                )
        self._sizes[kept.key] = kept.bytes
