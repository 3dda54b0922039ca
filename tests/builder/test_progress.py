"""Progress as it is shown to people, and to logs."""

import io
import logging
import re
from contextlib import redirect_stderr

import pytest

from builder.progress import EVERY, IngestProgress, PartsProgress, ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_log_gets_a_line_a_minute() -> None:
    clock, out = Clock(), io.StringIO()
    with IngestProgress(400_000_000, 40, clock, out) as progress:
        progress.resume(100_000_000, 5000, 9)
        for _ in range(10):
            clock.now += EVERY / 4
            progress.advance(10_000_000, 15_000, 1)
    assert out.getvalue().splitlines() == [
        "13 of 40 files, 140 of 400 MB, 0.7 MB/s, 1,000 captures/s, 0:07 h left",
        "17 of 40 files, 180 of 400 MB, 0.7 MB/s, 1,000 captures/s, 0:06 h left",
    ]


def test_short_work_says_nothing_in_a_log() -> None:
    clock, out = Clock(), io.StringIO()
    with IngestProgress(100, 1, clock, out) as progress:
        clock.now += EVERY - 1
        progress.advance(100, 1, 1)
    assert out.getvalue() == ""


def test_a_terminal_gets_a_bar_with_all_that_is_to_be_known() -> None:
    out = Terminal()
    with IngestProgress(400, 4, out=out) as progress:
        progress.resume(100, 7, 1)
        progress.advance(300, 20, 3)
    bar = out.getvalue().rpartition("\r")[2]
    assert bar.startswith("4 of 4 files 100% |")
    assert "| 400/400 [" in bar
    assert "B/s" in bar
    assert "captures/s]" in bar


def test_lines_are_printed_beside_a_bar_of_datasets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ProgressBar("", 2, " datasets") as bar:
        bar.print("one")
        bar(1)
    found = capsys.readouterr()
    assert (found.out, found.err) == ("one\n", "")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with ProgressBar("", 2, " datasets") as bar:
        bar.print("one")
        bar(2)
    assert capsys.readouterr().out == "one\n"
    assert "/2.00 [" in terminal.getvalue()


class Steps(Clock):
    """A clock of a slow machine: whoever looks at it has worked for `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


def test_parts_are_told_by_their_bytes_and_what_is_wrongly_declared_is_mended() -> None:
    clock, out = Clock(), io.StringIO()
    with PartsProgress("files", 3, 900_000_000, out, clock) as bar:
        for declared, bytes_ in ((600, 600), (200, 0), (100, 300)):
            with bar.part(declared * 1_000_000) as advance:
                for _ in range(bytes_ // 100):
                    clock.now += 100
                    advance(100_000_000)
            bar.end_part()
    assert out.getvalue().splitlines() == [
        *(
            f"0 of 3 files, {n}00 of 900 MB, 1.0 MB/s, 0:{left:02} h left"
            for n, left in zip(range(1, 7), (14, 12, 10, 9, 7, 5), strict=True)
        ),
        *(f"2 of 3 files, {n}00 of 700 MB, 1.0 MB/s, 0:00 h left" for n in (7, 8, 9)),
    ]


def test_lines_are_few_however_often_there_is_progress() -> None:
    clock, out = Steps(0.5), io.StringIO()
    with ProgressBar("", 1000, " records", out, clock=clock) as bar:
        for number in range(1000):
            bar(1)
            if number == 500:
                bar.enter_phase("later")
    lines = out.getvalue().splitlines()
    assert len(lines) == 8  # of 500 seconds
    assert lines[0] == "120 of 1,000 records, 2.0 records/s, 0:08 h left"
    assert lines[-1].startswith("later, 960 of 1,000 records")


def test_what_is_waited_for_is_told_above_a_bar() -> None:
    out = Terminal()
    log = logging.getLogger("sheaf")
    with redirect_stderr(out), ProgressBar("", 4, "B", out) as bar:
        bar(1)
        log.warning("a.cz: HTTP status 503: asking again in 8 s")
    text = out.getvalue()
    assert re.search(r"(^|\r) *\r?a\.cz: HTTP status 503: asking again in 8 s\n", text)
    assert not log.handlers
