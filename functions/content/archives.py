"""Locates the files of web archives, also in WACZ files, and opens byte ranges in them.

A file name comes from a record, so it is untrusted. It is looked up only in the configured places,
or where a file of that name was ingested. WACZ is Webrecorder's WACZ 1.1.1, section 5.
"""

import io
import re
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from functions.archive.zip_directory import UnpackedEntry, read_entries
from functions.archive.zip_headers import DAMAGE, DEFLATED, ZipEntry
from functions.content.archived_payload import cut_pieces, read_pieces
from functions.content.protocols import ContentError
from functions.snapshot.errors import MissingObject
from functions.snapshot.layout import is_key
from functions.store import slice
from functions.store.catalog import Cache
from functions.store.slice import Slices
from functions.store.window_stream import PieceStream, SeekableStream

FARTHEST = 1 << 62
"""An offset beyond the end of any file."""

_LOCAL = struct.Struct("<4s22xHH")
_NEAR = 1 << 16  # bytes of one read: most directories are within this distance from the end
_DIRECTORY = 1 << 24  # maximum size of a directory in bytes
WITHIN = "!/"
"""Separator in an address between a WACZ file and a file in it."""
WARCS = "warcs"
"""Folder in a store for the WARC files of its own captures."""

_NESTED = re.compile(r"(.+?\.wacz)/(.+)", re.IGNORECASE)
_OWN = (f"{WARCS}/", "filesets/", "obi/")  # the parts of a store that hold content


@dataclass(frozen=True, slots=True)
class WaczMember:
    """A file in a zip: offset of its local header, packed size, and whether it is deflated."""

    header: int
    packed: int
    deflated: bool


def wacz_members(slices: Slices, key: str) -> Mapping[str, WaczMember]:
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


@dataclass(frozen=True, slots=True)
class _StoredSlices:
    """Implements Slices over one file, which a zip file holds uncompressed from `start` on."""

    outer: Slices
    zip_key: str
    start: int
    packed: int

    @property
    def address(self) -> str:
        return f"{self.outer.address}/{self.zip_key}"

    def open(self, key: str, offset: int, length: int | None) -> BinaryIO:
        left = max(0, self.packed - offset)
        size = left if length is None else min(length, left)
        return self.outer.open(self.zip_key, self.start + offset, size)

    def size(self, key: str) -> int:
        return self.packed

    def bucket(self, key: str) -> tuple[str, str]:
        return "", ""


class _View(SeekableStream):
    """Random access to an object; the last bytes read are cached."""

    def __init__(self, slices: Slices, key: str) -> None:
        super().__init__(slices.size(key))
        self._slices, self._key = slices, key
        self._from, self._data = 0, b""

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self.size - self._at)
        many = left if size is None or size < 0 else min(size, left)
        if many > _DIRECTORY:
            raise ValueError(f"a directory of {many} bytes")
        start = self._at - self._from
        if start < 0 or start + many > len(self._data):
            self._from = max(0, min(self._at, self.size - _NEAR))
            with self._slices.open(self._key, self._from, max(many, _NEAR)) as stream:
                self._data = io.BufferedReader(cast(io.RawIOBase, stream)).read()
            start = self._at - self._from
        self._at += many
        return self._data[start : start + many]


