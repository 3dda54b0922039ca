"""The files in a zip by its central directory, or by their local headers where that is damaged.

`zipfile` reads the directory. It gives up without one, as in a download that was cut, although the
archives before it are whole; then the local headers of files that WACZ has are searched.
APPNOTE.TXT, sections 4.3.7 (local header), 4.3.9 (data descriptor), 4.3.12 (directory), 4.5.3
(ZIP64).
"""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, BinaryIO, cast

from functions.archive.inflate import salvage

DAMAGE = (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, OverflowError)
"""What zipfile raises for a file that is damaged or no zip: NotImplementedError if a header asks
for a later version of zip, ValueError for names and offsets."""
STORED, DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
"""Supported compression methods."""

_FOLDER = "archive/"  # of a WACZ, with its web archives
_DIRECTORY = 1 << 24  # maximum size of a directory in bytes
_STEP = 1 << 16
_SCANNED = 1 << 20  # bytes of one read of a search
_RAW = -15  # deflate without any header
_ENCRYPTED, _DEFERRED = 1, 8  # flags: bit 3 leaves size and CRC to a descriptor behind the file
_SIGNATURE = b"PK\x03\x04"
_LOCAL = struct.Struct("<4s2xHH4xIIIHH")
"""Signature, flags, method, CRC, stored and unpacked size, lengths of name and extra field."""
_DESCRIPTORS = (struct.Struct("<4sII4x"), struct.Struct("<4sIQ8x"))
_MOST = 1 << 16  # files of one zip
_END = 22  # bytes of the end of a directory, without its comment
_TRIED = 100  # borders of which one may end a file
_BORDER = re.compile(
    rb"(?:PK\x03\x04.{26}|PK\x01\x02.{42})"
    rb"(?=(?:archive|pages|indexes|fuzzy|logs)/|datapackage|webarchive|signature"
    rb"|[\x20-\xff]{1,99}\.(?i:wacz))",
    re.DOTALL,
)
_BEHIND, _AHEAD = 24, 46 + 104  # bytes of the longest descriptor, and of a border with its name


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
    encrypted: bool

    @property
    def is_archive(self) -> bool:
        """Whether it is in the folder for web archives (WACZ 1.1.1, section 5)."""
        return self.name.startswith(_FOLDER) and not self.name.endswith("/")

    @property
    def is_readable(self) -> bool:
        """Whether its compression is supported."""
        return self.method in (STORED, DEFLATED) and not self.encrypted


@dataclass(frozen=True, slots=True)
class ZipListing:
    """The files of a zip by offset, and the problem of its directory, if it has one."""

    entries: tuple[ZipEntry, ...]
    problem: str = ""


