"""Tarballs: reads the ReDIF files of a tar as a stream; nothing is extracted to disk.

Links, devices, absolute names and names with `..` are reported and left out. A tarball that ends
before its end mark is damaged. What was read of it counts, but no template counts as missing.
Gzip, bzip2, xz and zstd are unpacked as streams of bounded memory.
"""

import bz2
import gzip
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

from builder.errors import UsageError
from builder.sources.redif.spool import Flaw, RedifFile, hides, is_redif, path_text
from functions.archive import zstd
from functions.archive.stream import HEAD

_GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00"
_MEMORY = 256 << 20  # bytes that xz may use: the file sets the size of its window
_CHUNK = 1 << 17
_DATE = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
NAME = re.compile(r"\.(?:tar(?:\.[A-Za-z0-9]+)?|t[bgx]z2?|tzst)\Z", re.IGNORECASE)
"""What the name of a tarball has."""
_DAMAGE = (
    tarfile.TarError,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    OverflowError,
    RecursionError,
)
_META = 1 << 20  # most bytes of a header that describes another one
_LATEST = 1 << 40  # seconds; a later time is invalid


class DecompressedTarball:
    """The unpacked content of a seekable stream, whose first bytes show the format.

    A plain stream is read as it is.
    """

    def __init__(self, stream: BinaryIO) -> None:
        head = stream.read(HEAD)
        stream.seek(0)
        self._read = _unpacker(stream, head)

    def read(self, size: int) -> bytes:
        """Return up to `size` more bytes, none at the end. Raises OSError for damage."""
        try:
            return self._read(size)
        except EOFError as error:
            raise OSError("it ends too early") from error
        except (zlib.error, lzma.LZMAError, zstd.ZstdError, ValueError) as error:
            raise OSError(str(error)) from error


def is_packed(head: bytes) -> bool:
    """Return whether a file that begins with `head` is packed in one of these formats."""
    return zstd.begins(head) or head.startswith((_GZIP, _BZIP2, _XZ))


def _unpacker(stream: BinaryIO, head: bytes) -> Callable[[int], bytes]:
    if head.startswith(_GZIP):
        return gzip.GzipFile(fileobj=stream).read
    if head.startswith(_BZIP2):
        return _Members(stream, bz2.BZ2Decompressor).read
    if head.startswith(_XZ):
        return _Members(stream, lambda: lzma.LZMADecompressor(memlimit=_MEMORY)).read
    if zstd.begins(head):
        return zstd.ZstdReader(stream).read
    return stream.read


class _Members:
    """Streams of bzip2 or xz, one after the other."""

    def __init__(
        self,
        stream: BinaryIO,
        make: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor],
    ) -> None:
        self._stream, self._make = stream, make
        self._decoder = make()
        self._begun = False

    def read(self, size: int) -> bytes:
        """Return up to `size` more bytes, none at the end. Raises EOFError if it is cut off."""
        while True:
            data = b""
            if self._decoder.eof:
                data = self._decoder.unused_data or self._stream.read(_CHUNK)
                if not data.strip(b"\x00"):  # xz allows padding
                    return b""
                self._decoder, self._begun = self._make(), False
            elif self._decoder.needs_input:
                data = self._stream.read(_CHUNK)
                if not data:
                    raise EOFError
            self._begun = True
            if unpacked := self._decoder.decompress(data, size):
                return unpacked


class _Tar(tarfile.TarFile):
    ended = False  # whether the end mark was read


