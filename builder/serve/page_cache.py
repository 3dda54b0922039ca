"""Folder of rendered pages, as the bytes that are sent, shared by all workers of a server.

A page's file has its snapshot in its name, and a checksum of all that follows in it. So a file that
is damaged or only half written is never sent. The kernel sends the body from the file.
"""

import itertools
import json
import logging
import os
import struct
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

_LOG = logging.getLogger("sheaf")

_MAGIC = b"SHEAFPG1"
_FRAME, _LENGTH = struct.Struct("<8sI"), struct.Struct("<I")
"""Magic and CRC-32 of the rest: length of the JSON, the JSON and the body."""
_LONGEST = 1 << 26
_FULL = 0.9
"""The share of the bound that is left when the oldest pages are removed."""


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A page of a snapshot: its file as it was when it was verified, and what lies in it.

    `headers` are those of the response, `entry` its line of the access log.
    """

    path: Path
    stamp: tuple[int, int, int]
    offset: int
    size: int
    snapshot: int
    headers: Mapping[str, str]
    entry: Mapping[str, Any]

    def open(self) -> "KeptBody | None":
        """Open the body to be sent; None if the file is no longer the one that was verified."""
        try:
            file = FileIO(self.path, "rb")
        except OSError:
            return None
        if _stamp(file.fileno()) != self.stamp:
            file.close()
            return None
        return KeptBody(file, self.offset, self.size, self.path)


@dataclass(frozen=True, slots=True)
class KeptBody:
    """`size` bytes of an open file from `offset` on; the file is closed with this object."""

    file: FileIO
    offset: int
    size: int
    path: Path

    def __len__(self) -> int:
        return self.size

    def read(self, place: int, most: int) -> bytes:
        """Return bytes of the file, which the kernel cannot send. Raises OSError.

        An unreadable page is removed: otherwise no harvester could get past it.
        """
        try:
            return os.pread(self.file.fileno(), most, place)
        except OSError:
            _LOG.error("%s cannot be read: the page is rendered again", self.path)
            with suppress(OSError):
                self.path.unlink()
            raise


class PageCache:
    """The pages in a folder that only the workers of one server write. Thread-safe.

    The folder holds at most `most` bytes, besides pages that are being written. Each of the
    `workers` may add its share before it counts again. `number` is this worker's, from 0. If the
    worker is killed, its successor with this number removes the unfinished file.
    """

    def __init__(self, folder: Path, most: int, workers: int = 1, number: int = 0) -> None:
        self._folder = folder
        self._most = most
        self._workers = workers
        self._room = 0
        self._number = number
        self._counter = itertools.count()
        self._is_failing = False
        with suppress(OSError):
            for path in folder.glob(f".{number}-*"):
                path.unlink(missing_ok=True)

    def load(self, snapshot: int, name: str) -> KeptPage | None:
        """Return a page by its name, verified; None if there is none. A damaged one is removed."""
        path = self._path(snapshot, name)
        try:
            with FileIO(path, "rb") as file:
                stamp = _stamp(file.fileno())
                data = file.readall()
            os.utime(path, ns=(time.time_ns(), stamp[1]))  # the pages that were not used go first
        except OSError:
            return None
        found = _parse(data)
        if found is None:
            _LOG.error("%s is damaged: the page is rendered again", path)
            with suppress(OSError):
                path.unlink()
            return None
        told, offset = found
        size = len(data) - offset
        headers, entry = _intern(told["headers"]), _intern(told["entry"])
        return KeptPage(path, stamp, offset, size, snapshot, headers, entry)

    def store(
        self,
        snapshot: int,
        name: str,
        headers: Mapping[str, str],
        entry: Mapping[str, Any],
        body: bytes,
    ) -> None:
        """Keep a page. A failure, such as a full disk, is logged once, and the page is not kept."""
        told = json.dumps({"headers": dict(headers), "entry": dict(entry)}).encode()
        rest = _LENGTH.pack(len(told)) + told + body
        frame = _FRAME.pack(_MAGIC, zlib.crc32(rest))
        made = self._folder / f".{self._number}-{next(self._counter)}"
        try:
            if not self._reserve(len(frame) + len(rest)):
                return
            with FileIO(made, "wb") as file:
                for data in (frame, rest):
                    if file.write(data) != len(data):
                        raise OSError("only a part was written")
            made.rename(self._path(snapshot, name))
            self._is_failing = False
        except OSError as error:
            with suppress(OSError):
                made.unlink()
            if not self._is_failing:
                _LOG.error("pages cannot be kept in %s: %s", self._folder, error)
            self._is_failing = True

    def forget(self, is_gone: Callable[[int], bool]) -> None:
        """Remove the pages of snapshots that are gone."""
        with suppress(OSError):
            for path in self._folder.glob("*-*"):
                number = path.name.partition("-")[0]
                if number.isdecimal() and is_gone(int(number)):
                    path.unlink(missing_ok=True)

    def _reserve(self, size: int) -> bool:
        """Take bytes of this worker's room; return False if there is none. Raises OSError."""
        if self._room < size:
            self._room = (self._most - self._trim(size)) // self._workers
        if self._room < size:
            return False
        self._room -= size
        return True

    def _trim(self, size: int) -> int:
        """Remove the oldest pages so that `size` more bytes fit; return the bytes that are left."""
        found = []
        for entry in os.scandir(self._folder):
            if entry.name[0] != ".":
                with suppress(FileNotFoundError):  # another worker removed it
                    state = entry.stat()
                    found.append((state.st_atime_ns, state.st_size, entry.path))
        held = sum(one for _, one, _ in found)
        if held + size * self._workers <= self._most:
            return held
        for _, one, path in sorted(found):
            if held <= self._most * _FULL - size * self._workers:
                break
            with suppress(FileNotFoundError):
                Path(path).unlink()
            held -= one
        return held

    def _path(self, snapshot: int, name: str) -> Path:
        return self._folder / f"{snapshot}-{name}"


def _parse(data: bytes) -> tuple[dict[str, Any], int] | None:
    """Return a file's JSON, and where the body begins; None if the file is damaged."""
    begin = _FRAME.size + _LENGTH.size
    if not begin <= len(data) <= _LONGEST:
        return None
    magic, check = _FRAME.unpack_from(data)
    if magic != _MAGIC or zlib.crc32(memoryview(data)[_FRAME.size :]) != check:
        return None
    (length,) = _LENGTH.unpack_from(data, _FRAME.size)
    told: dict[str, Any] = json.loads(data[begin : begin + length])
    return told, begin + length


def _intern(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of a table with interned texts: many pages have the same ones."""
    return {
        sys.intern(name): sys.intern(one) if isinstance(one, str) else one
        for name, one in table.items()
    }


def _stamp(handle: int) -> tuple[int, int, int]:
    """Return what changes with a file's content: its number, time and size."""
    state = os.fstat(handle)
    return state.st_ino, state.st_mtime_ns, state.st_size
