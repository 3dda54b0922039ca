"""The files in a zip by its central directory, and by local headers where it is damaged.

APPNOTE.TXT, sections 4.3.7 (local header), 4.3.9 (data descriptor), 4.3.12 (directory), 4.5.3
(ZIP64).
"""

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast

from functions.archive.inflate import salvage
from functions.archive.zip_headers import (
    ARCHIVE_FOLDER,
    DAMAGE,
    DEFLATED,
    LOCAL,
    SIGNATURE,
    STORED,
    LocalHeaderScan,
    ZipEntry,
)

_STEP = 1 << 16
_RAW = -15  # deflate without any header
_EXTRA = 64  # extra bytes that a local header may have over the directory's
_ARCHIVE_MAGICS = (b"\x1f\x8b\x08", b"WARC/", b"filedesc", b"\x28\xb5\x2f\xfd")
_DISAGREES = "it disagrees with the headers of the files"
_CHECKED = 1000  # with more files than this, only archives' local headers are checked
_LONGEST = 24  # bytes of a data descriptor


@dataclass(frozen=True, slots=True)
class ZipListing:
    """The files of a zip by offset, and the problem of its directory, if it has one."""

    entries: tuple[ZipEntry, ...]
    problem: str = ""


def read_entries(stream: BinaryIO, size: int) -> ZipListing:
    """Return the files in a zip of `size` bytes, damaged or not; the stream must be seekable.

    The directory is checked against the local headers. If they disagree, the whole file is
    searched for local headers. Raises only the stream's OSError.
    """
    try:
        with zipfile.ZipFile(cast(Any, stream)) as archive:
            infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
            ends = [*(info.header_offset for info in infos[1:]), archive.start_dir]
    except DAMAGE as error:
        return ZipListing(
            tuple(LocalHeaderScan(stream, size).entries()), str(error) or "no directory"
        )
    if any(not 0 <= place < size for place in [*(info.header_offset for info in infos), *ends]):
        return ZipListing(tuple(LocalHeaderScan(stream, size).entries()), _DISAGREES)
    some = list(zip(infos, ends, strict=True))
    if len(some) > _CHECKED:
        some = [(info, end) for info, end in some if info.filename.startswith(ARCHIVE_FOLDER)]
    located = [_locate(stream, info, end) for info, end in some]
    listed = [one for one, _ in located]
    entries, agree = listed, all(agrees for _, agrees in located)
    if not all(one.certain for one in listed):
        scanned = {one.header: one for one in LocalHeaderScan(stream, size).entries()}
        found = {one.header: one for one in _unite(listed, scanned) if 0 <= one.header < size}
        entries = [found[place] for place in sorted(found)]
        agree = agree and list(map(_location, entries)) == list(map(_location, listed))
    return ZipListing(tuple(entries), "" if agree else _DISAGREES)


def _location(entry: ZipEntry) -> tuple[object, ...]:
    return entry.name, entry.start, entry.packed, entry.method, entry.encrypted


def _unite(listed: list[ZipEntry], scanned: Mapping[int, ZipEntry]) -> Iterator[ZipEntry]:
    """Yield the files that only the scan found, then those of the directory, corrected."""
    places = {one.header for one in listed if one.certain}
    named = {one.name: one for one in scanned.values() if one.header not in places}
    yield from (one for place, one in scanned.items() if place not in places)
    for one in listed:
        other = scanned.get(one.header)
        if other is None or (other.name != one.name and one.name in named):
            other = named.get(one.name)
        yield one if one.certain else _reconcile(one, other)


