"""Sorts any number of lines by their bytes (`LC_ALL=C sort`).

Lines beyond the memory limit are sorted in files on disk, and merged.
"""

import heapq
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

HELD = 64 << 20
"""Bytes of lines that are kept in memory."""
_OPEN = 200
"""Files that are merged at once."""


class SortedLines:
    """External sort of lines, each of which ends with a newline and has no other."""

    def __init__(self, folder: Path, held: int = HELD) -> None:
        """Use `folder`, which must be empty and have no other user."""
        self._folder = folder
        self._most = held
        self._lines: list[bytes] = []
        self._size = 0
        self._files: list[Path] = []
        self._made = 0

    def add(self, line: bytes) -> None:
        """Add a line. Raises OSError."""
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
        """Merge the files into one."""
        before, self._files = self._files, []
        with ExitStack() as stack:
            self._keep(heapq.merge(*(stack.enter_context(path.open("rb")) for path in before)))
        for path in before:
            path.unlink()
