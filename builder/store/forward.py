"""Files that are written forwards, and nothing else: what writes a zip must not go back in one."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True, slots=True)
class Forward:
    """Writes into a file; `wrapped` turns what goes wrong into the store's errors."""

    out: BinaryIO
    wrapped: Callable[[], AbstractContextManager[None]]

    def write(self, data: bytes) -> int:
        """Write some more. Raises StoreError."""
        with self.wrapped():
            return self.out.write(data)

    def flush(self) -> None:
        """Do nothing: only what is whole is looked at."""