class PlacedArchives:
    """Implements Archives over places, in order of preference. Thread-safe.

    Of a folder, subfolders are searched, too. `own` is the store, whose own captures are in WARCS.
    `recorded` returns the paths at which files of a name were ingested, which are tried after the
    `places`, and `reached` the Slices for the folder of such a path.
    """

    def __init__(
        self,
        places: Sequence[Slices],
        own: Slices,
        recorded: Callable[[str], Sequence[str]] = lambda name: (),
        reached: Callable[[str], Slices] | None = None,
    ) -> None:
        self._places = [*places]
        self.own = own
        self._recorded = recorded
        self._reached = reached
        self._cache = Cache(4096)

    def candidates(self, filename: str) -> Sequence[str]:
        """Return the addresses at which the file may be; empty if the name is invalid."""
        name, _, inner = filename.partition("/")
        if not _is_name(name) or (inner and not all(map(_is_name, inner.split("/")))):
            return ()
        found = [address for address, *_ in self._lying(name)]
        return [f"{address}{WITHIN}{inner}" for address in found] if inner else found

    def open(self, address: str, offset: int, length: int | None) -> BinaryIO:
        """Return bytes of a file from one range (see Archives.open)."""
        if not 0 <= offset < FARTHEST or not 0 <= (length or 0) < FARTHEST:
            raise ContentError(
                "damaged", f"{_show_name(address)}: there are no bytes at offset {offset}"
            )
        outer, within, inner = address.partition(WITHIN)
        slices, key = self._locate(outer)
        try:
            if within:
                return self._member(slices, key, inner, offset, length)
            return slices.open(key, offset, length)
        except MissingObject as error:
            self._cache.forget(outer.rpartition("/")[2])  # it may be ingested again elsewhere
            raise ContentError("not-at-hand", f"{_show_name(address)} does not exist") from error

    def bucket(self, address: str) -> tuple[str, str]:
        """Return the file's bucket and its key there; empty strings for a folder."""
        slices, key = self._locate(address.partition(WITHIN)[0])
        return ("", "") if WITHIN in address else slices.bucket(key)

    def _lying(self, name: str) -> Sequence[tuple[str, Slices, str]]:
        """Return the possible places of a file: address, Slices and key."""

        def make() -> Sequence[tuple[str, Slices, str]]:
            lying: dict[str, tuple[Slices, str]] = {}
            for place in self._places:
                below = place.below(name) if isinstance(place, slice.FolderSlices) else ()
                for key in (name, *below):
                    lying.setdefault(f"{place.address}/{key}", (place, key))
            if self._reached is not None:
                for path in self._recorded(name):
                    folder, key = slice.split_address(path)
                    # obstore has no keys with two slashes
                    if key == name and "//" not in path.partition("://")[2]:
                        reads = self._reached(folder)
                        lying.setdefault(f"{reads.address}/{key}", (reads, key))
            key = f"{WARCS}/{name}"
            lying.setdefault(f"{self.own.address}/{key}", (self.own, key))
            return [(address, *at) for address, at in lying.items()]

        return self._cache.get(name, make)

    def _locate(self, address: str) -> tuple[Slices, str]:
        """Return the Slices and the key of a file. Raises ContentError if its place is unknown."""
        name = address.rpartition("/")[2]
        if _is_name(name):
            for known, slices, key in self._lying(name):
                if known == address:
                    return slices, key
        key = address.removeprefix(f"{self.own.address}/")
        if key != address and is_key(key) and key.startswith(_OWN):
            return self.own, key
        raise ContentError(
            "not-at-hand", f"{_show_name(address)} is not in any place of archive files"
        )

    def _member(
        self, slices: Slices, key: str, inner: str, offset: int, length: int | None
    ) -> BinaryIO:
        nested = _NESTED.match(inner)
        outer = self._find_member(slices, key, nested[1], 0) if nested else None
        if nested and outer and not outer[1].deflated:
            within = _StoredSlices(slices, key, outer[0], outer[1].packed)
            return self._member(within, nested[1], nested[2], offset, length)
        placed = self._find_member(slices, key, inner, offset + (1 if length is None else length))
        if placed is None:
            raise ContentError("not-at-hand", f"{key} has no {inner}")
        start, member = placed
        if member.deflated:
            stream = slices.open(key, start, member.packed)

            def inflate() -> Iterator[bytes]:
                """Damaged data ends at the same byte as in the ingest."""
                with stream as packed:
                    entry = ZipEntry("", 0, 0, 0, DEFLATED, None)
                    pieces = UnpackedEntry(read_pieces(packed), entry).pieces()
                    yield from cut_pieces(pieces, offset, FARTHEST if length is None else length)

            return cast(BinaryIO, PieceStream(inflate()))
        return _StoredSlices(slices, key, start, member.packed).open(inner, offset, length)

    def _find_member(
        self, slices: Slices, key: str, name: str, least: int
    ) -> tuple[int, WaczMember] | None:
        """Return a member of at least so many stored bytes, with the offset of its first one."""
        address = f"{slices.address}/{key}"

        def find() -> tuple[int, WaczMember] | None:
            with suppress(ContentError):
                member = wacz_members(slices, key).get(name)
                if member:
                    return begins(slices, key, name, member), member
            return None

        placed = self._cache.get((address, name), find)
        if placed is None or not (placed[1].deflated or least <= placed[1].packed):
            # A separate cache key: the answer must not depend on earlier requests.
            placed = self._cache.get(
                (address, name, "recovered"), lambda: recover(slices, key, name)
            )
        return placed


def _show_name(address: str) -> str:
    """Return a file's name without its folder, which must not be disclosed."""
    outer, within, inner = address.partition(WITHIN)
    return outer.rpartition("/")[2] + within + inner


def _is_name(name: str) -> bool:
    """Return whether the text is a safe file name that leads nowhere else."""
    return name not in ("", ".", "..") and name.isprintable() and not {*"/\\"} & {*name}
