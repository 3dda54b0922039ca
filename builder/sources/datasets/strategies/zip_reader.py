"""Reader for foreign zips: lists members within limits, and hashes all of them in one pass.

Nothing is unpacked to a disk. The zip's directory is checked before any member is inflated, and
inflated bytes are counted against it. zipfile lists the directory and reads no member: it cuts one
that inflates to more than its declared size, instead of refusing it. It also seeks, and an object
of a bucket is read forwards.
"""

import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from builder.sources.datasets.manifest_file import Digests, compute_digests
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies.paths import safe_path
from functions.archive.zip_directory import DAMAGE
from functions.snapshot.store import Reader
from functions.store.window_stream import SeekableStream

MEMBERS = 20_000
"""Most entries of a zip, folders included."""
DIRECTORY = 4 << 20
"""Most bytes of a directory: some 200 for each of so many entries."""
RATIO = 1032
"""Most bytes that one byte can inflate to, a limit of deflate."""

_COMPRESSIONS = {zipfile.ZIP_STORED: "stored", zipfile.ZIP_DEFLATED: "deflated"}
_ENCRYPTED, _UTF8 = 1 | 1 << 6 | 1 << 13, 1 << 11
_UNIX = (3, 19)
_LOCAL = struct.Struct("<4sHHHHHLLLHH")
_STEP = 1 << 16


@dataclass(frozen=True, slots=True)
class ArchivedEntry:
    """A member in the zip's directory; `path` is safe, `raw` as it is in the zip."""

    path: str
    raw: bytes
    header: int
    packed: int
    size: int
    crc32: str
    compression: str


@dataclass(frozen=True, slots=True)
class ArchivedMember:
    """A member that was read completely: offset of its bytes, packed or not, and its digests."""

    entry: ArchivedEntry
    offset: int
    digests: Digests


