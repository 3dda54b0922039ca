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
        """Give paths of the row groups inside the block, or of the whole file (None)."""
        if groups is None:
            yield [str(self.whole(file.key))]
            return
        with ExitStack() as stack:
            yield [
                stack.enter_context(open_cut(data, group.offset))
                for data, group in zip(self.cut(file, groups), groups, strict=True)
            ]

    def cut(self, file: DataFile, groups: Sequence[RowGroup]) -> Iterator[bytes]:
        """Yield the bytes of row groups, with the footer of each."""
        path = self._reader.local(file.key, [group.byte_range for group in groups], file.bytes)
        with _open(file.key, path) as source:
            for group in groups:
                offset, length = group.byte_range
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


def write_cut(target: BinaryIO, data: bytes, offset: int) -> None:
    """Write the bytes of a row group where its footer expects them: a sparse Parquet file."""
    target.seek(offset)
    target.write(data)
    target.flush()


@contextmanager
def open_cut(data: bytes, offset: int) -> Iterator[str]:
    """Give the path of a file in memory that has the bytes of a row group at `offset`."""
    linux = sys.platform == "linux"
    with (
        os.fdopen(os.memfd_create("sheaf-rows"), "w+b")
        if linux
        else tempfile.TemporaryFile(prefix="sheaf-rows-")
    ) as memory:
        write_cut(memory, data, offset)
        yield f"{_DESCRIPTORS}/{memory.fileno()}"


@contextmanager
def _open(key: str, path: Path) -> Iterator[BufferedReader]:
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError as error:
        raise MissingObject(f"{key} no longer exists") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
