"""Progress for people: a bar where standard error is a terminal, nothing where it is not."""

import sys
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm


class _Bar:
    """A bar that is there for as long as its context."""

    def __init__(self, total: int, unit: str, **options: Any) -> None:
        self._bar = tqdm(
            total=total,
            unit=unit,
            unit_scale=True,
            disable=not sys.stderr.isatty(),
            file=sys.stderr,
            dynamic_ncols=True,
            **options,
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


class Progress(_Bar):
    """A bar over `total` bytes that also shows files and captures per second."""

    def __init__(self, total: int, files: int) -> None:
        self._files = files
        self._done = 0
        self._captures = 0
        form = "{desc} {percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} "
        super().__init__(
            total,
            "B",
            bar_format=form + "[{elapsed}<{remaining}{postfix}]",
            desc=f"0/{files} files",
        )

    def advance(self, read: int, captures: int, files: int) -> None:
        """Count bytes read, captures found and files finished since the last call."""
        self._done += files
        self._captures += captures
        elapsed = float(self._bar.format_dict["elapsed"]) or 1.0
        self._bar.set_description_str(f"{self._done}/{self._files} files", refresh=False)
        self._bar.set_postfix_str(f"{self._captures / elapsed:,.0f} captures/s", refresh=False)
        self._bar.update(read)


class _Count(_Bar):
    """A bar that is called with how many came in addition."""

    def __call__(self, count: int) -> None:
        """Count what came since the last call."""
        self._bar.update(count)


class Rows(_Count):
    """A bar over `total` rows that are being written."""

    def __init__(self, total: int) -> None:
        super().__init__(total, " records", leave=False)


class Bytes(_Count):
    """A bar over `total` bytes that are being read."""

    def __init__(self, total: int) -> None:
        super().__init__(total, "B", leave=False)
