"""Locates the files of web archives and opens byte ranges in them.

A file name comes from a record, so it is untrusted. It is looked up only in the configured places,
or where a file of that name was ingested.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import BinaryIO, cast

from functions.content import wacz
from functions.content.errors import ContentError
from functions.snapshot.address import is_key
from functions.snapshot.errors import MissingObject
from functions.store import slice
from functions.store.catalog import Cache
from functions.store.slice import Slices

WITHIN = "!/"
"""Separator in an address between a WACZ file and a file in it."""
WARCS = "warcs"
"""Folder in a store for the WARC files of its own captures."""

_OWN = (f"{WARCS}/", "filesets/", "obi/")  # the parts of a store that hold content


class PlacedArchives:
    """Implements Archives over places, in order of preference. Thread-safe.

    `own` is the store, whose own captures are in WARCS. If `places` is empty, `recorded` returns
    the paths at which files of a name were ingested, and `reached` returns the Slices for a path.
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
        if not 0 <= offset < wacz.FARTHEST or not 0 <= (length or 0) < wacz.FARTHEST:
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
            found = [(f"{p.address}/{name}", p, name) for p in self._places]
            if not self._places and self._reached is not None:
                for path in self._recorded(name):
                    place, key = slice.split_address(path)
                    if key == name:
                        reads = self._reached(place)
                        found.append((f"{reads.address}/{key}", reads, key))
            key = f"{WARCS}/{name}"
            found.append((f"{self.own.address}/{key}", self.own, key))
            return found

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
        address = f"{slices.address}/{key}"

        def find() -> tuple[int, wacz.WaczMember] | None:
            with suppress(ContentError):
                member = wacz.members(slices, key).get(inner)
                if member:
                    return wacz.begins(slices, key, inner, member), member
            return None

        found = self._cache.get((address, inner), find)
        if found is None or not _fits(found[1], offset, length):
            # A separate cache key: the answer must not depend on earlier requests.
            found = self._cache.get(
                (address, inner, "recovered"), lambda: wacz.recover(slices, key, inner)
            )
        if found is None:
            raise ContentError("not-at-hand", f"{key} has no {inner}")
        start, member = found
        if member.deflated:
            whole = slices.open(key, start, member.packed)
            inflated = cast(BinaryIO, wacz.Inflated(whole, offset))
            if length is None:
                return inflated
            return cast(BinaryIO, slice.Bounded(inflated, length))
        left = max(0, member.packed - offset)
        return slices.open(key, start + offset, left if length is None else min(length, left))


def _fits(member: wacz.WaczMember, offset: int, length: int | None) -> bool:
    """Return whether a member's size by the directory leaves room for these bytes."""
    return member.deflated or offset + (1 if length is None else length) <= member.packed


def _show_name(address: str) -> str:
    """Return a file's name without its folder, which must not be disclosed."""
    outer, within, inner = address.partition(WITHIN)
    return outer.rpartition("/")[2] + within + inner


def _is_name(name: str) -> bool:
    """Return whether the text is a safe file name that leads nowhere else."""
    return name not in ("", ".", "..") and name.isprintable() and not {*"/\\"} & {*name}
