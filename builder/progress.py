"""Progress bars on standard error if it is a terminal.

Otherwise nothing is shown, except for an ingest, which may take days: it prints a line each minute.
"""

import math
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Self, TextIO

EVERY = 60.0
"""Seconds between two progress lines of an ingest without a terminal."""


class ProgressBar:
    """A bar over `total` of a unit, shown for the duration of its context; called with increments.

    `what` names the phase of longer work. `total` is None if it is unknown.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        unit: str,
        out: TextIO | None = None,
        form: str | None = None,
    ) -> None:
        from tqdm import tqdm  # only long work needs it

        self._out = out or sys.stderr
        self._bar: tqdm[Any] = tqdm(
            total=total,
            unit=unit,
            unit_scale=True,
            file=self._out,
            dynamic_ncols=True,
            leave=form is not None,
            bar_format=form,
            desc=what,
            disable=not self._out.isatty(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._bar.close()

    def __call__(self, count: int) -> None:
        """Add the number since the last call."""
        self._bar.update(count)

    def print(self, text: str) -> None:
        """Print a line on standard output above the bar."""
        if self._bar.disable:
            print(text, flush=True)
        else:
            with self._bar.external_write_mode(file=sys.stdout):
                print(text, flush=True)


def show_bytes(total: int) -> ProgressBar:
    """Return a bar over `total` bytes that are being read."""
    return ProgressBar("", total, "B")


class IngestProgress(ProgressBar):
    """Progress of reading `total` bytes in `files` files: a bar, or a line now and then.

    The work of an earlier process counts as done, but not for the rate.
    """

    def __init__(
        self,
        total: int,
        files: int,
        clock: Callable[[], float] = time.monotonic,
        out: TextIO | None = None,
    ) -> None:
        self._total, self._files = total, files
        self._clock = clock
        self._began = self._shown_at = clock()
        self._read = self._captures = self._done = 0
        self._read_before = 0
        form = "{desc} {percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} "
        form += "[{elapsed}<{remaining}, {rate_fmt}{postfix}]"
        super().__init__(f"0/{files} files", total, "B", out, form)

    def resume(self, read: int, captures: int, files: int) -> None:
        """Add the work of earlier processes."""
        self._read = self._read_before = read
        self._done = files
        self._began = self._shown_at = self._clock()
        if not self._bar.disable:
            self._bar.initial = self._bar.n = read
            self._bar.set_description_str(f"{files}/{self._files} files")

    def advance(self, read: int, captures: int, files: int) -> None:
        """Add bytes read, captures found and files finished since the last call."""
        self._read += read
        self._done += files
        self._captures += captures
        now = self._clock()
        if self._bar.disable:
            if now - self._shown_at >= EVERY:
                self._shown_at = now
                print(self._line(now - self._began), file=self._out, flush=True)
            return
        pace = f"{self._captures / max(now - self._began, 1e-3):,.0f} captures/s"
        self._bar.set_description_str(f"{self._done}/{self._files} files", refresh=False)
        self._bar.set_postfix_str(pace, refresh=False)
        self._bar.update(read)

    def _line(self, elapsed: float) -> str:
        pace = (self._read - self._read_before) / elapsed
        left = (self._total - self._read) / pace if pace else 0.0
        hours, minutes = divmod(math.ceil(left / 60), 60)
        return (
            f"{self._done:,} of {self._files:,} files, {self._read / 1e6:,.0f} of "
            f"{self._total / 1e6:,.0f} MB, {pace / 1e6:,.1f} MB/s, "
            f"{self._captures / elapsed:,.0f} captures/s, {hours}:{minutes:02} h left"
        )


class RecordBar(ProgressBar):
    """A bar over records harvested from several lists, whose sizes may be unknown.

    Thread-safe.
    """

    def __init__(self) -> None:
        super().__init__("", None, " records")
        self._lock = threading.Lock()
        self._sizes: dict[str, int] = {}

    def add(self, name: str, count: int, size: int | None) -> None:
        """Add records of a list, and update its size."""
        with self._lock:
            if size is not None and self._sizes.get(name) != size:
                self._sizes[name] = size
                self._bar.total = sum(self._sizes.values())
                self._bar.refresh()
            self._bar.update(count)

    def print(self, text: str) -> None:
        """Print a line on standard error above the bar."""
        with self._lock:
            self._bar.write(text, file=sys.stderr)
            sys.stderr.flush()
