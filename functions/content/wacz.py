"""Locates files in a WACZ file (Webrecorder, WACZ 1.1.1, section 5)."""

import io
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from functions.archive.zip_directory import UnpackedEntry, read_entries
from functions.archive.zip_headers import DAMAGE, DEFLATED, SeekableStream, ZipEntry
from functions.content.errors import ContentError
from functions.store.slice import Slices

FARTHEST = 1 << 62
"""An offset beyond the end of any file."""

_LOCAL = struct.Struct("<4s22xHH")
_NEAR = 1 << 16  # bytes of one read: most directories are within this distance from the end
_DIRECTORY = 1 << 24  # maximum size of a directory in bytes
_STEP = 1 << 16


@dataclass(frozen=True, slots=True)
class WaczMember:
    """A file in a zip: offset of its local header, packed size, and whether it is deflated."""

    header: int
    packed: int
    deflated: bool


def members(slices: Slices, key: str) -> Mapping[str, WaczMember]:
    """Return the files in a zip's directory. Raises ContentError, StoreError."""
    try:
        with zipfile.ZipFile(cast(Any, _View(slices, key))) as archive:
            return {
                entry.filename: WaczMember(
                    entry.header_offset, entry.compress_size, entry.compress_type != 0
                )
                for entry in archive.infolist()
                if entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                and not entry.flag_bits & 1
            }
    except DAMAGE as error:
        raise ContentError("damaged", f"{key} is not a valid zip: {error}") from error


def begins(slices: Slices, key: str, name: str, member: WaczMember) -> int:
    """Return the offset in the zip of a member's first byte. Raises ContentError, StoreError."""
    head, wanted = b"", name.encode()
    if 0 <= member.header < FARTHEST:
        size = _LOCAL.size + len(wanted)
        with slices.open(key, member.header, size) as stream:
            head = io.BufferedReader(cast(io.RawIOBase, stream)).read(size)
    if len(head) < _LOCAL.size or not head.startswith(b"PK\3\4"):
        raise ContentError("damaged", f"{key} has no file at byte {member.header}")
    _, length, extra = _LOCAL.unpack(head[: _LOCAL.size])
    if head[_LOCAL.size :] != wanted or length != len(wanted):
        raise ContentError("damaged", f"{key} has another file at byte {member.header}")
    return member.header + _LOCAL.size + int(length) + int(extra)


def recover(slices: Slices, key: str, name: str) -> tuple[int, WaczMember] | None:
    """Find a member of a damaged zip as an ingest does; None if it is missing.

    This may read the whole zip. Raises StoreError.
    """
    view = _View(slices, key)
    listing = read_entries(cast(BinaryIO, view), slices.size(key))
    for entry in listing.entries:
        if entry.name == name and entry.is_readable:
            return entry.start, WaczMember(entry.header, entry.packed, entry.method == DEFLATED)
    return None


class Inflated(io.RawIOBase):
    """A deflated member's bytes from `offset`; all bytes before are inflated and dropped."""

    def __init__(self, stream: BinaryIO, offset: int) -> None:
        self._stream = stream
        entry = ZipEntry("", 0, 0, 0, DEFLATED, None)
        self._pieces = UnpackedEntry(self._read_packed(), entry).pieces()
        self._rest = b""
        self._skip = offset

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; damaged data ends the stream at the same byte as in the ingest."""
        while not self._rest:
            piece = next(self._pieces, b"")
            if not piece:
                return 0
            skipped = min(self._skip, len(piece))
            self._skip -= skipped
            self._rest = piece[skipped:]
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def _read_packed(self) -> Iterator[bytes]:
        while piece := self._stream.read(_STEP):
            yield piece

    def close(self) -> None:
        """Close the packed stream."""
        self._stream.close()
        super().close()


class _View(SeekableStream):
    """Random access to an object; the last bytes read are cached."""

    def __init__(self, slices: Slices, key: str) -> None:
        super().__init__(slices.size(key))
        self._slices, self._key = slices, key
        self._from, self._data = 0, b""

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self._size - self._at)
        many = left if size is None or size < 0 else min(size, left)
        if many > _DIRECTORY:
            raise ValueError(f"a directory of {many} bytes")
        start = self._at - self._from
        if start < 0 or start + many > len(self._data):
            self._from = max(0, min(self._at, self._size - _NEAR))
            with self._slices.open(self._key, self._from, max(many, _NEAR)) as stream:
                self._data = io.BufferedReader(cast(io.RawIOBase, stream)).read()
            start = self._at - self._from
        self._at += many
        return self._data[start : start + many]
