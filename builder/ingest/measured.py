"""Reader that counts and hashes what passes."""

import hashlib
import io
from typing import Any, BinaryIO


class Measured(io.RawIOBase):
    """A forward-only file, hashed while it is read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return the number of bytes."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._digest.update(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes read."""
        return self._position

    def finish(self) -> str:
        """Read the rest, and return the SHA-256 of the whole."""
        while self.read(1 << 20):
            pass
        return self._digest.hexdigest()
