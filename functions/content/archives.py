"""Locates the files of web archives, also in WACZ files, and opens byte ranges in them.

A file name comes from a record, so it is untrusted. It is looked up only in the configured places,
or where a file of that name was ingested. WACZ is Webrecorder's WACZ 1.1.1, section 5.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, cast

from functions.archive.zip_directory import DEFLATED, UnpackedEntry, ZipEntry, read_entries
from functions.content.archived_payload import cut_pieces, read_pieces
from functions.content.protocols import ContentError
from functions.snapshot.errors import MissingObject
from functions.snapshot.layout import is_key
from functions.store import slice
from functions.store.catalog import Cache
from functions.store.slice import Slices
from functions.store.window_stream import PieceStream, RangeFile

FARTHEST = 1 << 62
"""An offset beyond the end of any file."""

_NEAR = 1 << 16  # bytes of one read: most directories are within this distance from the end
WITHIN = "!/"
"""Separator in an address between a WACZ file and a file in it."""
WARCS = "warcs"
"""Folder in a store for the WARC files of its own captures."""

_NESTED = re.compile(r"(.+?\.wacz)/(.+)", re.IGNORECASE)
_OWN = (f"{WARCS}/", "filesets/", "obi/")  # the parts of a store that hold content


def find_member(slices: Slices, key: str, name: str) -> ZipEntry | None:
    """Return a file of a zip as an ingest finds it; None if it is missing or unreadable.

    This may read the whole zip if it is damaged. Raises StoreError.
    """

    def read(start: int, length: int) -> bytes:
        with slices.open(key, start, length) as stream:
            return b"".join(read_pieces(stream))

    size = slices.size(key)
    view = cast(BinaryIO, RangeFile(read, size, least=_NEAR))
    for choice in (lambda entry: entry.name == name, lambda entry: True):  # of a damaged name
        for file in read_entries(view, size, choice).entries:
            if file.name == name and file.is_readable:
                return file
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
        addresses = [address for address, *_ in self._lying(name)]
        return [f"{address}{WITHIN}{inner}" for address in addresses] if inner else addresses

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
            for candidate, slices, key in self._lying(name):
                if candidate == address:
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
        outer = self._find_member(slices, key, nested[1]) if nested else None
        if nested and outer and outer.method != DEFLATED:
            within = _StoredSlices(slices, key, outer.start, outer.packed)
            return self._member(within, nested[1], nested[2], offset, length)
        member = self._find_member(slices, key, inner)
        if member is None:
            raise ContentError("not-at-hand", f"{key} has no {inner}")
        if member.method == DEFLATED:
            stream = slices.open(key, member.start, member.packed)

            def inflate() -> Iterator[bytes]:
                """Damaged data ends at the same byte as in the ingest."""
                with stream as packed:
                    pieces = UnpackedEntry(read_pieces(packed)).pieces()
                    yield from cut_pieces(pieces, offset, FARTHEST if length is None else length)

            return cast(BinaryIO, PieceStream(inflate()))
        return _StoredSlices(slices, key, member.start, member.packed).open(inner, offset, length)

    def _find_member(self, slices: Slices, key: str, name: str) -> ZipEntry | None:
        cached = f"{slices.address}/{key}", name
        return self._cache.get(cached, lambda: find_member(slices, key, name))


def _show_name(address: str) -> str:
    """Return a file's name without its folder, which must not be disclosed."""
    outer, within, inner = address.partition(WITHIN)
    return outer.rpartition("/")[2] + within + inner


def _is_name(name: str) -> bool:
    """Return whether the text is a safe file name that leads nowhere else."""
    return name not in ("", ".", "..") and name.isprintable() and not {*"/\\"} & {*name}
