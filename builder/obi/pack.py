"""Packs: objects that hold the bytes of many versions, one after the other, as they are written.

A pack is named by the SHA-256 of its bytes, and is written before the log that names it. It holds
raw ReDIF files. A template is a range of its file. The text itself is added only where it cannot be
had again from that range. Both readings of such a range stay within the pack.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

SIZE = 32 << 20
"""Bytes from which a pack takes no further file."""


@dataclass(frozen=True, slots=True)
class WrittenPack:
    """A pack in a local file, by its digest; `starts` are those of its parts, in order."""

    path: Path
    sha256: str
    starts: Sequence[int]


class PackWriter:
    """Writes parts one after the other into packs of about SIZE bytes in `folder`.

    `done` receives each finished pack; its file is removed afterwards. Raises OSError.
    """

    def __init__(self, folder: Path, done: Callable[[WrittenPack], None]) -> None:
        self._path, self._done = folder / "pack", done
        self._out: BinaryIO | None = None
        self._digest = hashlib.sha256()
        self._starts: list[int] = []
        self._at = 0

    @property
    def is_full(self) -> bool:
        """Whether the pack should take no further part."""
        return self._at >= SIZE

    def add(self, data: bytes) -> None:
        """Write a part."""
        if self._out is None:
            self._out, self._digest = self._path.open("wb"), hashlib.sha256()
        self._starts.append(self._at)
        self._out.write(data)
        self._digest.update(data)
        self._at += len(data)

    def close(self) -> None:
        """Finish the last pack."""
        if self._out is None:
            return
        self._out.close()
        self._out = None
        try:
            self._done(WrittenPack(self._path, self._digest.hexdigest(), self._starts))
        finally:
            self._path.unlink(missing_ok=True)
            self._starts, self._at = [], 0


def pad_text(text: bytes, length: int) -> bytes:
    """Return a text as a part of a pack: long enough for both readings of its range."""
    return text.ljust(length, b"\n")
