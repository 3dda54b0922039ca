"""Digests of a file during its download, and their comparison with the platform's values."""

import hashlib
import zlib
from dataclasses import dataclass, field
from typing import Any

from builder.filesets.item import FilesetManifestFile

ORDER = ("sha512", "sha256", "sha1", "md5")
"""Digests that verify a file, the best first."""
EVERY = (*ORDER, "crc32")


@dataclass(slots=True)
class Digests:
    """Size and digests of the bytes so far; digests in hexadecimal digits."""

    size: int = 0
    _crc32: int = 0
    _engines: dict[str, Any] = field(
        default_factory=lambda: {n: hashlib.new(n, usedforsecurity=False) for n in ORDER}
    )

    def take(self, data: bytes) -> None:
        """Add bytes."""
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
        """Return the status of the first difference from the platform's values, or None."""
        if file.size is not None and file.size != self.size:
            return "mismatch-size"
        for name in EVERY:
            expected = getattr(file, name)
            if expected and expected.lower() != self.of(name):
                return f"mismatch-{name}"
        return None


def best(file: FilesetManifestFile) -> str | None:
    """Return the name of the best digest that the platform gives, None if it gives none."""
    return next((name for name in ORDER if getattr(file, name)), None)
