"""Progress as it is shown to people, and to logs."""

import io

import pytest

from builder.progress import EVERY, IngestProgress, ProgressBar


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
    assert bar.startswith("4/4 files 100% |")
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
