"""Progress on standard error: a bar on a terminal, otherwise a line each minute.

So short work says nothing in a log, and work of days says how far it is.
"""

import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Self, TextIO

EVERY = 60.0
"""Seconds between two progress lines without a terminal."""
BYTES = "B"


class ProgressBar:
    """A bar over `total` of a unit, shown for the duration of its context; called with increments.

    `what` names the phase of longer work. `total` is None if it is unknown. `clock` counts seconds
    from any start. Thread-safe.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        unit: str,
        out: TextIO | None = None,
        form: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from tqdm import tqdm  # only long work needs it

        self._what, self._total, self._unit = what, total, unit
        self._out, self._clock = out or sys.stderr, clock
        self._lock = threading.RLock()
        self._count = self._count_before = 0
        self._began = self._shown_at = clock()
        self._logs = ExitStack()
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
        if not self._bar.disable:
            from tqdm.contrib.logging import logging_redirect_tqdm

            # What is waited for is told above the bar, and not in the middle of it.
            self._logs.enter_context(logging_redirect_tqdm([logging.getLogger("sheaf")]))
        return self

    def __exit__(self, *failure: object) -> None:
        self._logs.close()
        self._bar.close()

    def __call__(self, count: int) -> None:
        """Add the number since the last call."""
        with self._lock:
            self._count += count
            self._bar.update(count)
            now = self._clock()
            if self._bar.disable and now - self._shown_at >= EVERY:
                self._shown_at = now
                print(self._line(now - self._began), file=self._out, flush=True)

    def enter_phase(self, what: str) -> None:
        """Name what is done from now on."""
        with self._lock:
            self._what = what
            self._bar.set_description_str(f"{what}: ")

    def expect(self, count: int) -> None:
        """Add to the total, which may also turn out to be smaller."""
        with self._lock:
            self._total = self._bar.total = (self._total or 0) + count
            self._bar.refresh()

    def print(self, text: str) -> None:
        """Print a line on standard output above the bar."""
        if self._bar.disable:
            print(text, flush=True)
        else:
            with self._bar.external_write_mode(file=sys.stdout):
                print(text, flush=True)

    def _line(self, elapsed: float) -> str:
        """Return a line for a log; `elapsed` are the seconds since the beginning."""
        total = self._total
        pace = (self._count - self._count_before) / elapsed
        if self._unit == BYTES:
            of = f"{self._count / 1e6:,.0f}" + (f" of {total / 1e6:,.0f}" if total else "")
            parts = [f"{of} MB", f"{pace / 1e6:,.1f} MB/s"]
        else:
            of = f"{self._count:,}" + (f" of {total:,}" if total else "")
            parts = [f"{of}{self._unit}", f"{pace:,.1f}{self._unit}/s"]
        parts[:0] = [self._what] if self._what else []
        parts += self._more(elapsed)
        if total and pace:
            hours, minutes = divmod(math.ceil(max(total - self._count, 0) / pace / 60), 60)
            parts.append(f"{hours}:{minutes:02} h left")
        return ", ".join(parts)

    def _more(self, elapsed: float) -> list[str]:
        return []


def show_bytes(total: int) -> ProgressBar:
    """Return a bar over `total` bytes that are being read."""
    return ProgressBar("", total, BYTES)


def enter_phase(advance: Callable[[int], None], what: str) -> None:
    """Name what is done from now on, if `advance` is a bar that can show it."""
    if isinstance(advance, ProgressBar):
        advance.enter_phase(what)


class PartsProgress(ProgressBar):
    """Progress in bytes of `count` parts, such as files, of which `total` bytes are declared.

    `count` is None if it is unknown, and so are bytes that nobody has declared.
    """

    def __init__(
        self,
        noun: str,
        count: int | None,
        total: int = 0,
        out: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        form: str | None = None,
    ) -> None:
        self._noun, self._parts, self._done = noun, count, 0
        super().__init__(self._name_parts(), total, BYTES, out, form, clock)

    @contextmanager
    def part(self, declared: int, is_new: bool = False) -> Iterator[Callable[[int], None]]:
        """Read a part; the given function is called with its bytes as they come.

        A new one adds to the total. Where others came than were declared, it is corrected.
        """
        came = 0
        if is_new:
            self.expect(declared)

        def advance(count: int) -> None:
            nonlocal came
            with self._lock:
                came += count
                self(count)

        try:
            yield advance
        finally:
            self.expect(came - declared)

    def end_part(self, count: int = 1) -> None:
        """Count more parts as done."""
        with self._lock:
            self._done += count
            self._what = self._name_parts()
            self._bar.set_description_str(self._what)

    def _name_parts(self) -> str:
        of = "" if self._parts is None else f" of {self._parts:,}"
        return f"{self._done:,}{of} {self._noun}"


class IngestProgress(PartsProgress):
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
        self._captures = 0
        form = "{desc} {percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} "
        form += "[{elapsed}<{remaining}, {rate_fmt}{postfix}]"
        super().__init__("files", files, total, out, clock, form)

    def resume(self, read: int, captures: int, files: int) -> None:
        """Add the work of earlier processes."""
        self._count = self._count_before = self._bar.initial = self._bar.n = read
        self._began = self._shown_at = self._clock()
        self.end_part(files)

    def advance(self, read: int, captures: int, files: int) -> None:
        """Add bytes read, captures found and files finished since the last call."""
        self._captures += captures
        (pace,) = self._more(self._clock() - self._began)
        self._bar.set_postfix_str(pace, refresh=False)
        self.end_part(files)
        self(read)

    def _more(self, elapsed: float) -> list[str]:
        return [f"{self._captures / max(elapsed, 1e-3):,.0f} captures/s"]


class RecordBar(ProgressBar):
    """A bar over records harvested from several lists, whose sizes may be unknown."""

    def __init__(self) -> None:
        super().__init__("", None, " records")
        self._sizes: dict[str, int] = {}

    def add(self, name: str, count: int, size: int | None) -> None:
        """Add records of a list, and update its size."""
        with self._lock:
            if size is not None and (change := size - self._sizes.get(name, 0)):
                self._sizes[name] = size
                self.expect(change)
            self(count)

    def print(self, text: str) -> None:
        """Print a line on standard error above the bar."""
        with self._lock:
            self._bar.write(text, file=sys.stderr)
            sys.stderr.flush()