class _DirectoryStream(io.BufferedReader):
    """Reads no more at once than a directory has: a lying zip must not fill the memory."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _DIRECTORY:
            raise ValueError(f"a directory of {size} bytes")
        return super().read(size)


def read_entries(stream: BinaryIO, size: int, wanted: Callable[[ZipEntry], bool]) -> ZipListing:
    """Return the files in a zip of `size` bytes, damaged or not; the stream must be seekable.

    Of the `wanted` files the local header is read, too: other entries have no right `start`. If one
    disagrees, or there is no directory, the whole zip is searched for local headers. Raises only
    the stream's OSError.
    """
    buffered = _DirectoryStream(cast(io.RawIOBase, stream))
    try:
        with zipfile.ZipFile(cast(Any, buffered)) as archive:
            infos, end = archive.infolist(), size - _END - len(archive.comment)
        buffered.seek(end)
        if buffered.read(4) != b"PK\x05\x06":
            raise ValueError("bytes follow it")  # it may be that of a zip in this one
        if any(b"PK\x01\x02" in info.extra + info.comment for info in infos):
            raise ValueError("an entry hides others")  # by a wrong length
        listed = [_describe(info) for info in infos]
        located = [_locate(buffered, size, e) if wanted(e) else (e, True) for e in listed]
        sound = {entry.header: entry for entry, agrees in located if agrees}
        problem = ""
        if len(sound) < len(located):
            problem = "it disagrees with the headers of the files"
            doubtful = [entry for entry, agrees in located if not agrees]
            likely = {entry.header: entry for entry in doubtful if entry.start > entry.header}
            likely |= {entry.header: entry for entry in scan_headers(buffered, size)}
            whole = filter(None, (_prove(buffered, size, entry) for entry in doubtful))
            sound = likely | {entry.header: entry for entry in whole} | sound
        return ZipListing(tuple(sound[header] for header in sorted(sound)), problem)
    except DAMAGE as error:
        return ZipListing(scan_headers(buffered, size), str(error) or "no directory")
    finally:
        buffered.detach()


def _describe(info: zipfile.ZipInfo) -> ZipEntry:
    return ZipEntry(
        name=_print_name(info.orig_filename),
        header=info.header_offset,
        start=info.header_offset,
        packed=info.compress_size,
        method=info.compress_type,
        crc=info.CRC,
        encrypted=bool(info.flag_bits & _ENCRYPTED),
    )


def _locate(stream: BinaryIO, size: int, entry: ZipEntry) -> tuple[ZipEntry, bool]:
    """Return the entry with its start, and whether its local header agrees."""
    local = None
    if 0 <= entry.header < size:
        stream.seek(entry.header)
        local = _read_header(stream, entry.header)
    if local is None:
        return entry, False
    entry = replace(entry, start=local.start)
    if local.crc is None:
        local = replace(local, crc=entry.crc, packed=entry.packed)
    return entry, local == entry


def _prove(stream: BinaryIO, size: int, entry: ZipEntry) -> ZipEntry | None:
    """Return the entry of the directory if its bytes have its CRC: then its header is damaged.

    Its start follows from its name. A file that only its header has in the archive folder is there.
    """
    if not 0 <= entry.header < size or not entry.is_readable:
        return None
    for encoding in ("utf-8", "cp437"):
        stream.seek(entry.header)
        length = len(entry.name.encode(encoding, "replace"))
        local = _read_header(stream, entry.header, length)
        if local is None:
            return None
        stored = read_range(stream, local.start, entry.packed)
        unpacked = UnpackedEntry(stored, entry.method, entry.packed, entry.crc)
        for _ in unpacked.pieces():
            pass
        if not unpacked.damage:
            name = local.name if local.is_archive and not entry.is_archive else entry.name
            return replace(entry, start=local.start, name=name)
    return None


def read_range(stream: BinaryIO, at: int, left: int) -> Iterator[bytes]:
    """Yield stored bytes of a zip file; others may move the stream meanwhile."""
    while left > 0 and stream.seek(at) == at and (piece := stream.read(min(left, _SCANNED))):
        at += len(piece)
        left -= len(piece)
        yield piece


def _read_header(stream: BinaryIO, place: int, length: int | None = None) -> ZipEntry | None:
    """Return the file of a local header at the stream's position; its CRC is None if deferred.

    With `length`, that of its name in bytes, the header is known to be there.
    """
    head = stream.read(_LOCAL.size)
    if len(head) < _LOCAL.size or not (length or head.startswith(_SIGNATURE)):
        return None
    _, flags, method, crc, packed, _, names, extras = _LOCAL.unpack(head)
    names = length or names
    name, extra = stream.read(names), stream.read(extras)
    text = name.decode("utf-8" if name.isascii() or flags & 0x800 else "cp437", "replace")
    at = 0
    while packed == 0xFFFFFFFF and at + 20 <= len(extra):
        kind, field = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            packed = int(struct.unpack_from("<Q", extra, at + 12)[0])
        at += 4 + field
    start = place + _LOCAL.size + names + extras
    checksum = None if flags & _DEFERRED else crc
    return ZipEntry(
        _print_name(text), place, start, packed, method, checksum, bool(flags & _ENCRYPTED)
    )


def _print_name(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def scan_headers(stream: BinaryIO, size: int) -> tuple[ZipEntry, ...]:
    """Return the files of a zip by their local headers, in order; it is read once.

    A file ends where its header says, if another header of the zip begins there. Otherwise it ends
    at a header that has a fitting data descriptor before it, or at the next header.
    """
    borders = [*islice(_find_borders(stream, size), _MOST)]
    stream.seek(max(size - _BEHIND, 0))
    borders.append((size, stream.read(_BEHIND)))
    entries: list[ZipEntry] = []
    end = 0
    for number, (place, _) in enumerate(borders[:-1], 1):
        if place < end:  # in a zip that an archive has captured
            continue
        stream.seek(place)
        entry = _read_header(stream, place)
        if entry is None:  # of the directory
            continue
        end = entry.start + entry.packed
        stream.seek(min(end, size))
        if entry.crc is None or not (end == size or stream.read(2) == b"PK"):
            rest = [border for border in borders[number:-1] if border[0] >= entry.start]
            entry = _find_end(entry, [*rest[:_TRIED], borders[-1]])
            end = entry.start + entry.packed
        entries.append(entry)
    return tuple(entries)


def _find_end(entry: ZipEntry, borders: Sequence[tuple[int, bytes]]) -> ZipEntry:
    for place, before in borders:
        for form in _DESCRIPTORS:
            if len(before) >= form.size:
                mark, crc, packed = form.unpack(before[-form.size :])
                if mark == b"PK\x07\x08" and packed == place - form.size - entry.start:
                    return replace(entry, packed=packed, crc=crc)
    return replace(entry, packed=max(borders[0][0] - entry.start, 0))


def _find_borders(stream: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the offset of each header of a file that WACZ has, and the bytes before it."""
    base, data = 0, b""
    while base + len(data) < size:
        stream.seek(base + len(data))
        piece = stream.read(_SCANNED)
        if not piece:
            return
        data += piece
        last = base + len(data) >= size
        until = len(data) if last else len(data) - _AHEAD
        for match in _BORDER.finditer(data):
            if _BEHIND <= match.start() < until or (base == 0 and match.start() < until):
                yield base + match.start(), data[max(match.start() - _BEHIND, 0) : match.start()]
        cut = max(until - _BEHIND, 0)
        base, data = base + cut, data[cut:]


class UnpackedEntry:
    """The readable bytes of a file in a zip, and its damage."""

    def __init__(
        self,
        pieces: Iterator[bytes],
        method: int = DEFLATED,
        packed: int = 0,
        crc: int | None = None,
    ) -> None:
        """`pieces` are the stored bytes, `packed` in all; None is a CRC that is unknown."""
        self.damage = ""
        self._pieces, self._method, self._packed, self._crc = pieces, method, packed, crc

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes, once; then `damage` says what is wrong, or is empty."""
        crc = size = 0
        for piece in self._pieces if self._method == STORED else self._inflate():
            crc = zlib.crc32(piece, crc)
            size += len(piece)
            yield piece
        if self._method == STORED and size < self._packed:
            self.damage = "the zip file ends too early"
        if not self.damage and self._crc not in (None, crc):
            self.damage = "its checksum is wrong"

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
