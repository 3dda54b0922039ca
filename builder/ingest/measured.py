"""A file that is measured while it is read: how far, and what all of it hashes to."""

import hashlib
import io
from typing import Any, BinaryIO


class Measured(io.RawIOBase):
    """A file read forwards only, hashed on the way."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._position = 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return how many bytes."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._digest.update(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._position

    def finish(self) -> str:
        """Read what is left, and return the SHA-256 of the whole."""
        while self.read(1 << 20):
            pass
        return self._digest.hexdigest()
