"""Digests: what bytes have, taken as they come, and whether it is what a platform tells."""

import hashlib
import zlib
from dataclasses import dataclass, field
from typing import Any

from builder.filesets.item import FilesetManifestFile

ORDER = ("sha512", "sha256", "sha1", "md5")
"""Digests by which bytes are verified, the best first."""
EVERY = (*ORDER, "crc32")


@dataclass(slots=True)
class Digests:
    """The digests of the bytes that were taken so far, in hexadecimal digits, and their number."""

    size: int = 0
    _crc32: int = 0
    _engines: dict[str, Any] = field(
        default_factory=lambda: {n: hashlib.new(n, usedforsecurity=False) for n in ORDER}
    )

    def take(self, data: bytes) -> None:
        """Take some more bytes."""
        self.size += len(data)
        self._crc32 = zlib.crc32(data, self._crc32)
        for engine in self._engines.values():
            engine.update(data)

    def of(self, name: str) -> str:
        """Return a digest by its name."""
        return f"{self._crc32:08x}" if name == "crc32" else str(self._engines[name].hexdigest())

    def every(self) -> dict[str, str]:
        """Return all digests by name."""
        return {name: self.of(name) for name in EVERY}

    def mismatch(self, file: FilesetManifestFile) -> str | None:
        """Return the status of what is not as the platform tells, None where all of it is."""
        if file.size is not None and file.size != self.size:
            return "mismatch-size"
        for name in EVERY:
            told = getattr(file, name)
            if told and told.lower() != self.of(name):
                return f"mismatch-{name}"
        return None


def best(file: FilesetManifestFile) -> str | None:
    """Return the name of the best digest that a platform tells of a file, None if it tells none."""
    return next((name for name in ORDER if getattr(file, name)), None)
