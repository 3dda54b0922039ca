"""Files of a manifest: their digests, the result of a download, and store errors.

Digests are computed during a download and compared with the platform's values.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from builder.sources.datasets.item import GIT, FileMeta, FilesetManifestFile, Terminal
from builder.sources.datasets.protocols import FilesetError, Received, ZipSink
from functions.snapshot.errors import StoreError

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
    git: Any = None
    """The digest of git, if it was begun: it covers the size, which must be known before."""

    def take(self, data: bytes) -> None:
        """Add bytes."""
        self.size += len(data)
        self._crc32 = zlib.crc32(data, self._crc32)
        for engine in self._engines.values():
            engine.update(data)
        if self.git is not None:
            self.git.update(data)

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
        if self.git is not None and self.git.hexdigest() != file.extra[GIT]:
            return "mismatch-sha1"
        return None


def best_digest(file: FilesetManifestFile) -> str | None:
    """Return the name of the best digest that the platform gives, None if it gives none."""
    has_git = GIT in file.extra and file.size is not None
    return next((name for name in ORDER if getattr(file, name)), GIT if has_git else None)


def begin_digests(file: FilesetManifestFile) -> Digests:
    """Return digests without bytes, for all that the platform says of a file."""
    if best_digest(file) != GIT:
        return Digests()
    return Digests(git=hashlib.sha1(b"blob %d\0" % (file.size or 0), usedforsecurity=False))


def compute_digests(chunks: Iterable[bytes], file: FilesetManifestFile | None = None) -> Digests:
    """Return the digests of a sequence of chunks, which should be those of `file`."""
    digests = Digests() if file is None else begin_digests(file)
    for chunk in chunks:
        digests.take(chunk)
    return digests


def with_digests(file: FilesetManifestFile, digests: Digests) -> FilesetManifestFile:
    """Return the file with its status and with the digests of its bytes."""
    best = best_digest(file)
    status = "verified" if best and (best != GIT or digests.git) else "unverified"
    every: dict[str, Any] = digests.every()
    return replace(file, status=status, size=digests.size, **every)


def add_received(file: FilesetManifestFile, received: Received) -> FilesetManifestFile:
    """Return the file with what its download showed."""
    return replace(
        file,
        status="verified" if received.verified else "unverified",
        size=received.size,
        **{name: getattr(received, name) for name in EVERY},
        mimetype=file.mimetype or received.media_type,
        terminal_url=received.last.url,
        terminal_dt=received.last.at,
    )


def like(file: FilesetManifestFile, earlier: FilesetManifestFile) -> FilesetManifestFile:
    """Return the file with the size and digests archived before, so that only those bytes match."""
    return replace(file, size=earlier.size, **{name: getattr(earlier, name) for name in ORDER})


class MeasuredSink:
    """Sink that passes its bytes on to another, and measures them."""

    def __init__(self, sink: ZipSink, media_type: str) -> None:
        self.size = 0
        self._sink, self._media_type = sink, media_type
        self._digests = [
            hashlib.new(name, usedforsecurity=False) for name in ("md5", "sha1", "sha256")
        ]

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._sink.write(data)
        self.size += len(data)
        for digest in self._digests:
            digest.update(data)

    def meta(self) -> FileMeta:
        """Return the size and digests of all bytes so far."""
        digests = {f"{digest.name}hex": digest.hexdigest() for digest in self._digests}
        return FileMeta(size_bytes=self.size, mimetype=self._media_type, **digests)


def meta(file: FilesetManifestFile) -> FileMeta:
    """Return the size, digests and media type of an archived file."""
    return FileMeta(
        size_bytes=file.size or 0,
        md5hex=file.md5 or "",
        sha1hex=file.sha1 or "",
        sha256hex=file.sha256 or "",
        mimetype=file.mimetype,
    )


def terminal(received: Received) -> Terminal:
    """Return the source of a downloaded file."""
    return Terminal(
        terminal_url=received.last.url,
        terminal_dt=received.last.at,
        terminal_status_code=received.last.status,
        terminal_sha1hex=received.sha1,
    )


@contextmanager
def wrap_store_errors(status: str = "error-store-upload") -> Iterator[None]:
    """Wrap store errors as a FilesetError with that status."""
    try:
        yield
    except StoreError as error:
        raise FilesetError(status, str(error)) from error