def _locate(stream: BinaryIO, info: zipfile.ZipInfo, following: int) -> tuple[ZipEntry, bool]:
    """Return a file of the directory, and whether its local header agrees.

    It is certain if its bytes also end at `following`, the start of the next file or directory.
    """
    name = info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437", "replace")
    stream.seek(info.header_offset)
    head = stream.read(LOCAL.size + len(name)).ljust(LOCAL.size, b"\0")
    signature, flags, method, *_, names, extra = LOCAL.unpack(head[: LOCAL.size])
    start = info.header_offset + LOCAL.size + names + extra
    least = info.header_offset + LOCAL.size + len(name)
    same = signature == SIGNATURE and head[LOCAL.size :] == name and names == len(name)
    before = following - info.compress_size
    if (info.flag_bits | flags) & 8:
        before -= _descriptor_size(stream, info, following)
    sure = same and start == before
    if (
        not sure
        and least <= before <= least + len(info.extra) + _EXTRA
        and (names != len(name) or _opens_archive(stream, before) > _opens_archive(stream, start))
    ):
        start = before
    entry = ZipEntry(
        name=info.filename,
        header=info.header_offset,
        start=start,
        packed=info.compress_size,
        method=_method(info, method),
        crc=info.CRC,
        encrypted=bool(info.flag_bits & flags & 1),
        certain=sure,
    )
    return entry, same and (method, flags & 1) == (info.compress_type, info.flag_bits & 1)


def _opens_archive(stream: BinaryIO, place: int) -> bool:
    stream.seek(max(place, 0))
    return stream.read(8).startswith(_ARCHIVE_MAGICS)


def _descriptor_size(stream: BinaryIO, info: zipfile.ZipInfo, following: int) -> int:
    """Return the size of the data descriptor that ends at `following`, 0 without one."""
    stream.seek(max(following - _LONGEST, 0))
    before = stream.read(min(_LONGEST, max(following, 0)))
    forms = {12: "<IIxxxx", 16: "<4xIIxxxx", 20: "<IQ8x", 24: "<4xIQ8x"}
    for size, form in forms.items():
        if len(before) >= size:
            fields = struct.unpack(form, before[-size:])
            if fields == (info.CRC, info.compress_size):
                signed = size in (12, 20) and before[-size - 4 : -size] == b"PK\x07\x08"
                return size + 4 if signed else size  # with the optional signature
    return 0


def _method(info: zipfile.ZipInfo, local: int) -> int:
    """Return the compression method; the directory and the local header may disagree."""
    known = [method for method in (info.compress_type, local) if method in (STORED, DEFLATED)]
    likely = STORED if info.file_size == info.compress_size else DEFLATED
    return likely if likely in known else (known or [info.compress_type])[0]


def _reconcile(listed: ZipEntry, scanned: ZipEntry | None) -> ZipEntry:
    """Combine the directory's entry with that of the local header at the same offset."""
    if scanned is None or not scanned.certain:
        return listed
    known = scanned if scanned.is_archive and not listed.is_archive else listed
    return replace(scanned, name=known.name, crc=scanned.crc if known is scanned else listed.crc)


class UnpackedEntry:
    """The readable bytes of a file in a zip, and its damage."""

    def __init__(self, pieces: Iterator[bytes], entry: ZipEntry) -> None:
        """`pieces` are the stored bytes."""
        self.damage = ""
        self._entry = entry
        self._pieces = pieces

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes, once; then `damage` says what is wrong, or is empty."""
        crc = 0
        for piece in self._read_stored() if self._entry.method == STORED else self._inflate():
            crc = zlib.crc32(piece, crc)
            yield piece
        if not self.damage and self._entry.crc not in (None, crc):
            self.damage = "its checksum is wrong"
        if not self.damage and self._entry.crc is None and not self._entry.certain:
            self.damage = "its end is unknown"

    def _read_stored(self) -> Iterator[bytes]:
        size = 0
        for piece in self._pieces:
            size += len(piece)
            yield piece
        if size < self._entry.packed:
            self.damage = "the zip file ends too early"

    def _inflate(self) -> Iterator[bytes]:
        inflater = zlib.decompressobj(_RAW)
        for piece in self._pieces:
            while piece and not inflater.eof:
                before = inflater.copy()
                try:
                    data = inflater.decompress(piece, _STEP)
                except zlib.error as error:
                    self.damage = str(error)
                    yield salvage(before, piece)
                    return
                piece = inflater.unconsumed_tail
                if data:
                    yield data
        while not inflater.eof and (data := inflater.decompress(b"", _STEP)):
            yield data
        if not inflater.eof:
            self.damage = "the zip file ends too early"
