"""Keyed lock: requests for the same dataset are carried out one after the other."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_WAIT = 0.2


@dataclass(frozen=True, slots=True)
class Turns:
    """A lock for each key. Safe to use from threads."""

    _taken: set[Hashable] = field(init=False, default_factory=set)
    _changed: threading.Condition = field(init=False, default_factory=threading.Condition)

    @contextmanager
    def of(self, what: Hashable, check: Callable[[], None]) -> Iterator[None]:
        """Hold a key's lock during the block; `check` is called while waiting and may raise."""
        with self._changed:
            while what in self._taken:
                check()
                self._changed.wait(_WAIT)
            self._taken.add(what)
        try:
            yield
        finally:
            with self._changed:
                self._taken.discard(what)
                self._changed.notify_all()
