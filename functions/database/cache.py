"""In-memory LRU cache of immutable values, limited in bytes."""

import gc
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class LruCache(Generic[T]):
    """Keeps the most recently used values, up to `limit` bytes. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._values: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> T | None:
        """Return the value of `key`, None if it is not cached."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def add(self, key: Hashable, value: T, size: int) -> None:
        """Cache a value of about `size` bytes; the least recently used values make room."""
        with self._lock:
            if key in self._values:
                self._size -= self._values.pop(key)[1]
            self._values[key] = value, size
            self._size += size
            while self._size > self._limit:
                self._size -= self._values.popitem(last=False)[1][1]


def seldom_searched() -> None:
    """Make the garbage collector of this process run less often.

    Cached rows are many objects without reference cycles, so searching them only costs time.
    """
    gc.freeze()
    gc.set_threshold(20_000)
