"""Small objects, written many at once while others are fetched.

A disk takes longer to sync a small file than a network to bring it.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from functions.snapshot.store import Writer

SMALL = 1 << 18
"""Bytes of an object that is written together with others."""
_MANY, _BYTES, _SECONDS = 1024, 8 << 20, 2.0
"""Objects, bytes and age at which they are written: a killed process loses no more."""


@dataclass(slots=True)
class SmallObjects:
    """Writes objects to a store; `settle` is called for the key of one that was there already.

    All methods are for one thread, and raise what an earlier write raised: StoreError, and what
    `settle` raises. At most twice the bytes of a batch are in memory.
    """

    store: Writer
    settle: Callable[[str], None]
    _waiting: list[tuple[str, bytes]] = field(init=False, default_factory=list)
    _bytes: int = field(init=False, default=0)
    _since: float = field(init=False, default=0.0)
    _pool: ThreadPoolExecutor | None = field(init=False, default=None)
    _writing: Future[None] | None = field(init=False, default=None)

    def add(self, key: str, data: bytes) -> None:
        """Take an object, and begin to write if there are enough."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append((key, data))
        self._bytes += len(data)
        late = time.monotonic() - self._since >= _SECONDS
        if late or self._bytes >= _BYTES or len(self._waiting) >= _MANY:
            self.begin()

    def begin(self) -> None:
        """Begin to write the waiting objects, after those before them."""
        self._wait()
        some, self._waiting, self._bytes = self._waiting, [], 0
        if some:
            self._pool = self._pool or ThreadPoolExecutor(1, "small-objects")
            self._writing = self._pool.submit(self._write, some)

    def finish(self) -> None:
        """Write all objects."""
        try:
            self.begin()
            self._wait()
        finally:
            if self._pool is not None:
                self._pool.shutdown()

    def _wait(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _write(self, some: Sequence[tuple[str, bytes]]) -> None:
        for (key, _), written in zip(some, self.store.create_all(some), strict=True):
            if not written:
                self.settle(key)
