"""Sparse local cache of S3 objects: only the requested bytes are correct."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from functions.snapshot.errors import Conflict, DamagedStore, StoreError
from functions.store import s3_request, scratch
from functions.store.connection import ObjectClient, ObjectPart
from functions.store.scratch import Extent, Scratch

T = TypeVar("T")

SMALL = 1 << 20
"""Bytes of an object that is fetched whole; the request is the main cost."""
KEPT = 20.0
"""Seconds for which a returned file stays, even above the limit, so that its caller can open it."""


@dataclass(slots=True)
class _Held:
    """The local part of one object. Threads are fetching the extents in `flying`."""

    path: Path
    size: int = -1  # not known yet
    tag: str = ""
    extents: tuple[Extent, ...] = ()
    flying: list[Extent] = field(default_factory=list)
    used: float = 0.0

    @property
    def bytes(self) -> int:
        return sum(extent.length for extent in self.extents)


class Mirror:
    """Keeps local files of immutable objects: at most `limit` bytes, or all of them if None.

    The least recently used file is removed first. A file used within `kept` seconds stays, even
    beyond the limit, because its caller is about to open it. The files are removed when the process
    ends. Thread-safe.
    """

    def __init__(
        self,
        client: ObjectClient,
        limit: int | None,
        clock: Callable[[], float] = time.monotonic,
        kept: float = KEPT,
        small: int | None = None,
    ) -> None:
        """Fetch whole objects of up to `small` bytes (SMALL), and also gaps of half of that."""
        self._client = client
        self._small = SMALL if small is None else small
        self._limit = limit
        self._kept = kept
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._changed = threading.Condition(threading.RLock())
        self._count = 0
        self._scratch = Scratch()
        self._folder = self._scratch.path
        self._width = 2 * client.connection.concurrency
        self._pool = ThreadPoolExecutor(self._width, "sheaf-fetch")
        self.close = self._scratch.close

    def local(
        self, key: str, spans: Sequence[tuple[int, int]] | None, size: int | None = None
    ) -> Path:
        """Return a file of the object's size in which `spans` (None: all) are correct.

        If `size` is known, no more than the spans of a large object is fetched, and a small one
        whole. Raises MissingObject, or StoreError, also if the object was replaced.
        """
        if size is not None and size <= self._small:
            spans = None
        wanted = None if spans is None else [Extent(o, o + n) for o, n in spans if n > 0]
        while True:
            held, missing = self._claim(key, wanted)
            if not missing:
                return held.path
            try:
                if held.size < 0:
                    self._begin(key, held, wanted, exactly=size is not None)
                else:
                    self._fetch(key, held, missing)
            except Conflict as error:
                self.forget(key)
                raise StoreError(
                    f"{self._client.where(key)} was replaced while it was being read"
                ) from error
            except OSError as error:
                self.forget(key)
                raise StoreError(
                    f"{self._folder}, the cache of the bucket, cannot be written: "
                    f"{error.strerror}; free some space, or set TMPDIR to another folder"
                ) from error
            finally:
                with self._changed:
                    for one in missing:
                        held.flying.remove(one)
                    self._changed.notify_all()
            self._trim()

    def adopt(self, key: str, path: Path) -> None:
        """Keep a file that was just uploaded, so that the object need not be fetched.

        A file on another file system is not kept. The file must not be changed later.
        """
        with self._changed:
            if key in self._held:
                return
            target = self._path(key)
            try:
                os.link(path, target)
            except OSError:
                return
            size = target.stat().st_size
            self._held[key] = _Held(target, size, extents=(Extent(0, size),), used=self._clock())

    def forget(self, *keys: str) -> None:
        """Remove the objects' files; a thread with an open file can still read it."""
        with self._changed:
            for key in keys:
                if (held := self._held.pop(key, None)) is not None:
                    held.path.unlink(missing_ok=True)

    def _claim(self, key: str, wanted: Sequence[Extent] | None) -> tuple[_Held, tuple[Extent, ...]]:
        """Return the extents that only this thread must fetch; empty if all are present.

        For an object of unknown size, this is its first byte: one thread creates its file.
        """
        with self._changed:
            while True:
                held = self._held.get(key)
                if held is None:
                    held = self._held[key] = _Held(self._path(key))
                if held.size < 0:
                    missing: tuple[Extent, ...] = (Extent(0, 1),)
                else:
                    asked = [Extent(0, held.size)] if wanted is None else wanted
                    self._check(key, held, asked)
                    missing = scratch.missing_extents(asked, held.extents)
                held.used = self._clock()
                if not any(a.meets(b) for a in missing for b in held.flying):
                    held.flying += missing
                    return held, missing
                self._changed.wait()

    def _path(self, key: str) -> Path:
        self._count += 1
        return self._folder / f"{self._count}-{key.rpartition('/')[2][-80:]}"

    def _begin(
        self, key: str, held: _Held, wanted: Sequence[Extent] | None, *, exactly: bool
    ) -> None:
        """Create the file with the first wanted bytes; the response contains the object's size."""
        part = self._client.connection.part
        if wanted is None:
            first = [Extent(0, part)]
        elif not exactly and max((e.end for e in wanted), default=0) <= self._small:
            first = [Extent(0, self._small)]
        else:
            first = scratch.cut_extents(scratch.merge_extents(wanted, self._small // 2), part)[
                : self._width
            ]
        pieces = self._side_by_side(
            lambda e, stopped: self._client.piece(key, e.start, e.length, stopped=stopped), first
        )
        found = _Held(held.path, pieces[0].size, pieces[0].tag)
        if wanted is not None:
            self._check(key, found, wanted)
        with held.path.open("xb") as file:
            file.truncate(found.size)
            for asked, piece in zip(first, pieces, strict=True):
                self._write(key, file.fileno(), asked, piece, found)
        with self._changed:
            held.size, held.tag = found.size, found.tag
            held.extents = scratch.merge_extents(first, 0, held.size)

    def _fetch(self, key: str, held: _Held, missing: Sequence[Extent]) -> None:
        near = scratch.merge_extents(missing, self._small // 2, held.size)
        with held.path.open("r+b") as file:

            def fetch(asked: Extent, stopped: Callable[[], bool]) -> None:
                piece = self._client.piece(key, asked.start, asked.length, held.tag, stopped)
                self._write(key, file.fileno(), asked, piece, held)

            self._side_by_side(fetch, scratch.cut_extents(near, self._client.connection.part))
        with self._changed:
            held.extents = scratch.merge_extents((*held.extents, *near), 0, held.size)

    def _write(self, key: str, file: int, asked: Extent, piece: ObjectPart, held: _Held) -> None:
        """Write a piece to its place in the file, if it is the requested piece."""
        if (piece.size, piece.tag) != (held.size, held.tag):
            raise Conflict(key)
        if len(piece.data) != min(asked.end, held.size) - min(asked.start, held.size):
            raise StoreError(f"{self._client.where(key)}: the server sent a wrong range of bytes")
        os.pwrite(file, piece.data, asked.start)

    def _check(self, key: str, held: _Held, wanted: Sequence[Extent]) -> None:
        if any(one.end > held.size for one in wanted):
            raise DamagedStore(
                f"{self._client.where(key)} is damaged: it is cut off after {held.size} bytes; "
                "restore a copy of it"
            )

    def _side_by_side(
        self, fetch: Callable[[Extent, Callable[[], bool]], T], some: Sequence[Extent]
    ) -> list[T]:
        """Fetch all extents in parallel. A failure or Ctrl-C stops the other requests first."""
        stop = threading.Event()
        if len(some) == 1:
            return [fetch(some[0], stop.is_set)]
        futures = [
            self._pool.submit(s3_request.carry_tally(fetch), one, stop.is_set) for one in some
        ]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            failed = [error for future in done if (error := future.exception())]
        finally:
            stop.set()
            for future in futures:
                future.cancel()
            wait(futures)
        if failed:
            raise failed[0]
        return [future.result() for future in futures]

    def _trim(self) -> None:
        """Remove the least recently used files until the total is within the limit."""
        if self._limit is None:
            return
        with self._changed:
            total = sum(held.bytes for held in self._held.values())
            young = self._clock() - self._kept
            for key, held in sorted(self._held.items(), key=lambda item: item[1].used):
                if total <= self._limit or held.used > young:
                    return
                if not held.flying:
                    total -= held.bytes
                    self.forget(key)
