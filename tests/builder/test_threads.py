"""Threads that work for one caller."""

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from builder.threads import ThreadCrew, map_in_order


def test_results_come_in_order_and_few_items_are_taken_ahead() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(20):
            taken.append(number)
            yield number

    for at, result in enumerate(map_in_order(lambda one: one * 2, items(), 3, 5)):
        assert result == 2 * at
        assert len(taken) <= at + 5
    assert taken == [*range(20)]


def test_an_error_cancels_the_calls_that_have_not_begun() -> None:
    begun = []

    def call(number: int) -> int:
        begun.append(number)
        return 1 // number

    with pytest.raises(ZeroDivisionError):
        list(map_in_order(call, range(50), 1, 2))
    assert len(begun) <= 3


def test_calls_are_told_to_stop_before_they_are_waited_for() -> None:
    stop = threading.Event()
    results = map_in_order(lambda late: late and stop.wait(60), (False, True), 2, 2, stop)
    assert next(results) is False
    results.close()  # or the second call would wait a minute
    assert stop.is_set()


def test_a_crew_yields_the_results_of_all_threads() -> None:
    stop, numbers, lock = threading.Event(), iter(range(100)), threading.Lock()

    def work() -> Iterator[int]:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            yield number

    crew: ThreadCrew[int] = ThreadCrew("test", stop)
    assert sorted(crew.results(work, 4)) == [*range(100)]
    assert crew.rest == []
    assert not stop.is_set()
    assert list(crew.results(work, 0)) == []


def test_an_idle_crew_says_so() -> None:
    idle = threading.Event()
    crew: ThreadCrew[bool] = ThreadCrew("test", threading.Event())
    assert list(crew.results(lambda: [idle.wait(60)], 1, idle.set)) == [True]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_of_a_thread_ends_the_others(error: type[BaseException]) -> None:
    stop, turn = threading.Event(), iter(range(2))

    def work() -> Iterator[bool]:
        if next(turn):
            raise error
        yield stop.wait(60)

    crew: ThreadCrew[bool] = ThreadCrew("test", stop)
    with pytest.raises(error):
        list(crew.results(work, 2))
    assert crew.rest == [True]


def test_a_closed_crew_keeps_the_results_that_had_arrived() -> None:
    stop = threading.Event()

    def work() -> Iterator[str]:
        yield "first"
        stop.wait(60)
        yield "last"

    crew: ThreadCrew[str] = ThreadCrew("test", stop)
    with closing(crew.results(work, 3)) as results:
        assert next(results) == "first"
    assert sorted(crew.rest) == ["first"] * 2 + ["last"] * 3


def test_threads_wait_until_their_results_are_taken() -> None:
    made: list[int] = []

    def work() -> Iterator[int]:
        for number in range(50):
            made.append(number)
            yield number

    crew: ThreadCrew[int] = ThreadCrew("test", threading.Event())
    for at, number in enumerate(crew.results(work, 1)):
        assert number == at
        assert len(made) <= at + 3
