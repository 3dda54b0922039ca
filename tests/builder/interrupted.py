"""Stores that call back at a call, or that tell what was read of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from builder.store.folder import FolderStore
from functions.snapshot.store import Writer


class Interrupted:
    """A store before whose nth call of some kinds, or after it, something happens.

    Only calls count whose first argument ends in `key`.
    """

    def __init__(
        self,
        store: Writer,
        kinds: str | Sequence[str],
        then: Callable[[], object],
        at: int = 1,
        *,
        after: bool = False,
        key: str = "",
    ) -> None:
        self.store, self.then, self.left = store, then, at
        self.kinds = {kinds} if isinstance(kinds, str) else {*kinds}
        self.after, self.key = after, key

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)
        if name not in self.kinds:
            return method

        def call(*arguments: Any, **named: Any) -> Any:
            if self.key and not str(arguments[0]).endswith(self.key):
                return method(*arguments, **named)
            self.left -= 1
            if self.left == 0 and not self.after:
                self.then()
            found = method(*arguments, **named)
            if self.left == 0 and self.after:
                found = list(found) if name == "keys" else found
                self.then()
            return found

        return call


class Watched(FolderStore):
    """A folder that notes what is read of data files: spans, or None for a whole file."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads: list[tuple[str, Sequence[tuple[int, int]] | None]] = []

    @property
    def asked(self) -> set[str]:
        """The data files of which anything was read."""
        return {key for key, _ in self.reads}

    def local(
        self, key: str, spans: Sequence[tuple[int, int]] | None = None, size: int | None = None
    ) -> Path:
        self.reads.append((key, spans and tuple(spans)))
        return super().local(key, spans, size)
