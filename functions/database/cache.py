"""What is kept in memory of what never changes, up to a number of bytes."""

import gc
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class LruCache(Generic[T]):
    """Keeps values, `limit` bytes of those that were asked for last. Safe to use from threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._values: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> T | None:
        """Return the value of `key`, None where it is not kept."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def add(self, key: Hashable, value: T, size: int) -> None:
        """Keep a value that takes about `size` bytes; others go for it, those of longest ago."""
        with self._lock:
            if key in self._values:
                self._size -= self._values.pop(key)[1]
            self._values[key] = value, size
            self._size += size
            while self._size > self._limit:
                self._size -= self._values.popitem(last=False)[1][1]


def seldom_searched() -> None:
    """Have Python look for cycles less often, in this process.

    What is kept of rows is many objects without any: to look through these takes time for nothing.
    """
    gc.freeze()
    gc.set_threshold(20_000)
