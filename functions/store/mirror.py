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
GRACE = 20.0
"""Seconds for which a returned file stays, even above the limit, so that its caller can open it."""


@dataclass(slots=True)
class _LocalCopy:
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

    The least recently used file is removed first. A file used within `grace` seconds stays, even
    beyond the limit, because its caller is about to open it. `close` or the end of the process
    removes all files. Thread-safe.
    """

    def __init__(
        self,
        client: ObjectClient,
        limit: int | None,
        clock: Callable[[], float] = time.monotonic,
        grace: float = GRACE,
        small: int | None = None,
    ) -> None:
        """Objects of up to `small` bytes (None: SMALL) are fetched whole, as are gaps of half."""
        self._client = client
        self._small = SMALL if small is None else small
        self._limit = limit
        self._grace = grace
        self._clock = clock
        self._copies: dict[str, _LocalCopy] = {}
        self._changed = threading.Condition(threading.RLock())
        self._count = 0
        self._scratch = Scratch()
        self._folder = self._scratch.path
        self._at_once = 2 * client.connection.concurrency
        self._pool = ThreadPoolExecutor(self._at_once, "sheaf-fetch")
        self.close = self._scratch.close

    def local(
        self, key: str, spans: Sequence[tuple[int, int]] | None, size: int | None = None
    ) -> Path:
        """Return a file of the object's size in which `spans` (None: all) are correct.

        Pass the object's `size` if it is known: then only the spans of a large object are fetched.
        Raises MissingObject, and StoreError, for example if the object was replaced.
        """
        if size is not None and size <= self._small:
            spans = None
        wanted = None if spans is None else [Extent(o, o + n) for o, n in spans if n > 0]
        while True:  # if the size is unknown, the first round finds it out, the second fetches
            copy, missing = self._claim(key, wanted)
            if not missing:
                return copy.path
            try:
                if copy.size < 0:
                    self._begin(key, copy, wanted, exactly=size is not None)
                else:
                    self._fetch(key, copy, missing)
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
                    for extent in missing:
                        copy.flying.remove(extent)
                    self._changed.notify_all()
            self._trim()

    def adopt(self, key: str, path: Path) -> None:
        """Keep a file that was just uploaded, so that the object need not be fetched.

        A file on another file system is not kept. The file must not be changed later.
        """
        with self._changed:
            if key in self._copies:
                return
            target = self._new_path(key)
            try:
                os.link(path, target)
            except OSError:
                return
            size = target.stat().st_size
            self._copies[key] = _LocalCopy(
                target, size, extents=(Extent(0, size),), used=self._clock()
            )

    def forget(self, *keys: str) -> None:
        """Remove the objects' files; a thread with an open file can still read it."""
        with self._changed:
            for key in keys:
                if (copy := self._copies.pop(key, None)) is not None:
                    copy.path.unlink(missing_ok=True)

    def _claim(
        self, key: str, wanted: Sequence[Extent] | None
    ) -> tuple[_LocalCopy, tuple[Extent, ...]]:
        """Return the local copy, and the extents that this thread must fetch, if any are missing.

        Waits for threads that are fetching parts of them. Of an object of unknown size, the first
        byte is claimed, so that one thread creates its file.
        """
        with self._changed:
            while True:
                copy = self._copies.get(key)
                if copy is None:
                    copy = self._copies[key] = _LocalCopy(self._new_path(key))
                if copy.size < 0:
                    missing: tuple[Extent, ...] = (Extent(0, 1),)
                else:
                    extents = [Extent(0, copy.size)] if wanted is None else wanted
                    self._check_size(key, copy, extents)
                    missing = scratch.missing_extents(extents, copy.extents)
                copy.used = self._clock()
                if not any(a.meets(b) for a in missing for b in copy.flying):
                    copy.flying += missing
                    return copy, missing
                self._changed.wait()

    def _new_path(self, key: str) -> Path:
        self._count += 1
        return self._folder / f"{self._count}-{key.rpartition('/')[2][-80:]}"

    def _begin(
        self, key: str, copy: _LocalCopy, wanted: Sequence[Extent] | None, *, exactly: bool
    ) -> None:
        """Create the file with the first wanted bytes; the response contains the object's size."""
        part = self._client.connection.part
        if wanted is None:
            first = [Extent(0, part)]
        elif not exactly and max((e.end for e in wanted), default=0) <= self._small:
            first = [Extent(0, self._small)]  # one request fetches all of a small object
        else:
            near = scratch.merge_extents(wanted, self._small // 2)
            first = scratch.cut_extents(near, part)[: self._at_once]
        pieces = self._fetch_in_parallel(
            lambda e, stopped: self._client.piece(key, e.start, e.length, stopped=stopped), first
        )
        expected = _LocalCopy(copy.path, pieces[0].size, pieces[0].tag)
        if wanted is not None:
            self._check_size(key, expected, wanted)
        with copy.path.open("xb") as file:
            file.truncate(expected.size)
            for extent, piece in zip(first, pieces, strict=True):
                self._write(key, file.fileno(), extent, piece, expected)
        with self._changed:
            copy.size, copy.tag = expected.size, expected.tag
            copy.extents = scratch.merge_extents(first, 0, copy.size)

    def _fetch(self, key: str, copy: _LocalCopy, missing: Sequence[Extent]) -> None:
        near = scratch.merge_extents(missing, self._small // 2, copy.size)
        with copy.path.open("r+b") as file:

            def fetch(extent: Extent, stopped: Callable[[], bool]) -> None:
                piece = self._client.piece(key, extent.start, extent.length, copy.tag, stopped)
                self._write(key, file.fileno(), extent, piece, copy)

            self._fetch_in_parallel(fetch, scratch.cut_extents(near, self._client.connection.part))
        with self._changed:
            copy.extents = scratch.merge_extents((*copy.extents, *near), 0, copy.size)

    def _write(
        self, key: str, file: int, extent: Extent, piece: ObjectPart, copy: _LocalCopy
    ) -> None:
        """Write a piece to its place in the file, if it is the requested piece."""
        if (piece.size, piece.tag) != (copy.size, copy.tag):
            raise Conflict(key)
        if len(piece.data) != min(extent.end, copy.size) - min(extent.start, copy.size):
            raise StoreError(f"{self._client.where(key)}: the server sent a wrong range of bytes")
        os.pwrite(file, piece.data, extent.start)

    def _check_size(self, key: str, copy: _LocalCopy, wanted: Sequence[Extent]) -> None:
        if any(extent.end > copy.size for extent in wanted):
            raise DamagedStore(
                f"{self._client.where(key)} is damaged: it is cut off after {copy.size} bytes; "
                "restore a copy of it"
            )

    def _fetch_in_parallel(
        self, fetch: Callable[[Extent, Callable[[], bool]], T], extents: Sequence[Extent]
    ) -> list[T]:
        """Fetch all extents in parallel. A failure or Ctrl-C stops the other requests first."""
        stop = threading.Event()
        if len(extents) == 1:
            return [fetch(extents[0], stop.is_set)]
        futures = [
            self._pool.submit(s3_request.carry_tally(fetch), extent, stop.is_set)
            for extent in extents
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
            total = sum(copy.bytes for copy in self._copies.values())
            young = self._clock() - self._grace
            for key, copy in sorted(self._copies.items(), key=lambda item: item[1].used):
                if total <= self._limit or copy.used > young:
                    return
                if not copy.flying:
                    total -= copy.bytes
                    self.forget(key)
