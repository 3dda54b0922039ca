"""Decompression of tarballs (gzip, bzip2, xz and zstd) as streams of bounded memory."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from typing import BinaryIO

from builder.sources import recognise
from functions.archive import zstd
from functions.archive.stream import HEAD

_BZIP2, _XZ = b"BZh", b"\xfd7zXZ\x00"
_MEMORY = 256 << 20  # bytes that xz may use: the file sets the size of its window
_CHUNK = 1 << 17


class DecompressedTarball:
    """The unpacked content of a seekable stream, whose first bytes show the format.

    A plain stream is read as it is.
    """

    def __init__(self, stream: BinaryIO) -> None:
        head = stream.read(HEAD)
        stream.seek(0)
        self._read = _reader(stream, head)

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
    return recognise.is_gzip(head) or recognise.is_zstd(head) or head.startswith((_BZIP2, _XZ))


def _reader(stream: BinaryIO, head: bytes) -> Callable[[int], bytes]:
    if recognise.is_gzip(head):
        return gzip.GzipFile(fileobj=stream).read
    if head.startswith(_BZIP2):
        return _Members(stream, bz2.BZ2Decompressor).read
    if head.startswith(_XZ):
        return _Members(stream, lambda: lzma.LZMADecompressor(memlimit=_MEMORY)).read
    if recognise.is_zstd(head):
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
            if found := self._decoder.decompress(data, size):
                return found