class _Info(tarfile.TarInfo):
    """A header. One that would make the reader hold too many bytes counts as damage."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str | None, errors: str) -> Self:
        info = super().frombuf(buf, encoding or "utf-8", errors)
        is_meta = info.type in (
            tarfile.XHDTYPE,
            tarfile.XGLTYPE,
            tarfile.SOLARIS_XHDTYPE,
            tarfile.GNUTYPE_LONGNAME,
            tarfile.GNUTYPE_LONGLINK,
        )
        if info.size < 0 or (is_meta and info.size > _META):
            raise tarfile.ReadError(f"a header declares {info.size:,} bytes")
        return info

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # typeshed lacks it
            if isinstance(tarfile_, _Tar):
                tarfile_.ended = True
            raise


def members(path: Path) -> Iterator[RedifFile | Flaw]:
    """Yield the ReDIF files of a tarball in order; each must be read before the next.

    Raises OSError if the tarball cannot be opened.
    """
    with path.open("rb") as stream:
        yield from _members(stream, path.name)


def is_tar(path: Path) -> bool:
    """Return whether a file is a tar, packed or not, by its first header."""
    try:
        with path.open("rb") as stream:
            first = DecompressedTarball(stream).read(512)
            tarfile.TarInfo.frombuf(first, "utf-8", "surrogateescape")
    except (tarfile.TarError, OSError, ValueError):
        return False
    return True


def holds_redif(path: Path) -> bool:
    """Return whether a file is a tarball that holds a ReDIF file."""
    if not is_tar(path):
        return False
    try:
        with closing(members(path)) as files:  # type: ignore[type-var]
            return any(isinstance(member, RedifFile) for member in files)
    except OSError:
        return False


def tist_of(name: str) -> int | None:
    """Return the start of the day (UTC) in a tarball's name, in seconds since 1970; else None."""
    match = _DATE.search(name)
    if match is None:
        return None
    try:
        day = date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        raise UsageError(f"{name}: {match[0]} is not a valid date") from None
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def _members(stream: BinaryIO, name: str) -> Iterator[RedifFile | Flaw]:
    try:
        tar = _Tar.open(
            fileobj=cast(Any, DecompressedTarball(stream)),
            mode="r|",
            tarinfo=_Info,
            encoding="utf-8",
            errors="surrogateescape",
        )
        with tar:
            while (info := tar.next()) is not None:
                # tarfile would keep every header otherwise.
                tar.members.clear()  # type: ignore[attr-defined]  # typeshed lacks it
                yield from _member(tar, info)
            if not tar.ended:
                raise tarfile.ReadError("its end mark is missing")
    except _DAMAGE as error:
        yield Flaw("", "tarball-damaged", f"{name}: {error}", True)


def _member(tar: tarfile.TarFile, info: tarfile.TarInfo) -> Iterator[RedifFile | Flaw]:
    parts = [part for part in info.name.split("/") if part not in ("", ".")]
    path = "/" * info.name.startswith("/") + "/".join(parts)
    is_hidden = path.startswith(".") or "/." in path
    if info.isdir() or (is_hidden and ".." not in parts):
        return
    counts = is_redif(path)
    if info.issym() or info.islnk():
        yield Flaw(path_text(path), "link", f"to {path_text(info.linkname)}", hides("link", path))
    elif path.startswith("/") or ".." in parts:
        yield Flaw(path_text(path), "path-unsafe", "", hides("path-unsafe", path))
    elif not counts:
        return
    elif not info.isfile() or info.issparse():
        yield Flaw(path_text(path), "not-a-file", "", True)
    else:
        yield RedifFile(
            path_text(path),
            info.size,
            int(info.mtime) if 0 <= info.mtime < _LATEST else 0,
            partial(_open, tar, info),
        )


class _MemberContent(io.RawIOBase):
    """The bytes of a member; every fault is an OSError."""

    def __init__(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> None:
        self._file = tar.extractfile(info) or io.BytesIO()

    def read(self, size: int = -1) -> bytes:
        try:
            return self._file.read(size)
        except _DAMAGE as error:
            raise OSError(str(error)) from error


def _open(tar: tarfile.TarFile, info: tarfile.TarInfo) -> AbstractContextManager[BinaryIO]:
    try:
        return cast("AbstractContextManager[BinaryIO]", _MemberContent(tar, info))
    except _DAMAGE as error:
        raise OSError(str(error)) from error
