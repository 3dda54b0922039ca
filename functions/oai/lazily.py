"""Values by key that are made when they are first asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


class Lazily(Mapping[str, T]):
    """A mapping of given keys; each value is made by `make` once, or twice where threads race."""

    def __init__(self, keys: Sequence[str], make: Callable[[str], T]) -> None:
        self._keys = keys
        self._make = make
        self._made: dict[str, T] = {}

    def __getitem__(self, key: str) -> T:
        if key not in self._made:
            if key not in self._keys:
                raise KeyError(key)
            self._made[key] = self._make(key)
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)
