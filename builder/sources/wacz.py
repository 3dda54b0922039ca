"""WACZ files (Webrecorder, WACZ 1.1.1): zip files with web archives in their archive folder.

Their bytes are read as those of a bare file are: a wrong checksum of the zip is a fault and ends
nothing, so that what is damaged in an archive costs no more than it does outside a WACZ.
"""

import io
from collections.abc import Iterator
from io import RawIOBase
from typing import BinaryIO

from builder.sources.event import Fault
from functions.archive.entry import UnpackedEntry, read_entries
from functions.archive.zip import ZipEntry

_STEP = 1 << 17


class WaczMember(RawIOBase):
    """A file within a zip file, which ends where its bytes cannot be had any more."""

    def __init__(self, stream: BinaryIO, entry: ZipEntry) -> None:
        self._unpacked = UnpackedEntry(_read_stored(stream, entry), entry)
        self._pieces = self._unpacked.pieces()
        self._rest = b""

    @property
    def damage(self) -> str:
        """What is wrong with it, once it is read to its end."""
        return self._unpacked.damage

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes; none at the end."""
        if not self._rest:
            self._rest = next(self._pieces, b"")
        piece = self._rest if size < 0 else self._rest[:size]
        self._rest = self._rest[len(piece) :]
        return piece


def open_archives(stream: BinaryIO, name: str) -> Iterator[tuple[str, WaczMember] | Fault]:
    """Return the archives in a WACZ, each with its name within, and what is wrong with it."""
    size = stream.seek(0, io.SEEK_END)
    listing = read_entries(stream, size)
    entries = [entry for entry in listing.entries if entry.is_archive]
    if listing.problem:
        done = "read by the headers of its files" if entries else "not read"
        yield Fault(name, None, "wacz-damaged", None, f"directory: {listing.problem}", done)
    elif not entries:
        yield Fault(name, None, "wacz-empty", None, "", "nothing to read")
    for entry in entries:
        yield from _open_archive(stream, entry, name)


def _open_archive(
    stream: BinaryIO, entry: ZipEntry, name: str
) -> Iterator[tuple[str, WaczMember] | Fault]:
    if entry.encrypted:
        detail = f"{entry.name} is encrypted"
        yield Fault(name, entry.header, "wacz-damaged", None, detail, "not read")
        return
    if not entry.is_readable:
        detail = f"{entry.name} by zip method {entry.method}"
        yield Fault(name, entry.header, "unsupported-compression", None, detail, "not read")
        return
    inner = WaczMember(stream, entry)
    yield entry.name, inner
    while inner.read(_STEP):  # what reads it may end before it does
        pass
    if inner.damage:
        detail, done = f"{entry.name}: {inner.damage}", "read as far as it can be"
        yield Fault(name, entry.header, "wacz-damaged", None, detail, done)


def _read_stored(stream: BinaryIO, entry: ZipEntry) -> Iterator[bytes]:
    """Yield the bytes of a file as they lie in the zip."""
    at, left = entry.start, entry.packed
    while left > 0:
        stream.seek(at)
        piece = stream.read(min(left, _STEP))
        if not piece:
            return
        at += len(piece)
        left -= len(piece)
        yield piece
