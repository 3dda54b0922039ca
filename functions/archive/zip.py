"""Zip files as they are read here: here and there, out of what lies elsewhere, damaged or not."""

import io
import zipfile
from dataclasses import dataclass

DAMAGE = (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, OverflowError)
"""What zipfile raises for files that are none, or damaged: NotImplementedError where a header
asks for a later version of zip, ValueError for names and offsets."""


STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
"""Methods of packing that are read."""
ARCHIVE_FOLDER = "archive/"
"""The folder of a WACZ that has its web archives."""


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """A file in a zip: where its local header lies, where its bytes do, and how many are packed."""

    name: str
    header: int
    start: int
    packed: int
    method: int
    crc: int | None
    """CRC-32 of the bytes unpacked; None where it is not known."""
    encrypted: bool = False
    certain: bool = True
    """Whether where it lies and ends is told alike by more than one place of the zip."""

    @property
    def is_archive(self) -> bool:
        """Whether it lies where a WACZ has its web archives (WACZ 1.1.1, section 5)."""
        return self.name.startswith(ARCHIVE_FOLDER) and not self.name.endswith("/")

    @property
    def is_readable(self) -> bool:
        """Whether its bytes can be unpacked here."""
        return self.method in (STORED, DEFLATED) and not self.encrypted


class SeekableStream(io.RawIOBase):
    """A stream of `size` bytes in which zipfile seeks; how they are read is the subclass's."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._at = 0

    def seekable(self) -> bool:
        """Tell that it can be sought in."""
        return True

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def tell(self) -> int:
        """Return where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go elsewhere. Raises OSError for what lies before the beginning."""
        at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence] + offset
        if at < 0:
            raise OSError("it begins later")  # which zipfile takes for a zip without an end
        self._at = at
        return at
