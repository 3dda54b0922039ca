"""Files of a zip by their local headers, for a zip with a damaged or missing directory.

A header may leave the size to a data descriptor behind the file. A descriptor fits if its size
equals its distance from the file's start. If no descriptor fits, the file ends before the next
header of a file that WACZ has. Bytes are read forwards, and a bounded number of times.
"""

import re
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

DAMAGE = (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, OverflowError)
"""What zipfile raises for a file that is damaged or no zip: NotImplementedError if a header asks
for a later version of zip, ValueError for names and offsets."""


STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
"""Supported compression methods."""
ARCHIVE_FOLDER = "archive/"
"""The folder of a WACZ with its web archives."""


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """A file in a zip: the offsets of its local header and of its bytes, and their stored size."""

    name: str
    header: int
    start: int
    packed: int
    method: int
    crc: int | None
    """CRC-32 of the unpacked bytes; None if unknown."""
    encrypted: bool = False
    certain: bool = True
    """Whether two places of the zip agree on its offset and size."""

    @property
    def is_archive(self) -> bool:
        """Whether it is in the folder for web archives (WACZ 1.1.1, section 5)."""
        return self.name.startswith(ARCHIVE_FOLDER) and not self.name.endswith("/")

    @property
    def is_readable(self) -> bool:
        """Whether its compression is supported."""
        return self.method in (STORED, DEFLATED) and not self.encrypted


SIGNATURE = b"PK\x03\x04"
LOCAL = struct.Struct("<4s2xHH4xIIIHH")
"""Signature, flags, method, CRC, stored and unpacked size, lengths of name and extra field."""

_MOST = 1 << 16  # files of one zip
_LONGEST = 1 << 12  # bytes of a name
_METHODS = 100  # method numbers are lower
_FIRST, _STEP = 1 << 12, 1 << 20
_AGAIN = 4  # how often all bytes may be searched for the ends of files
_IN_ZIP64 = 0xFFFFFFFF
_BORDER = re.compile(rb"PK(?:\x03\x04|\x01\x02|\x05\x06|\x06\x06|\x07\x08)")
_AHEAD = 26 + 30 + 20  # bytes behind a signature that identify it, with the start of a name
_BEHIND = 20  # bytes of the longest descriptor without a signature
_NAME = re.compile(rb"(?:archive|pages|indexes|fuzzy|logs)/|datapackage|webarchive|signature")
_DESCRIPTOR = re.compile(rb"PK\x07\x08.{12}\Z|PK\x07\x08.{20}\Z", re.DOTALL)


