"""Writes a zip of many files in one pass; each member can be read by one range request.

The same members give the same bytes: members are stored uncompressed, in the order given, with one
date and one mode. For output that cannot seek, zipfile writes a data descriptor after every member.
Here only members that were incomplete when their header was written have one. The others can then
be read from a stream as well (APPNOTE.TXT 6.3.10, 4.3 and 4.4.4).
"""

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

PART = 8 << 20
"""Bytes of a member that are kept in memory until its size is known to be larger."""
STORED = "stored"
_STEP = 1 << 18

_LOCAL = struct.Struct("<4sHHHHHLLLHH")
_CENTRAL = struct.Struct("<4sHHHHHHLLLHHHHHLL")
_DESCRIPTOR = struct.Struct("<4sLQQ")
_LARGE = struct.Struct("<HHQQ")
_END = struct.Struct("<4sHHHHLLH")
_END64 = struct.Struct("<4sQHHLLQQQQ")
_LOCATOR = struct.Struct("<4sLQL")
_DATE = (1980 - 1980) << 9 | 1 << 5 | 1
_MODE = 0o100644 << 16
_UNIX = 3 << 8
_UTF8, _DESCRIBED = 1 << 11, 1 << 3
_FIRST, _ZIP64 = 20, 45  # versions needed
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF


class ZipSink(Protocol):
    """Receives the bytes of a file in order."""

    def write(self, data: bytes) -> object:
        """Write more bytes."""
        ...


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A file in the zip: its name, offset of its data, size, and CRC-32 in hexadecimal digits."""

    name: str
    offset: int
    size: int
    crc32: str


@dataclass(frozen=True, slots=True)
class _ZipEntry:
    name: bytes
    header: int
    size: int
    crc: int
    flags: int
    version: int


class Bundle:
    """Writes a zip to a sink: the members one by one, and then `end`."""

    def __init__(self, sink: ZipSink) -> None:
        self._sink = sink
        self._at = 0
        self._entries: list[_ZipEntry] = []

    @contextmanager
    def member(self, name: str) -> Iterator["Open"]:
        """Open the next member, with that path, for writing.

        If the block raises after at most PART bytes, the member is dropped. Otherwise the zip is
        spoilt (Open.spilt), and nothing more may be written to it.
        """
        taking = Open(self, name)
        yield taking
        self._entries.append(taking.close())

    def end(self) -> tuple[ZipMember, ...]:
        """Write the central directory, and return all members in order."""
        start = self._at
        for entry in self._entries:
            self.put(_central(entry))
        self.put(_ending(len(self._entries), start, self._at))
        members = []
        for entry in self._entries:
            extra = _LARGE.size if entry.flags & _DESCRIBED else 0
            offset = entry.header + _LOCAL.size + len(entry.name) + extra
            members.append(ZipMember(entry.name.decode(), offset, entry.size, f"{entry.crc:08x}"))
        return tuple(members)

    @property
    def size(self) -> int:
        """Number of bytes written."""
        return self._at

    def put(self, data: bytes) -> None:
        """Write bytes of the zip itself."""
        self._sink.write(data)
        self._at += len(data)


class Open:
    """Writer of a member: keeps the first PART bytes in memory, and then passes bytes on."""

    def __init__(self, bundle: Bundle, name: str) -> None:
        self._bundle = bundle
        self._name = name.encode()
        self._buffer = bytearray()
        self._header = bundle.size
        self._size = self._crc = 0
        self.spilt = False
        """Whether some of it was written to the zip."""

    def write(self, data: bytes) -> None:
        """Write more bytes."""
        self._size += len(data)
        self._crc = zlib.crc32(data, self._crc)
        if self.spilt:
            self._bundle.put(data)
            return
        self._buffer += data
        if len(self._buffer) > PART:
            self.spilt = True
            self._bundle.put(_local(_ZipEntry(self._name, 0, 0, 0, _UTF8 | _DESCRIBED, _ZIP64)))
            self._let_go()

    def close(self) -> _ZipEntry:
        """Write the rest of the member, and return its directory entry."""
        flags, version = (_UTF8 | _DESCRIBED, _ZIP64) if self.spilt else (_UTF8, _FIRST)
        entry = _ZipEntry(self._name, self._header, self._size, self._crc, flags, version)
        if self.spilt:
            self._bundle.put(_DESCRIPTOR.pack(b"PK\7\x08", self._crc, self._size, self._size))
        else:
            self._bundle.put(_local(entry))
            self._let_go()
        return entry

    def _let_go(self) -> None:
        """Write the buffered bytes, without a second copy of all of them in memory."""
        for start in range(0, len(self._buffer), _STEP):
            self._bundle.put(bytes(self._buffer[start : start + _STEP]))
        self._buffer = bytearray()


def _local(entry: _ZipEntry) -> bytes:
    """Return a member's local header; with a data descriptor, the sizes are in that."""
    described = entry.flags & _DESCRIBED
    extra = _LARGE.pack(1, 16, 0, 0) if described else b""
    size = _FULL32 if described else entry.size
    head = _LOCAL.pack(
        b"PK\3\4",
        entry.version,
        entry.flags,
        0,
        0,
        _DATE,
        entry.crc,
        size,
        size,
        len(entry.name),
        len(extra),
    )
    return head + entry.name + extra


def _central(entry: _ZipEntry) -> bytes:
    """Return a member's entry in the central directory (APPNOTE.TXT 6.3.10, 4.3.12 and 4.5.3).

    It has the ZIP64 sizes whenever the local header has them, whatever the member's size. If the
    entry has no extra fields, some readers assume none in the local header either: wabac.js does,
    and finds the data by the name's length alone.
    """
    is_described = bool(entry.flags & _DESCRIBED)
    large = [entry.size, entry.size] if is_described else []
    if entry.header >= _FULL32:
        large.append(entry.header)
    extra = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""
    version = _ZIP64 if large else entry.version
    size, header = _FULL32 if is_described else entry.size, min(entry.header, _FULL32)
    head = _CENTRAL.pack(
        b"PK\1\2",
        _UNIX | version,
        version,
        entry.flags,
        0,
        0,
        _DATE,
        entry.crc,
        size,
        size,
        len(entry.name),
        len(extra),
        0,
        0,
        0,
        _MODE,
        header,
    )
    return head + entry.name + extra


def _ending(count: int, start: int, at: int) -> bytes:
    """Return the end of a zip whose central directory has these offsets."""
    size = at - start
    end = b""
    if count >= _FULL16 or size >= _FULL32 or start >= _FULL32:
        end = _END64.pack(
            b"PK\6\6", 44, _UNIX | _ZIP64, _ZIP64, 0, 0, count, count, size, start
        ) + _LOCATOR.pack(b"PK\6\7", 0, at, 1)
    few, small, near = min(count, _FULL16), min(size, _FULL32), min(start, _FULL32)
    return end + _END.pack(b"PK\5\6", 0, 0, few, few, small, near, 0)
