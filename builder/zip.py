"""Bundles: one zip of many files, written forwards, whose members are read by one range each.

The same members give the same bytes: they are stored as they are, in the order in which they are
given, with one date and one mode. zipfile writes a descriptor behind every member of what cannot
be sought in; here that is so only of members that were not known to their end before their header
was written, for others can be read from a stream as well (APPNOTE.TXT 6.3.10, 4.3 and 4.4.4).
"""

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

PART = 8 << 20
"""Bytes of a member that are in memory until it is known whether it is larger."""
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
    """Takes the bytes of a file one after the other."""

    def write(self, data: bytes) -> object:
        """Take some more."""
        ...


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A file of a bundle: its name, first byte, size, and CRC-32 in hexadecimal digits."""

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
    """Writes a zip to a sink, one member after the other, and `end` at last."""

    def __init__(self, sink: ZipSink) -> None:
        self._sink = sink
        self._at = 0
        self._entries: list[_ZipEntry] = []

    @contextmanager
    def member(self, name: str) -> Iterator["Open"]:
        """Give what takes the bytes of the next member, which has that path.

        If the block raises and not more than PART bytes came, it is as if there had been none;
        else the zip is spoilt (Open.spilt), and nothing more is to be written to it.
        """
        taking = Open(self, name)
        yield taking
        self._entries.append(taking.close())

    def end(self) -> tuple[ZipMember, ...]:
        """Write the directory, and return all members in their order."""
        start = self._at
        for entry in self._entries:
            self.put(_central(entry))
        self.put(_ending(len(self._entries), start, self._at))
        return tuple(
            ZipMember(e.name.decode(), _data(e), e.size, f"{e.crc:08x}") for e in self._entries
        )

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._at

    def put(self, data: bytes) -> None:
        """Write bytes of the zip itself."""
        self._sink.write(data)
        self._at += len(data)


class Open:
    """Takes the bytes of a member: the first PART in memory, and then as they come."""

    def __init__(self, bundle: Bundle, name: str) -> None:
        self._bundle = bundle
        self._name = name.encode()
        self._held = bytearray()
        self._header = bundle.size
        self._size = self._crc = 0
        self.spilt = False
        """Whether some of it was written to the bundle."""

    def write(self, data: bytes) -> None:
        """Take some more."""
        self._size += len(data)
        self._crc = zlib.crc32(data, self._crc)
        if self.spilt:
            self._bundle.put(data)
            return
        self._held += data
        if len(self._held) > PART:
            self.spilt = True
            self._bundle.put(_local(_ZipEntry(self._name, 0, 0, 0, _UTF8 | _DESCRIBED, _ZIP64)))
            self._let_go()

    def close(self) -> _ZipEntry:
        """Write what is left of the member, and return its entry of the directory."""
        flags, version = (_UTF8 | _DESCRIBED, _ZIP64) if self.spilt else (_UTF8, _FIRST)
        entry = _ZipEntry(self._name, self._header, self._size, self._crc, flags, version)
        if self.spilt:
            self._bundle.put(_DESCRIPTOR.pack(b"PK\7\x08", self._crc, self._size, self._size))
        else:
            self._bundle.put(_local(entry))
            self._let_go()
        return entry

    def _let_go(self) -> None:
        """Write what is held, with no second copy of all of it in memory."""
        for start in range(0, len(self._held), _STEP):
            self._bundle.put(bytes(self._held[start : start + _STEP]))
        self._held = bytearray()


def _local(entry: _ZipEntry) -> bytes:
    """Return a member's header; one that is described behind it has its sizes there."""
    described = entry.flags & _DESCRIBED
    extra = _LARGE.pack(1, 16, 0, 0) if described else b""
    size = _FULL32 if described else entry.size
    head = _LOCAL.pack(
        b"PK\3\4", entry.version, entry.flags, 0, 0, _DATE, entry.crc, size, size,
        len(entry.name), len(extra),
    )  # fmt: skip
    return head + entry.name + extra


def _data(entry: _ZipEntry) -> int:
    """Return where a member's bytes begin."""
    extra = _LARGE.size if entry.flags & _DESCRIBED else 0
    return entry.header + _LOCAL.size + len(entry.name) + extra


def _central(entry: _ZipEntry) -> bytes:
    """Return a member's entry of the directory (APPNOTE.TXT 6.3.10, 4.3.12 and 4.5.3).

    It has the ZIP64 sizes wherever the local header has them, whatever the member's size. Readers
    take an entry without extra fields to mean a local header without any: wabac.js reads none
    then, and finds the data by the name's length alone.
    """
    is_described = bool(entry.flags & _DESCRIBED)
    large = [entry.size, entry.size] if is_described else []
    if entry.header >= _FULL32:
        large.append(entry.header)
    extra = struct.pack(f"<HH{len(large)}Q", 1, 8 * len(large), *large) if large else b""
    version = _ZIP64 if large else entry.version
    size, header = _FULL32 if is_described else entry.size, min(entry.header, _FULL32)
    head = _CENTRAL.pack(
        b"PK\1\2", _UNIX | version, version, entry.flags, 0, 0, _DATE, entry.crc, size, size,
        len(entry.name), len(extra), 0, 0, 0, _MODE, header,
    )  # fmt: skip
    return head + entry.name + extra


def _ending(count: int, start: int, at: int) -> bytes:
    """Return the end of a zip whose directory lies from `start` to `at`."""
    size = at - start
    end = b""
    if count >= _FULL16 or size >= _FULL32 or start >= _FULL32:
        end = _END64.pack(
            b"PK\6\6", 44, _UNIX | _ZIP64, _ZIP64, 0, 0, count, count, size, start
        ) + _LOCATOR.pack(b"PK\6\7", 0, at, 1)  # fmt: skip
    few, small, near = min(count, _FULL16), min(size, _FULL32), min(start, _FULL32)
    return end + _END.pack(b"PK\5\6", 0, 0, few, few, small, near, 0)
