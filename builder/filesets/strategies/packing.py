"""Packs files of a platform into a bundle, one after the other."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from builder.filesets.item import FileMeta, FilesetManifestFile
from builder.filesets.protocols import Downloader, FilesetError, ZipSink
from builder.filesets.strategies import file as files
from builder.http.settings import Settings
from builder.zip import STORED, Bundle

ZIP = "application/zip"


class Spoilt(Exception):
    """The bundle written so far is useless: the download of a large member has restarted."""


class Packing:
    """Downloads files into a bundle; `known` are the files that it had before, if any.

    If a member larger than a part restarts from its beginning, the bundle is spoilt, and Spoilt is
    raised. With `is_last`, such a member is downloaded all the same, to learn its status.
    """

    def __init__(
        self,
        downloader: Downloader,
        settings: Settings,
        sink: ZipSink,
        known: Sequence[FilesetManifestFile] = (),
        *,
        is_last: bool = False,
    ) -> None:
        self._downloader = downloader
        self._whole = _Whole(sink)
        self._bundle = Bundle(self._whole)
        self._known = {file.path: file for file in known}
        self._largest: int = settings["fileset.limits"]["file_bytes"]
        self._left: int = settings["fileset.limits"]["bytes"]
        self._is_last = is_last
        self._spoilt = False

    def keep(self, file: FilesetManifestFile) -> FilesetManifestFile:
        """Download a file into the bundle and return it. Raises FilesetError and Spoilt."""
        known = self._known.get(file.path)
        wanted = files.like(file, known) if known else file
        limit = min(self._largest, self._left)
        received = self._downloader.download(wanted, limit, lambda: self._member(file.path))
        if self._spoilt:
            raise FilesetError("error-platform-download", "each attempt broke off")
        self._left -= received.size
        return files.with_received(file, received)

    @contextmanager
    def _member(self, path: str) -> Iterator[ZipSink]:
        if self._spoilt and not self._is_last:
            raise Spoilt
        if self._spoilt:
            yield _Nowhere()
            return
        with self._bundle.member(path) as opened:
            whole = False
            try:
                yield opened
                whole = True
            finally:
                self._spoilt = not whole and opened.spilt

    def finish(
        self, kept: Sequence[FilesetManifestFile], key: str
    ) -> tuple[FilesetManifestFile, ...]:
        """Complete the bundle, the object at `key`, and return the files with their places."""
        members = {member.name: member for member in self._bundle.end()}
        found = []
        for file in kept:
            member = members[file.path]
            if (member.size, member.crc32) != (file.size, file.crc32):
                raise FilesetError(
                    "error-store-verify", f"{file.path} differs from the received bytes"
                )
            found.append(replace(file, key=key, offset=member.offset, compression=STORED))
        return tuple(found)

    def meta(self) -> FileMeta:
        """Return the size and digests of the completed bundle."""
        return self._whole.meta()


class _Whole:
    """Sink for a bundle's bytes that also computes their digests."""

    def __init__(self, sink: ZipSink) -> None:
        self._sink = sink
        self._size = 0
        self._made = [hashlib.new(n, usedforsecurity=False) for n in ("md5", "sha1", "sha256")]

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._sink.write(data)
        self._size += len(data)
        for one in self._made:
            one.update(data)

    def meta(self) -> FileMeta:
        """Return size and digests."""
        md5, sha1, sha256 = (one.hexdigest() for one in self._made)
        return FileMeta(
            size_bytes=self._size, md5hex=md5, sha1hex=sha1, sha256hex=sha256, mimetype=ZIP
        )


class _Nowhere:
    """Sink that discards its bytes."""

    def write(self, data: bytes) -> None:
        """Discard bytes."""
