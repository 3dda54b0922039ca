"""Reader that checks a store that is not trusted: each file and row group that is read."""

import hashlib
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, StoreError
from functions.snapshot.manifest import Leaf, Manifest
from functions.snapshot.store import Reader

_DOCUMENT = 64 << 20
"""Bytes of a manifest or a leaf."""
_LEAVES = layout.SNAPSHOTS + "leaves/"


class CheckedReader:
    """Reads a store and checks each data file by its name, each row group by its checksum.

    The checksums are in the manifest and its leaves, which their digests protect. Implements
    functions.snapshot.store.Reader. Every method raises DamagedStore besides.
    """

    def __init__(self, reader: Reader, manifest: Manifest) -> None:
        self._reader = reader
        self._checks: dict[str, Mapping[int, int | None]] = {}
        self._right: set[tuple[Path, int, int]] = set()
        self.open, self.close = reader.open, reader.close
        for leaf in manifest.leaves.values():
            self._note(leaf)

    @property
    def address(self) -> str:
        """The store's address."""
        return self._reader.address

    def read(self, key: str) -> bytes:
        """Return the whole object."""
        data = read_some(self._reader, key)
        if key.startswith(_LEAVES):
            self._note(Leaf.from_json(data))
        return data

    def _note(self, leaf: Leaf) -> None:
        for file in leaf.files:
            self._checks[file.key] = {group.offset: group.check for group in file.groups}

    def local(self, key: str, spans: Sequence[tuple[int, int]] | None = None) -> Path:
        """Return a file of the whole object."""
        path = self._reader.local(key)
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            seen = path, status.st_ino, status.st_mtime_ns
            if seen not in self._right:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                if digest[:32] != layout.digest_of(key):
                    raise DamagedStore(f"{self.address}/{key} does not match its name")
                self._right.add(seen)
        return path

    def parts(self, key: str, size: int, spans: Sequence[tuple[int, int]]) -> Sequence[Path]:
        """Return files that hold the spans, which are row groups."""
        known = self._checks.get(key, {})
        checks = [known.get(offset) for offset, _ in spans]
        if None in checks or 2 * sum(length for _, length in spans) > size:
            return [self.local(key)]
        paths = self._reader.parts(key, size, spans)
        each = paths if len(paths) == len(spans) else [paths[0]] * len(spans)
        for path, (offset, length), expected in zip(each, spans, checks, strict=True):
            with path.open("rb") as file:
                if _checksum(file, offset, length) != expected:
                    raise DamagedStore(f"{self.address}/{key} has a row group that was altered")
        return paths


def read_some(reader: Reader, key: str) -> bytes:
    """Return a document of a store that is not trusted. Raises StoreError if it is too large."""
    with reader.open(key) as file:
        data = file.read(_DOCUMENT + 1)
    if len(data) > _DOCUMENT:
        raise StoreError(f"{reader.address}/{key} is larger than {_DOCUMENT >> 20} MB")
    return data


def _checksum(file: BinaryIO, offset: int, length: int) -> int:
    file.seek(offset)
    return zlib.crc32(file.read(length))
