"""Data files of a snapshot, compared with their leaves before DuckDB reads them.

A row group is compared with the CRC-32 in its leaf, and is then given alone, as a file in memory.
DuckDB would read more of a stored file: its footer, and each row group that its statistics do not
exclude. It also takes half the time, because DuckDB plans over a whole footer. A whole file is
compared with the SHA-256 in its name.
"""

import hashlib
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from functions.snapshot import layout
from functions.snapshot.errors import DamagedStore, MissingObject, StoreError
from functions.snapshot.manifest import DataFile, RowGroup
from functions.snapshot.store import Reader

_DESCRIPTORS = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"  # Lambda has no /dev/fd


class CheckedFiles:
    """Reads data files of one store. Thread-safe.

    Every method raises DamagedStore for bytes that their leaf does not describe, MissingObject and
    StoreError.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._versions: dict[str, tuple[int, ...]] = {}

    def whole(self, key: str) -> Path:
        """Return a local file of a whole data file; each version of the file is compared once."""
        path = self._reader.local(key)
        with _open(key, path) as file:
            status = os.fstat(file.fileno())
            version = status.st_dev, status.st_ino, status.st_ctime_ns, status.st_size
            if self._versions.get(key) != version:
                digest = hashlib.file_digest(file, "sha256").hexdigest()[:32]
                if digest != layout.digest_of(key):
                    what = f"its content does not match its name: its SHA-256 is {digest}..."
                    raise self._damage(key, what)
                self._versions[key] = version
        return path

    @contextmanager
    def open(self, file: DataFile, groups: Sequence[RowGroup] | None) -> Iterator[list[str]]:
        """Give paths of the row groups inside the block, or of the whole file (None).

        Earlier versions of Sheaf wrote row groups that cannot be read alone, or without a checksum:
        these are read as a whole file.
        """
        if groups is None or not all(map(can_check, groups)):
            yield [str(self.whole(file.key))]
            return
        with ExitStack() as stack:
            paths = []
            for data, group in zip(self.cut(file, groups), groups, strict=True):
                memory = stack.enter_context(_create_memory_file())
                write_cut(memory, data, group)
                paths.append(f"{_DESCRIPTORS}/{memory.fileno()}")
            yield paths

    def cut(self, file: DataFile, groups: Sequence[RowGroup]) -> Iterator[bytes]:
        """Yield the bytes of row groups, with the footer of each; `can_check` is true for all."""
        paths = self._reader.parts(file.key, file.bytes, [group.span for group in groups])
        each = paths if len(paths) == len(groups) else [paths[0]] * len(groups)
        for path, group in zip(each, groups, strict=True):
            offset, length = group.span
            with _open(file.key, path) as source:
                source.seek(offset)
                data = source.read(length)
            check = zlib.crc32(data)
            if check != group.check:
                what = f"the checksum of its row group at byte {offset} is {check:08x}"
                raise self._damage(file.key, f"{what}, not {group.check:08x}")
            yield data

    def _damage(self, key: str, difference: str) -> DamagedStore:
        self._reader.forget(key)  # it may have been damaged on the way, and may be repaired
        return DamagedStore(
            f"{self._reader.address}/{key} is damaged: {difference}; restore a copy of it "
            "(run `sheaf verify` to see what else is wrong)"
        )


def can_check(group: RowGroup) -> bool:
    """Return whether a row group has a checksum and a footer of its own."""
    return group.check is not None and group.tail > 0


def write_cut(target: BinaryIO, data: bytes, group: RowGroup) -> None:
    """Write the bytes of a row group where its footer expects them: a sparse Parquet file."""
    target.seek(group.offset)
    target.write(data)
    target.flush()


def _create_memory_file() -> BinaryIO:
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("sheaf-rows"), "w+b")
    return tempfile.TemporaryFile(prefix="sheaf-rows-")


@contextmanager
def _open(key: str, path: Path) -> Iterator[BufferedReader]:
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError as error:
        raise MissingObject(f"{key} no longer exists") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
