"""Copies objects from a store to another, and verifies the bytes of each.

The objects come in stages. No object of a stage names another one of that stage, so its objects may
be copied in any order, and several at once.
"""

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from builder.runtime import Advance
from builder.store.durable import digest_object, read_chunks
from builder.store.key_set import KeySet
from builder.threads import map_in_order
from functions.snapshot.errors import Conflict, DamagedStore, StoreError
from functions.snapshot.store import Reader, Writer

DAMAGED = "run `sheaf verify` to see all damage"
_SMALL = 1 << 20  # bytes of the largest object that is copied together with others
_THREADS = 16
_AHEAD = 64  # small objects in memory at a time


class ForeignTarget(StoreError):
    """The target holds something other than an earlier state of the source."""


@dataclass(frozen=True, slots=True)
class CopiedObject:
    """An object to copy: its key, its size in bytes, and the SHA-256 that it must have.

    `digest` is hexadecimal, and may be cut; "" allows any bytes. A document has its `data` as well,
    and is compared by its bytes. If it is `replaced`, other bytes at the target are an older state;
    otherwise they belong to another store.
    """

    key: str
    size: int
    digest: str = ""
    data: bytes | None = None
    replaced: bool = False


Stage = Iterable[CopiedObject]


class TargetListing:
    """The objects of a target by key and size, of which each takes 16 bytes of memory."""

    def __init__(self, target: Writer, places: Iterable[str]) -> None:
        self._keys, self._sizes = KeySet(), KeySet()
        for entry in (entry for prefix in places for entry in target.entries(prefix)):
            self._keys.add(entry.key)
            self._sizes.add(f"{entry.key} {entry.bytes}")

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def has(self, key: str, size: int) -> bool:
        """Return whether the target has an object of that size at `key`."""
        return f"{key} {size}" in self._sizes


def read_document(source: Reader, key: str, *, replaced: bool = False) -> CopiedObject:
    """Read a small object to copy. Raises MissingObject."""
    data = source.read(key)
    return CopiedObject(key, len(data), data=data, replaced=replaced)


class ObjectCopier:
    """Copies objects; counts them, their bytes, and the objects that the target has already."""

    def __init__(
        self, source: Writer, target: Writer, there: TargetListing, advance: Advance
    ) -> None:
        self._source = source
        self.target = target
        self._listing = there
        self._advance = advance
        self.objects = self.bytes = self.there = 0

    def copy(self, stages: Iterable[Stage]) -> None:
        """Copy the stages, each once the one before it is complete.

        Raises DamagedStore if the source has other bytes than it must have, ForeignTarget if the
        target has other bytes of the same size.
        """
        for stage in stages:
            lacking = []
            for named in stage:
                if named.data is not None:
                    there = named.key in self._listing
                    self.put(named, self.target.tag(named.key) if there else None)
                elif self._listing.has(named.key, named.size):
                    self.there += 1
                else:
                    lacking.append(named)
            # What has another size is damaged at the target.
            self.target.remove(*(named.key for named in lacking if named.key in self._listing))
            self._copy_small([named for named in lacking if named.size <= _SMALL])
            for named in lacking:
                if named.size > _SMALL:
                    self._copy_large(named)

    def put(self, document: CopiedObject, tag: str | None) -> None:
        """Write a document, in the place of the one with the tag."""
        data = document.data or b""
        if tag is not None:
            if self.target.read(document.key) == data:
                self.there += 1
                return
            if not document.replaced:
                raise self._foreign(document.key)
        self.target.replace(document.key, data, tag)
        self._count(data)

    def _copy_small(self, lacking: Sequence[CopiedObject]) -> None:
        """Copy objects, of which several are read and written at once."""
        sent: deque[tuple[str, bytes]] = deque()

        def read() -> Iterator[tuple[str, bytes]]:
            fetched = map_in_order(lambda o: self._source.read(o.key), lacking, _THREADS, _AHEAD)
            with closing(fetched):
                for named, data in zip(lacking, fetched, strict=True):
                    self._check(named, hashlib.sha256(data).hexdigest())
                    self._advance(len(data))
                    sent.append((named.key, data))
                    yield sent[-1]

        for written in self.target.create_all(read()) if lacking else ():
            key, data = sent.popleft()
            if not written and self.target.read(key) != data:
                raise self._foreign(key)
            self._count(data)

    def _copy_large(self, named: CopiedObject) -> None:
        digest = hashlib.sha256()
        try:
            with (
                self.target.creating(named.key, named.size) as sink,
                closing(self._source.open(named.key)) as source,
            ):
                for chunk in read_chunks(source, named.key):
                    digest.update(chunk)
                    sink.write(chunk)
                    self._advance(len(chunk))
                self._check(named, digest.hexdigest())
        except Conflict:
            if digest_object(self.target, named.key)[0] != digest.hexdigest():
                raise self._foreign(named.key) from None
        self.objects += 1
        self.bytes += named.size

    def _count(self, data: bytes) -> None:
        self.objects += 1
        self.bytes += len(data)

    def _check(self, named: CopiedObject, digest: str) -> None:
        if not digest.startswith(named.digest):
            where = f"{named.key} of {self._source.address}"
            raise DamagedStore(f"{where} does not match its digest: {DAMAGED}")

    def _foreign(self, key: str) -> ForeignTarget:
        return ForeignTarget(f"{self.target.address} has another {key}: choose an empty place")