class LocalHeaderScan:
    """One scan of a zip of `size` bytes; the stream must be seekable."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._size = size
        self._left = _AGAIN * size + _STEP  # bytes that may still be searched

    def entries(self) -> Iterator[ZipEntry]:
        """Yield the files by offset."""
        place: int | None = 0
        for _ in range(_MOST):
            place = self._find_header(place or 0)
            if place is None:
                return
            entry, place = self._entry(place)
            if entry is not None:
                yield entry

    def _entry(self, place: int) -> tuple[ZipEntry | None, int]:
        """Return the file whose header is at `place`, and where to search the next one."""
        head = self._read(place, LOCAL.size)
        if len(head) < LOCAL.size:
            return None, self._size
        _, flags, method, crc, packed, unpacked, names, extras = LOCAL.unpack(head)
        rest = self._read(place + LOCAL.size, names + extras)
        name, start = rest[:names], place + LOCAL.size + names + extras
        text = name.decode("utf-8", "replace")
        if not 0 < names <= _LONGEST or method >= _METHODS or not text.isprintable():
            return None, place + len(SIGNATURE)
        if len(rest) < names:
            return None, self._size
        if _IN_ZIP64 in (packed, unpacked):
            packed = _long_size(rest[names:], packed)
        deferred = bool(flags & 8)
        end = after = start + packed
        behind = b"" if deferred else self._read(end, len(SIGNATURE))
        sure = not deferred and (end == self._size or _BORDER.match(behind) is not None)
        if not sure:
            end, after, sure, found_crc = self._find_end(start)
            crc = found_crc if deferred else crc
        known = None if deferred and not sure else crc
        encrypted = bool(flags & 1)
        entry = ZipEntry(text, place, start, max(end - start, 0), method, known, encrypted, sure)
        return entry, max(after, place + LOCAL.size)

    def _find_end(self, start: int) -> tuple[int, int, bool, int]:
        """Return a file's end, its descriptor's end, whether both are certain, and its CRC."""
        likely: tuple[int, int, bool, int] | None = None
        for place, before, behind in self._borders(start):
            size = place - start
            found = _match_descriptor(before, behind, size)
            if found is not None:
                end, length, crc = found
                return start + end, start + end + length, True, crc
            if likely is None and _begins_file(behind):
                match = _DESCRIPTOR.search(before) if size >= len(before) else None
                cut = len(before) - match.start() if match else 0
                likely = place - cut, place, False, 0
                if self._left <= 0:
                    break
        return likely or (self._size, self._size, False, 0)

    def _borders(self, start: int) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield each signature's offset from `start` on, and the bytes before and behind it."""
        step = _FIRST
        base, data = start, self._read(start, step)
        self._left -= len(data)
        seen = 0
        while data:
            last = base + len(data) >= self._size
            until = len(data) if last else max(len(data) - _AHEAD, seen)
            for match in _BORDER.finditer(data, seen):
                at = match.start()
                if at >= until:
                    break
                yield base + at, data[max(at - _BEHIND - 4, 0) : at], data[at : at + _AHEAD]
            if last:
                return
            keep = max(until - _BEHIND - 4, 0)
            step = min(4 * step, _STEP)
            more = self._read(base + len(data), step)
            self._left -= len(more)
            base, data, seen = base + keep, data[keep:] + more, until - keep

    def _find_header(self, place: int) -> int | None:
        if self._read(place, len(SIGNATURE)) == SIGNATURE:
            return place
        for found, _, behind in self._borders(place):
            if behind.startswith(SIGNATURE):
                return found
        return None

    def _read(self, place: int, size: int) -> bytes:
        if place >= self._size:
            return b""
        self._stream.seek(place)
        data = b""
        while len(data) < size and (piece := self._stream.read(size - len(data))):
            data += piece
        return data


def _match_descriptor(before: bytes, behind: bytes, size: int) -> tuple[int, int, int] | None:
    """Return a file's size, its descriptor's length and its CRC, if a fitting descriptor is here.

    `size` is the distance from the file's start. A descriptor may lack its signature, and may be of
    ZIP64; then another signature follows it.
    """
    if behind.startswith(b"PK\x07\x08"):
        for form, length in ((struct.Struct("<4xII"), 16), (struct.Struct("<4xIQ"), 24)):
            if len(behind) >= form.size:
                crc, packed = form.unpack_from(behind)
                if packed == size:
                    return size, length, crc
        return None
    for form, length in ((struct.Struct("<II"), 12), (struct.Struct("<IQ"), 20)):
        signed = before[-length - 4 : -length] == b"PK\x07\x08"  # a descriptor that did not fit
        if len(before) >= length and size >= length and not signed:
            crc, packed = form.unpack_from(before, len(before) - length)
            if packed == size - length:
                return packed, length, crc
    return None


def _begins_file(behind: bytes) -> bool:
    """Tell whether a header of a file that WACZ has begins here, local or of the directory."""
    at = {SIGNATURE: 30, b"PK\x01\x02": 46}.get(behind[:4])
    return at is not None and _NAME.match(behind, at) is not None


def _long_size(extra: bytes, packed: int) -> int:
    """Return the stored size in ZIP64's extra field (4.5.3), or else `packed`."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1 and length >= 16 and at + 20 <= len(extra):
            return int(struct.unpack_from("<Q", extra, at + 12)[0])
        at += 4 + length
    return packed
