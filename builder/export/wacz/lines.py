"""Lines in the order of their bytes (`LC_ALL=C sort`), however many.

Those that do not fit into memory lie on the disk, sorted, and are merged.
"""

import heapq
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

HELD = 64 << 20
"""Bytes of lines that are in memory."""
_OPEN = 200
"""Files that are merged at once."""


class SortedLines:
    """Takes lines, which end with a newline and have none within, and gives them back sorted."""

    def __init__(self, folder: Path, held: int = HELD) -> None:
        """`folder` is there for it alone."""
        self._folder = folder
        self._most = held
        self._lines: list[bytes] = []
        self._size = 0
        self._files: list[Path] = []
        self._made = 0

    def add(self, line: bytes) -> None:
        """Take a line. Raises OSError."""
        self._lines.append(line)
        self._size += len(line)
        if self._size >= self._most:
            self._keep(iter(sorted(self._lines)))
            self._lines, self._size = [], 0
            if len(self._files) == _OPEN:
                self._join()

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines. Raises OSError."""
        with ExitStack() as stack:
            files = [stack.enter_context(path.open("rb")) for path in self._files]
            yield from heapq.merge(*files, sorted(self._lines))

    def _keep(self, lines: Iterator[bytes]) -> None:
        path = self._folder / f"{self._made:06}"
        self._made += 1
        with path.open("wb") as out:
            out.writelines(lines)
        self._files.append(path)

    def _join(self) -> None:
        """Make one file of those that there are."""
        before, self._files = self._files, []
        with ExitStack() as stack:
            self._keep(heapq.merge(*(stack.enter_context(path.open("rb")) for path in before)))
        for path in before:
            path.unlink()
