"""Workers begin whole or not at all, whatever comes meanwhile."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from builder.intake.pool import Advance, defer_interrupts, map_tasks


@pytest.fixture
def thread() -> Iterator[threading.Thread]:
    """A thread that takes signals, as those of a database do."""
    end = threading.Event()
    made = threading.Thread(target=end.wait)
    made.start()
    yield made
    end.set()
    made.join()


def test_an_interrupt_that_another_thread_takes_waits_as_well(thread: threading.Thread) -> None:
    steps: list[int] = []

    def begin() -> None:
        assert thread.ident is not None
        signal.pthread_kill(thread.ident, signal.SIGINT)
        for step in range(50):  # in which Python hears of it
            time.sleep(0.002)
            steps.append(step)

    with pytest.raises(KeyboardInterrupt), defer_interrupts():
        begin()
    assert len(steps) == 50
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_without_one_nothing_is_raised_and_all_is_as_before(thread: threading.Thread) -> None:
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with defer_interrupts():
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert {signal.SIGINT, signal.SIGTERM} <= blocked
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


def number_of(task: int, advance: Advance) -> int:
    """Return the task."""
    return task


def interrupted() -> None:
    """Stop at the fourth of very many tasks."""
    for number in map_tasks(number_of, range(20_000), 2, lambda read, captures: None):
        if number == 3:
            raise KeyboardInterrupt


def test_an_interrupt_among_very_many_tasks_ends_the_process() -> None:
    """What the tasks would still report is more than a pipe holds, and nobody reads it."""
    program = f"from {__name__} import interrupted; interrupted()"
    done = subprocess.run(
        [sys.executable, "-c", program], timeout=60, capture_output=True, check=False
    )
    assert b"KeyboardInterrupt" in done.stderr
