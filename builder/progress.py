"""Progress for people: a bar where standard error is a terminal, nothing where it is not."""

import sys
from types import TracebackType
from typing import Self

from tqdm import tqdm


class Progress:
    """A bar over `total` bytes that also shows files and captures per second."""

    def __init__(self, total: int, files: int) -> None:
        self._files = files
        self._done = 0
        self._captures = 0
        self._bar = tqdm(
            total=total,
            unit="B",
            unit_scale=True,
            disable=not sys.stderr.isatty(),
            file=sys.stderr,
            dynamic_ncols=True,
            bar_format="{desc} {percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} "
            "[{elapsed}<{remaining}{postfix}]",
            desc=f"0/{files} files",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

    def advance(self, read: int, captures: int, files: int) -> None:
        """Count bytes read, captures found and files finished since the last call."""
        self._done += files
        self._captures += captures
        elapsed = float(self._bar.format_dict["elapsed"]) or 1.0
        self._bar.set_description_str(f"{self._done}/{self._files} files", refresh=False)
        self._bar.set_postfix_str(f"{self._captures / elapsed:,.0f} captures/s", refresh=False)
        self._bar.update(read)


class Rows:
    """A bar over `total` rows that are being written; call it with how many came in addition."""

    def __init__(self, total: int) -> None:
        self._bar = tqdm(
            total=total,
            unit=" records",
            unit_scale=True,
            disable=not sys.stderr.isatty(),
            file=sys.stderr,
            dynamic_ncols=True,
            leave=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

    def __call__(self, rows: int) -> None:
        """Count rows written since the last call."""
        self._bar.update(rows)