class Ranges(SeekableStream):
    """Random access to an object of a store, at most DIRECTORY bytes at once."""

    def __init__(self, store: Reader, key: str) -> None:
        super().__init__(store.local(key, [(0, 0)]).stat().st_size)
        self._store, self._key = store, key

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to `size` bytes. Raises FilesetError (bundle-bomb) if that is too many."""
        left = max(0, self.size - self._at)
        many = left if size is None or size < 0 else size
        if many > DIRECTORY:
            raise FilesetError("bundle-bomb", f"a directory of {many:,} bytes")
        many = min(many, left)
        with self._store.local(self._key, [(self._at, many)]).open("rb") as stream:
            stream.seek(self._at)
            data = stream.read(many)
        self._at += len(data)
        return data


def directory(
    stream: BinaryIO | Ranges, most: int, members: int = MEMBERS
) -> tuple[ArchivedEntry, ...]:
    """Return the members of a zip in the order of their offsets, without folders.

    `most` bounds their inflated bytes in all. Raises FilesetError: bundle-unreadable,
    bundle-unsafe-member, bundle-bomb.
    """
    try:
        with zipfile.ZipFile(cast(Any, stream)) as archive:
            listed, end = archive.infolist(), archive.start_dir
    except DAMAGE as error:
        raise FilesetError("bundle-unreadable", str(error)) from error
    if len(listed) > members:
        raise FilesetError("bundle-bomb", f"{len(listed):,} members, but {members:,} are allowed")
    entries = [entry for info in listed if (entry := _entry(info)) is not None]
    entries.sort(key=lambda entry: entry.header)
    _check_bounds(entries, end, most)
    seen: dict[str, ArchivedEntry] = {}
    for entry in entries:
        if seen.setdefault(entry.path, entry) is not entry:
            raise FilesetError("bundle-unsafe-member", f"it has {entry.path!r} twice")
    return tuple(entries)


def read(
    entries: Sequence[ArchivedEntry], stream: BinaryIO, go_on: Callable[[], None] = lambda: None
) -> Iterator[ArchivedMember]:
    """Yield the members, in the order of their offsets, of a zip that is read forwards.

    Raises FilesetError: bundle-unreadable, bundle-bomb, mismatch-crc32.
    """
    at = 0
    for entry in entries:
        at += sum(map(len, _take_chunks(stream, entry.header - at)))
        header = b"".join(_take_chunks(stream, _LOCAL.size + len(entry.raw)))
        mark, *_, length, extra = _LOCAL.unpack_from(header)
        if (mark, length, header[_LOCAL.size :]) != (b"PK\3\4", len(entry.raw), entry.raw):
            detail = f"the header of {entry.path} differs from the directory"
            raise FilesetError("bundle-unreadable", detail)
        offset = at + len(header) + extra
        at += len(header)
        at += sum(map(len, _take_chunks(stream, offset - at)))
        digests = compute_digests(inflate(entry, stream, go_on))
        at = offset + entry.packed
        if digests.size != entry.size:
            detail = f"{entry.path} has {digests.size:,} bytes, but {entry.size:,} in the directory"
            raise FilesetError("bundle-unreadable", detail)
        if (crc := digests.of("crc32")) != entry.crc32:
            detail = f"{entry.path} has {crc}, but {entry.crc32} in the directory"
            raise FilesetError("mismatch-crc32", detail)
        yield ArchivedMember(entry, offset, digests)


def inflate(
    entry: ArchivedEntry, stream: BinaryIO, go_on: Callable[[], None] = lambda: None
) -> Iterator[bytes]:
    """Yield a member's bytes from a stream at their start; it consumes all packed bytes.

    Raises FilesetError: bundle-unreadable, and bundle-bomb for more bytes than the directory says.
    """
    if entry.compression == "stored":
        for chunk in _take_chunks(stream, entry.packed):
            go_on()
            yield chunk
        return
    inflater = zlib.decompressobj(-15)
    size = 0
    try:
        for packed in _take_chunks(stream, entry.packed):
            for chunk in _steps(inflater, packed):
                go_on()
                size += len(chunk)
                if size > entry.size:
                    raise FilesetError(
                        "bundle-bomb", f"{entry.path} inflates to more than its declared size"
                    )
                yield chunk
    except zlib.error as error:
        raise FilesetError("bundle-unreadable", f"{entry.path}: {error}") from error
    if not inflater.eof:
        raise FilesetError("bundle-unreadable", f"{entry.path} ends too early")


def _steps(inflater: "zlib._Decompress", packed: bytes) -> Iterator[bytes]:
    """Yield the inflated bytes of some packed bytes, in small chunks."""
    while not inflater.eof:
        chunk = inflater.decompress(packed, _STEP)
        packed = inflater.unconsumed_tail
        if chunk:
            yield chunk
        if not packed and len(chunk) < _STEP:
            return


def _entry(info: zipfile.ZipInfo) -> ArchivedEntry | None:
    """Return the entry of a member, None for a folder. Raises FilesetError."""
    flagged = bool(info.flag_bits & _UTF8)
    raw = info.orig_filename.encode("utf-8" if flagged else "cp437")
    name = info.orig_filename
    if not flagged:
        with suppress(UnicodeDecodeError):  # many are UTF-8 all the same
            name = raw.decode()
    if name.endswith("/") and not info.file_size:
        return None
    if info.flag_bits & _ENCRYPTED:
        raise FilesetError("bundle-unreadable", f"{name!r} is encrypted")
    if info.compress_type not in _COMPRESSIONS:
        detail = f"{name!r} is packed with zip method {info.compress_type}"
        raise FilesetError("bundle-unreadable", detail)
    kind = stat.S_IFMT(info.external_attr >> 16) if info.create_system in _UNIX else 0
    if kind not in (0, stat.S_IFREG):
        detail = f"{name!r} is a link" if kind == stat.S_IFLNK else f"{name!r} is not a file"
        raise FilesetError("bundle-unsafe-member", detail)
    try:
        safe = safe_path(name)
    except FilesetError as error:
        raise FilesetError("bundle-unsafe-member", error.detail) from error
    return ArchivedEntry(
        safe,
        raw,
        info.header_offset,
        info.compress_size,
        info.file_size,
        f"{info.CRC:08x}",
        _COMPRESSIONS[info.compress_type],
    )


def _check_bounds(entries: Sequence[ArchivedEntry], end: int, most: int) -> None:
    """Check that members do not overlap, end before the directory, and are not too large."""
    total = 0
    ends = [*(entry.header for entry in entries[1:]), end]
    for entry, following in zip(entries, ends, strict=False):
        total += entry.size
        if entry.header < 0:
            raise FilesetError("bundle-unreadable", f"{entry.path} is before the zip")
        if entry.header + _LOCAL.size + len(entry.raw) + entry.packed > following:
            raise FilesetError("bundle-bomb", f"{entry.path} overlaps with the next member")
        if entry.compression == "stored" and entry.size != entry.packed:
            raise FilesetError(
                "bundle-unreadable",
                f"{entry.path} is stored without compression, but has two sizes",
            )
        if entry.size > RATIO * entry.packed + _STEP:
            raise FilesetError("bundle-bomb", f"{entry.path} inflates to {entry.size:,} bytes")
    if total > most:
        raise FilesetError(
            "bundle-bomb", f"it inflates to {total:,} bytes, but {most:,} are allowed"
        )


def _take_chunks(stream: BinaryIO, many: int) -> Iterator[bytes]:
    """Yield the next bytes, `many` in all. Raises FilesetError if the stream ends before."""
    while many > 0:
        chunk = stream.read(min(many, _STEP))
        if not chunk:
            raise FilesetError("bundle-unreadable", "it ends too early")
        many -= len(chunk)
        yield chunk
